"""Boots a real control plane from the binaries of `make controlplane` and ends it again.

Users are bearer tokens (`--token-auth-file`), so that a test can act as any user.
"""

import contextlib
import os
import secrets
import socket
import subprocess
import time
from collections.abc import Collection, Iterator
from pathlib import Path

import trustme
import urllib3
import yaml

BINARIES = Path(__file__).parents[2] / "hack" / "controlplane" / "bin"
NAMES = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubectl")

_USERS = {
    "admin": ("admin", "system:masters"),
    "reader": ("reader", ""),
    "controller-manager": ("system:kube-controller-manager", ""),
    "scheduler": ("system:kube-scheduler", ""),
}

_GARBAGE = {"GOGC": "400"}
"""Less often collected: a fifth less CPU for 250 MB more."""

_WITHOUT = (
    "bootstrap-signer-controller",
    "certificatesigningrequest-approving-controller",
    "certificatesigningrequest-cleaner-controller",
    "certificatesigningrequest-signing-controller",
    "cloud-node-lifecycle-controller",
    "legacy-serviceaccount-token-cleaner-controller",
    "node-ipam-controller",
    "node-route-controller",
    "persistentvolume-attach-detach-controller",
    "resourceclaim-controller",
    "service-cidr-controller",
    "service-lb-controller",
    "token-cleaner-controller",
    "ttl-controller",
)
"""Controllers for clouds, for objects that no test creates, and for work that kubelets do not wait for here: half of
the idle CPU."""

_SCHEDULER_CONFIG = """\
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
clientConnection: {{kubeconfig: {kubeconfig}, qps: 1000, burst: 2000}}
leaderElection: {{leaderElect: false}}
profiles:
  - schedulerName: default-scheduler
  - schedulerName: tidb-scheduler
"""


def missing_binaries() -> list[str]:
    """The binaries that `make controlplane` has not built."""
    return [name for name in NAMES if not (BINARIES / name).exists()]


class ControlPlane:
    """One running control plane. `server` is its URL, `ca` the file that verifies it, `tokens` its users."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        self._etcd = f"http://127.0.0.1:{free_port()}"
        self._port = free_port()
        self.server = f"https://127.0.0.1:{self._port}"
        self.ca = directory / "ca.pem"
        self.tokens = {user: secrets.token_hex(16) for user in _USERS}

    def start(self) -> None:
        """Start everything and wait until the API is ready. Raises RuntimeError with the log of what failed."""
        self.start_api()
        self._start_controller_manager()
        self._start_scheduler()

    def start_api(self) -> None:
        """Start etcd and the API server alone: nothing changes but by its clients."""
        self._write_files()
        self._start_etcd()
        self.start_api_server()

    def stop(self) -> None:
        """End everything that was started here."""
        for name in reversed(list(self._processes)):
            self._end(name)

    @property
    def pids(self) -> Collection[int]:
        """The ids of the running processes."""
        return [each.pid for each in self._processes.values()]

    def restart_api_server(self) -> None:
        """Kill the API server and start it again on the same port: every watch breaks."""
        self._end("kube-apiserver")
        self.start_api_server()

    def replace_token(self, user: str) -> str:
        """Give a user another token, which the API server knows, and no longer the old one, after a restart."""
        self.tokens[user] = secrets.token_hex(16)
        self._write_tokens()
        return self.tokens[user]

    def compact(self) -> None:
        """Let etcd forget its history; the API server's watch cache keeps its own, until a restart."""
        with urllib3.PoolManager(retries=False, timeout=5.0) as pool:
            status = pool.request("POST", f"{self._etcd}/v3/maintenance/status", json={}).json()
            revision = status["header"]["revision"]
            answer = pool.request("POST", f"{self._etcd}/v3/kv/compaction", json={"revision": revision})
            assert answer.status == 200, answer.data

    def kubeconfig(self, user: str = "admin", token: str = "") -> Path:
        """A kubeconfig file for a user of this control plane, or for any token."""
        path = self._directory / f"{user}.kubeconfig"
        path.write_text(
            yaml.safe_dump(
                {
                    "apiVersion": "v1",
                    "kind": "Config",
                    "clusters": [
                        {"name": "real", "cluster": {"server": self.server, "certificate-authority": str(self.ca)}}
                    ],
                    "users": [{"name": user, "user": {"token": token or self.tokens[user]}}],
                    "contexts": [{"name": "real", "context": {"cluster": "real", "user": user}}],
                    "current-context": "real",
                }
            )
        )
        return path

    def start_api_server(self) -> None:
        """Start the API server on its port and wait for /readyz."""
        files = self._directory
        self._start(
            "kube-apiserver",
            f"--etcd-servers={self._etcd}",
            "--bind-address=127.0.0.1",
            f"--secure-port={self._port}",
            f"--tls-cert-file={files / 'server.pem'}",
            f"--tls-private-key-file={files / 'server.key'}",
            f"--token-auth-file={files / 'tokens.csv'}",
            f"--service-account-key-file={files / 'server.key'}",
            f"--service-account-signing-key-file={files / 'server.key'}",
            "--service-account-issuer=https://kubernetes.default.svc",
            "--authorization-mode=RBAC",
            "--enable-admission-plugins=OwnerReferencesPermissionEnforcement",
            "--service-cluster-ip-range=10.96.0.0/16",
            "--allow-privileged=true",
            "--endpoint-reconciler-type=none",
            f"--cert-dir={files / 'certs'}",
        )
        self._await("kube-apiserver", f"{self.server}/readyz")

    def _start_etcd(self) -> None:
        self._start(
            "etcd",
            f"--data-dir={self._directory / 'etcd'}",
            f"--listen-client-urls={self._etcd}",
            f"--advertise-client-urls={self._etcd}",
            f"--listen-peer-urls=http://127.0.0.1:{free_port()}",
            "--unsafe-no-fsync",
            # it has no peers that expect its heartbeat
            "--heartbeat-interval=1000",
            "--election-timeout=10000",
            "--log-level=error",
        )
        self._await("etcd", f"{self._etcd}/health")

    def _start_controller_manager(self) -> None:
        kubeconfig = self.kubeconfig("controller-manager")
        self._start(
            "kube-controller-manager",
            f"--kubeconfig={kubeconfig}",
            f"--authentication-kubeconfig={kubeconfig}",
            f"--authorization-kubeconfig={kubeconfig}",
            f"--service-account-private-key-file={self._directory / 'server.key'}",
            f"--root-ca-file={self.ca}",
            "--use-service-account-credentials=true",
            "--leader-elect=false",
            "--bind-address=127.0.0.1",
            f"--secure-port={free_port()}",
            "--kube-api-qps=1000",
            "--kube-api-burst=2000",
            f"--controllers={','.join(['*', *(f'-{name}' for name in _WITHOUT)])}",
            f"--cert-dir={self._directory / 'certs-kcm'}",
        )

    def _start_scheduler(self) -> None:
        config = self._directory / "scheduler.yaml"
        config.write_text(_SCHEDULER_CONFIG.format(kubeconfig=self.kubeconfig("scheduler")))
        self._start(
            "kube-scheduler",
            f"--config={config}",
            "--bind-address=127.0.0.1",
            f"--secure-port={free_port()}",
            f"--cert-dir={self._directory / 'certs-scheduler'}",
        )

    def _write_files(self) -> None:
        authority = trustme.CA()
        certificate = authority.issue_cert("127.0.0.1", "localhost", "kubernetes.default.svc")
        authority.cert_pem.write_to_path(self.ca)
        certificate.private_key_pem.write_to_path(self._directory / "server.key")
        certificate.cert_chain_pems[0].write_to_path(self._directory / "server.pem")
        self._write_tokens()

    def _write_tokens(self) -> None:
        lines = [f'{self.tokens[user]},{name},{user},"{group}"' for user, (name, group) in _USERS.items()]
        (self._directory / "tokens.csv").write_text("\n".join(lines) + "\n")

    def _start(self, name: str, *arguments: str) -> None:
        with (self._directory / f"{name}.log").open("ab") as log:
            self._processes[name] = subprocess.Popen(
                [str(BINARIES / name), *arguments],
                stdout=log,
                stderr=log,
                stdin=subprocess.DEVNULL,
                env=os.environ | _GARBAGE,
            )

    def _end(self, name: str) -> None:
        # none of its data is kept, so it need not end gracefully
        process = self._processes.pop(name)
        process.kill()
        process.wait()

    def _await(self, name: str, url: str, timeout: float = 60.0) -> None:
        # An OS process is waited for, so this is real time
        deadline = time.monotonic() + timeout  # noqa: TID251
        with urllib3.PoolManager(ca_certs=str(self.ca), retries=False, timeout=2.0) as pool:
            while time.monotonic() < deadline:  # noqa: TID251
                if self._processes[name].poll() is not None:
                    break
                with contextlib.suppress(urllib3.exceptions.HTTPError):
                    answer = pool.request("GET", url, headers={"authorization": f"Bearer {self.tokens['admin']}"})
                    if answer.status == 200:
                        return
                time.sleep(0.05)  # noqa: TID251
        raise RuntimeError(f"{name} did not become ready:\n{self.log(name)}")

    def log(self, name: str, characters: int = 3000) -> str:
        """The end of a process's log."""
        return (self._directory / f"{name}.log").read_text(errors="replace")[-characters:]


def free_port() -> int:
    """A free port of loopback."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@contextlib.contextmanager
def running(directory: Path, *, api_only: bool = False) -> Iterator[ControlPlane]:
    """A control plane, or its API alone, for as long as the block runs."""
    control_plane = ControlPlane(directory)
    try:
        if api_only:
            control_plane.start_api()
        else:
            control_plane.start()
        yield control_plane
    finally:
        control_plane.stop()


def require_or_reason() -> str | None:
    """Why the tests on the real control plane can't run here; None when they can.

    Raises RuntimeError instead where everything is required, as in CI.
    """
    missing = missing_binaries()
    if not missing:
        return None
    reason = f"no real control plane ({', '.join(missing)} missing): run `make controlplane`"
    if os.environ.get("REQUIRE_EVERYTHING"):
        raise RuntimeError(reason)
    return reason
