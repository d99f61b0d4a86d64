"""The controller-manager as a separate process, and its cost (Linux: /proc)."""

import os
import re
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

import urllib3

_PATIENCE = 60.0
"""Seconds for the metrics page, 4 MB for 1,000 clusters."""
_TICKS = os.sysconf("SC_CLK_TCK")
_SAMPLE = re.compile(
    r'^rest_client_requests_total\{code="[^"]*",host="[^"]*",method="([A-Z]+)"\} ([0-9.e+]+)$', re.MULTILINE
)


class Cost:
    """The cost of a running process."""

    def __init__(self, pid: int) -> None:
        self._proc = Path(f"/proc/{pid}")

    def cpu_seconds(self) -> float:
        """User and system time so far."""
        fields = (self._proc / "stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / _TICKS

    def peak_memory(self) -> float:
        """The largest resident size so far, in MB (VmHWM)."""
        return self._megabytes("VmHWM")

    def memory(self) -> float:
        """The resident size now, in MB (VmRSS)."""
        return self._megabytes("VmRSS")

    def _megabytes(self, field: str) -> float:
        found = re.search(rf"^{field}:\s+(\d+) kB", (self._proc / "status").read_text(), re.MULTILINE)
        return int(found[1]) / 1024 if found else 0.0


_AS_IN_THE_IMAGE = (
    "import sys; sys.modules['rich'] = None; from controller_manager.__main__ import main; sys.exit(main())"
)
"""structlog loads rich where it is installed, 4 MB that the image lacks."""

OF_THE_DEPLOYMENT = {"MALLOC_MMAP_THRESHOLD_": "131072", "MALLOC_ARENA_MAX": "1"}
"""How the Deployment sets the allocator of glibc.

Without the threshold, each thread keeps pieces of long answers: up to 90 MiB more after two minutes beside hostile
servers. The one arena saves 3 MB with 100 clusters.
"""


class OperatorProcess:
    """Starts at construction, as in its pod; its log is a temporary file. `cost` is its cost so far."""

    def __init__(self, kubeconfig: Path, port: int, flags: list[str], environ: Mapping[str, str]) -> None:
        self._port = port
        self._log = tempfile.TemporaryFile()  # noqa: SIM115  (open as long as the process)
        self._process = subprocess.Popen(  # noqa: S603  (our own program)
            [
                *(sys.executable, "-c", _AS_IN_THE_IMAGE),
                f"--kubeconfig={kubeconfig}",
                f"--metrics-addr=127.0.0.1:{port}",
                *flags,
            ],
            env={**os.environ, **OF_THE_DEPLOYMENT, **environ},
            stdout=self._log,
            stderr=self._log,
        )
        self.cost = Cost(self._process.pid)

    def sample(self, series: str) -> float:
        """The value of a series, as the metrics page writes its name and labels; 0 if it is missing."""
        try:
            found = re.search(rf"^{re.escape(series)} (\S+)$", self._page("/metrics"), re.MULTILINE)
        except urllib3.exceptions.HTTPError:
            return 0.0
        return float(found[1]) if found else 0.0

    def kill(self) -> None:
        """Kill it, as when its node is lost, and wait."""
        self._process.kill()
        self._process.wait()

    def requests(self) -> Counter[str]:
        """The requests to the API server so far, by HTTP method, including watches."""
        counts: Counter[str] = Counter()
        for method, value in _SAMPLE.findall(self._page("/metrics")):
            counts[method] += int(float(value))
        return counts

    def leads(self) -> bool:
        """True if it is the leader and its caches are full."""
        try:
            if "not yet read" in self._page("/readyz"):
                return False
            # checked last: with a thousand clusters this page takes a while
            metrics = self._page("/metrics")
        except urllib3.exceptions.HTTPError:
            return False
        return re.search(r"^leader_election_master_status\{.*\} 1", metrics, re.MULTILINE) is not None

    def _page(self, path: str) -> str:
        answer = urllib3.request("GET", f"http://127.0.0.1:{self._port}{path}", retries=False, timeout=_PATIENCE)
        return answer.data.decode()

    def stop(self) -> None:
        """Stop it unless it has ended, and wait."""
        self._process.send_signal(signal.SIGTERM)
        try:
            self._process.wait(40)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
