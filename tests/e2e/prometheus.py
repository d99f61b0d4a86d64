"""A real Prometheus that scrapes operators and judges our rules."""

import contextlib
import socket
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import urllib3
import yaml

from tests.e2e.operators import ROOT
from tests.e2e.waiting import eventually

MONITORING = ROOT / "manifests" / "monitoring"
JOB = "tidb-operator"


class Prometheus:
    """One process. `said` is its log."""

    def __init__(self, url: str, log: Path) -> None:
        self._url = url
        self._log = log
        self._pool = urllib3.PoolManager(retries=False, timeout=5.0)

    @property
    def said(self) -> str:
        """Everything printed so far."""
        return self._log.read_text(errors="replace")

    def is_ready(self) -> bool:
        """True if it serves queries."""
        with contextlib.suppress(urllib3.exceptions.HTTPError):
            return bool(self._pool.request("GET", f"{self._url}/-/ready").status == 200)
        return False

    def ask(self, path: str, **fields: str) -> Any:
        """The data of an answer of its API. Raises AssertionError with the error message."""
        answer = self._pool.request("GET", f"{self._url}/api/v1/{path}", fields=fields).json()
        assert answer["status"] == "success", (path, fields, answer)
        return answer["data"]

    def query(self, expression: str) -> list[tuple[Mapping[str, str], float]]:
        """Labels and values of the series of an expression, now."""
        return [(each["metric"], float(each["value"][1])) for each in self.ask("query", query=expression)["result"]]

    def close(self) -> None:
        """Close connections."""
        self._pool.clear()


@contextlib.contextmanager
def running(program: str, directory: Path, targets: Mapping[str, str]) -> Iterator[Prometheus]:
    """Prometheus with our rules, scraping every second; `targets` are addresses by `instance`."""
    configuration = {
        "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
        "rule_files": [str(MONITORING / "alerts.yaml")],
        "scrape_configs": [
            {
                "job_name": JOB,
                "honor_labels": True,
                "static_configs": [
                    {"targets": [address], "labels": {"instance": name}} for name, address in targets.items()
                ],
            }
        ],
    }
    with serving(program, directory, yaml.safe_dump(configuration)) as prometheus:
        yield prometheus


@contextlib.contextmanager
def serving(program: str, directory: Path, configuration: str) -> Iterator[Prometheus]:
    """Prometheus with its own configuration and data directory."""
    directory.mkdir(exist_ok=True)
    (directory / "prometheus.yml").write_text(configuration)
    address, log = f"127.0.0.1:{_free_port()}", directory / "prometheus.log"
    command = [
        program,
        f"--config.file={directory / 'prometheus.yml'}",
        f"--storage.tsdb.path={directory / 'data'}",
        f"--web.listen-address={address}",
    ]
    with log.open("w") as output:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, cwd=directory)
    prometheus = Prometheus(f"http://{address}", log)
    try:
        eventually(prometheus.is_ready, told=lambda: prometheus.said)
        yield prometheus
    finally:
        prometheus.close()
        process.terminate()
        process.wait(20.0)


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port: int = server.getsockname()[1]
        return port
