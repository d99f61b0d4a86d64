"""The sandbox's side of the agent: one command at a time, over a Unix socket.

Unavailable    this machine cannot run pods as processes; the message says what is missing
"""

import array
import importlib.util
import json
import os
import shutil
import socket as sockets
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path

from kube.objects import Json
from sandbox.processes import agent

GATEWAY = "10.244.255.254"
"""The address of the agent and of the DNS server in the pods' network."""

_NETWORK = f"{GATEWAY}/16"
_LARGEST = 1 << 20
_TOOLS = {
    "unshare": "util-linux",
    "nsenter": "util-linux",
    "mount": "mount",
    "chroot": "coreutils",
    "ip": "iproute2",
}
"""The programs that it needs, with Debian's packages."""
_ENDS_WITHIN = 10.0


class Unavailable(Exception):
    """Raised if real processes cannot run here."""


class AgentError(Exception):
    """Raised for a command that the agent could not carry out, with its reason."""


class Agent:
    """Thread-safe. Ends with `close`, and with this process however that ends."""

    def __init__(self, state: Path, *, as_root: bool | None = None, holds: int | None = None) -> None:
        """`state` is a directory that it deletes when it ends. Without root it uses a user namespace.

        `holds` is a file descriptor that it closes after its last process has ended, e.g. one of a lock.

        Raises Unavailable.
        """
        self._lock = threading.Lock()
        ours, theirs = sockets.socketpair(sockets.AF_UNIX, sockets.SOCK_SEQPACKET)
        is_root = os.geteuid() == 0 if as_root is None else as_root
        user = [] if is_root else ["--user", "--map-root-user"]
        spaces = ["--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc"]
        program = [sys.executable, "-I", agent.__file__, _NETWORK, str(state)]
        with theirs:
            self._process = subprocess.Popen(  # noqa: S603  (its own program)
                ["unshare", *user, *spaces, *program],  # noqa: S607  (where it is differs between distributions)
                stdin=theirs.fileno(),
                stderr=subprocess.PIPE,
                pass_fds=[] if holds is None else [holds],
                start_new_session=True,
            )
        self._control = ours
        try:
            self._receive()
        except (AgentError, OSError) as error:
            stderr = self.close().strip()
            raise Unavailable(
                f"this machine cannot make namespaces for pods: {_advice(stderr or str(error))}"
            ) from None

    def ask(self, do: str, *, output: int | None = None, **arguments: object) -> Json:
        """The answer to a command; `output` is a file descriptor to pass. Raises AgentError."""
        return self._exchange(do, arguments, output)[0]

    def connect(self, address: str, port: int, timeout: float, source: str = "") -> sockets.socket:
        """A connection to a pod, from the pod whose address is `source`, if any. Raises AgentError, OSError."""
        made = sockets.socket(fileno=self._exchange("socket", {"source": source})[1][0])
        try:
            made.settimeout(timeout)
            made.connect((address, port))
        except OSError:
            made.close()
            raise
        return made

    def listen(self, address: str, port: int, kind: str = "tcp") -> sockets.socket:
        """A socket that listens in the pods' network, at any address outside pods. Raises AgentError."""
        return sockets.socket(fileno=self._exchange("listen", {"address": address, "port": port, "kind": kind})[1][0])

    def close(self) -> str:
        """Kill all processes; return what the agent has printed. Idempotent."""
        self._control.close()
        try:
            _, printed = self._process.communicate(timeout=_ENDS_WITHIN)
        except subprocess.TimeoutExpired:
            self._process.kill()
            _, printed = self._process.communicate()
        except ValueError:
            # it has ended before
            return ""
        return printed.decode("utf-8", "replace") if printed else ""

    def _exchange(self, do: str, arguments: Json, output: int | None = None) -> tuple[Json, Sequence[int]]:
        data = json.dumps({"do": do, **arguments}).encode()
        extra = [] if output is None else [(sockets.SOL_SOCKET, sockets.SCM_RIGHTS, array.array("i", [output]))]
        with self._lock:
            try:
                self._control.sendmsg([data], extra)
                return self._receive()
            except OSError as error:
                raise AgentError(f"the agent of the real processes has ended: {error}") from None

    def _receive(self) -> tuple[Json, Sequence[int]]:
        data, extra, _, _ = self._control.recvmsg(_LARGEST, sockets.CMSG_SPACE(4))
        descriptors = array.array("i")
        for level, kind, content in extra:
            if (level, kind) == (sockets.SOL_SOCKET, sockets.SCM_RIGHTS):
                descriptors.frombytes(content)
        if not data:
            raise AgentError("the agent of the real processes has ended")
        answer: Json = json.loads(data)
        if "error" in answer:
            for descriptor in descriptors:
                os.close(descriptor)
            raise AgentError(str(answer["error"]))
        return answer, descriptors


def check_tools() -> None:
    """Raises Unavailable with the names of missing programs."""
    if sys.platform != "linux":
        raise Unavailable("real processes need Linux: its namespaces are their pods")
    missing = {tool: package for tool, package in _TOOLS.items() if shutil.which(tool) is None}
    if missing:
        packages = " ".join(sorted(set(missing.values())))
        raise Unavailable(f"{', '.join(missing)} not found; install {packages} (names of Debian's packages)")
    if importlib.util.find_spec("dnslib") is None:
        raise Unavailable("the pods' DNS server needs dnslib: pip install 'tidb-operator-py[real]'")


def _advice(output: str) -> str:
    if "unshare" in output or "not permitted" in output:
        return (
            f"{output}. Run as root, or allow user namespaces: sysctl kernel.unprivileged_userns_clone=1 "
            "kernel.apparmor_restrict_unprivileged_userns=0; in a container they need CAP_SYS_ADMIN and CAP_NET_ADMIN"
        )
    return output
