"""The controller-manager as users run it: a separate process."""

import contextlib
import os
import resource
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec
import urllib3
from prometheus_client.parser import text_string_to_metric_families

from tests.e2e.forking import Forked
from tests.e2e.waiting import eventually

ROOT = Path(__file__).parents[2]

QUICK_LEASE = ("--leader-lease-duration=2s", "--leader-renew-deadline=1500ms", "--leader-retry-period=300ms")
"""For operators that are killed: the next one takes over in seconds."""

PROGRAM = (sys.executable, "-m", "controller_manager")
"""A process that imports all it needs, as users start it."""

_CLEAN = ("KUBECONFIG", "HTTP_PROXY", "http_proxy", "NO_PROXY", "no_proxy", "NAMESPACE", "HELM_RELEASE")


def clean_environment() -> dict[str, str]:
    """The environment of this process, without variables that lead an operator to a server."""
    return {name: value for name, value in os.environ.items() if name not in _CLEAN}


class Operator:
    """One process. `said` is its output on stderr and stdout."""

    def __init__(
        self, log: Path, environ: Mapping[str, str], *flags: str, program: tuple[str, ...] | None = PROGRAM
    ) -> None:
        """Start it, with `environ` in place of what this process has of its kind. Without a `program` it is forked."""
        self._log = log
        log.touch()
        environ = clean_environment() | dict(environ)
        self._process: Forked | subprocess.Popen[bytes]
        if program is None:
            self._process = Forked(flags, environ, ROOT, log)
            return
        with log.open("ab") as output:
            self._process = subprocess.Popen(
                [*program, *flags],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                cwd=ROOT,
                env=environ,
            )

    @property
    def said(self) -> str:
        """Everything printed so far."""
        return self._log.read_text(errors="replace")

    @property
    def events(self) -> list[dict[str, Any]]:
        """The lines of the log, decoded."""
        lines = [line for line in self.said.splitlines() if line.startswith("{") and line.endswith("}")]
        return [msgspec.json.decode(line) for line in lines]

    @property
    def pid(self) -> int:
        """The id of the process."""
        return self._process.pid

    @property
    def peak_memory(self) -> int:
        """The most bytes that it has ever had resident."""
        return self._status("VmHWM") << 10

    @property
    def threads(self) -> int:
        """The number of its threads."""
        return self._status("Threads")

    @property
    def descriptors(self) -> int:
        """The number of its open files and connections."""
        return len(os.listdir(f"/proc/{self.pid}/fd"))

    @property
    def most_data(self) -> int | None:
        """The bytes of private memory that the kernel lets it have (RLIMIT_DATA); None without a limit."""
        most = resource.prlimit(self.pid, resource.RLIMIT_DATA)[1]
        return None if most == resource.RLIM_INFINITY else most

    def _status(self, name: str) -> int:
        """A number that the kernel shows of the process."""
        status = Path(f"/proc/{self.pid}/status").read_text("ascii")
        return next(int(line.split()[1]) for line in status.splitlines() if line.startswith(f"{name}:"))

    @property
    def is_running(self) -> bool:
        """True while it runs."""
        return self._process.poll() is None

    @property
    def exit_code(self) -> int | None:
        """The exit status; negative for a signal."""
        return self._process.poll()

    def signal(self, number: signal.Signals) -> None:
        """Send a signal."""
        self._process.send_signal(number)

    def kill(self) -> None:
        """SIGKILL."""
        self._process.kill()

    def wait(self, timeout: float = 20.0) -> int:
        """The exit code, once it has ended. Raises AssertionError with its log when it does not."""
        try:
            return self._process.wait(timeout)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"still running after {timeout} s:\n{self.said[-3000:]}") from None

    def stop(self) -> int:
        """SIGTERM, and the exit code."""
        self.signal(signal.SIGTERM)
        return self.wait()

    def has_said(self, **fields: object) -> bool:
        """True if a line of the log has these fields."""
        return any(all(event.get(name) == value for name, value in fields.items()) for event in self.events)

    @property
    def port(self) -> int:
        """The port of its health server; 0 before it listens."""
        return next((event["port"] for event in self.events if "serving metrics" in event["event"]), 0)

    def page(self, path: str) -> tuple[int, str]:
        """Status and text of a page of its health server, once that listens."""
        port = eventually(lambda: self.port)
        with urllib3.PoolManager(retries=False, timeout=5.0) as pool:
            answer = pool.request("GET", f"http://127.0.0.1:{port}{path}")
            return answer.status, answer.data.decode()


@contextlib.contextmanager
def running(
    log: Path, environ: Mapping[str, str], *flags: str, program: tuple[str, ...] | None = None
) -> Iterator[Operator]:
    """An operator for as long as the block runs, on a free port."""
    operator = Operator(log, environ, "--metrics-addr=127.0.0.1:0", *flags, program=program)
    try:
        yield operator
    except AssertionError as failure:
        failure.add_note(_end(operator))
        raise
    finally:
        _end(operator)


def _end(operator: Operator) -> str:
    """End an operator. Return its exit status, and where its threads hang if SIGTERM does not end it."""
    if not operator.is_running:
        return f"the operator has exited: {operator.exit_code}"
    operator.signal(signal.SIGTERM)
    try:
        return f"the operator ran until SIGTERM: {operator.wait(10.0)}"
    except AssertionError:
        before = len(operator.said)
    operator.signal(signal.SIGABRT)  # prints the stack of each thread, even if one keeps the others from running
    with contextlib.suppress(AssertionError):
        operator.wait(5.0)
    operator.kill()
    operator.wait()
    return f"the operator hung: {operator.said[before:]}"


def reaching(kubeconfig: Path, proxy: str, namespace: str = "", **more: str) -> Mapping[str, str]:
    """The environment that leads an operator into a world."""
    variables = {
        "KUBECONFIG": str(kubeconfig),
        "HTTP_PROXY": proxy,
        "ALL_PROXY": proxy,
        "NO_PROXY": "127.0.0.1,localhost",
        **more,
    }
    return variables | ({"NAMESPACE": namespace} if namespace else {})


def lease_name(environment: Mapping[str, str]) -> str:
    """The Lease of the operators with this environment."""
    return f"tidb-controller-manager-{environment['HELM_RELEASE']}"


def sample_value(page: str, name: str, labels: Mapping[str, str]) -> float:
    """The value of a series of a metrics page, 0 when it is not there."""
    samples = [sample for family in text_string_to_metric_families(page) for sample in family.samples]
    return next((each.value for each in samples if each.name == name and each.labels == labels), 0.0)


def reconciles(operator: Operator) -> float:
    """The number of reconciles of TidbClusters without a failure."""
    labels = {"controller": "tidbcluster", "result": "success"}
    return sample_value(operator.page("/metrics")[1], "controller_runtime_reconcile_total", labels)
