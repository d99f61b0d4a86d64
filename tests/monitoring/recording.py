"""Series as Prometheus would have recorded them, written down for `promtool test rules`."""

import subprocess
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec
from prometheus_client import CollectorRegistry

from kube.objects import Json
from simulate.judge.alerts import RULES, Scrapes, series_name

_SECONDS = 60
"""Between two scrapes."""

_ON_CLUSTERS = 'ALERTS{alertstate="firing", alertname=~"TidbCluster.*"}'


@dataclass(frozen=True, slots=True)
class Alerts:
    """At a scrape, by its number, these alerts on clusters fire and no others; each is its labels."""

    scrape: int
    firing: Sequence[Mapping[str, str]]


class Recording:
    """Scrapes of processes, one a minute. `targets` are their registries by `instance`."""

    def __init__(self, targets: Mapping[str, CollectorRegistry]) -> None:
        self._scrapes = Scrapes(targets)

    @property
    def scrapes(self) -> int:
        """The number of scrapes."""
        return self._scrapes.count

    def scrape(self) -> None:
        """Scrape all of them once."""
        self._scrapes.scrape()

    def write(self, path: Path, expected: Iterable[Alerts]) -> None:
        """Write a test for promtool, which evaluates the rules at each scrape."""
        every = f"{_SECONDS}s"
        series = [{"series": name, "values": values} for name, values in self._scrapes.series.items()]
        queries = [self._query(each) for each in expected]
        tests = [{"interval": every, "input_series": series, "promql_expr_test": queries}]
        # promtool reads YAML, and JSON is YAML that is written in no time
        path.write_bytes(
            msgspec.json.encode({"rule_files": [str(RULES)], "evaluation_interval": every, "tests": tests})
        )

    def _query(self, expected: Alerts) -> Json:
        fired = (
            {"labels": series_name("ALERTS", {**each, "alertstate": "firing"}), "value": 1} for each in expected.firing
        )
        return {
            "expr": _ON_CLUSTERS,
            "eval_time": f"{expected.scrape * _SECONDS}s",
            "exp_samples": sorted(fired, key=lambda each: str(each["labels"])),
        }


def judged(promtool: str, path: Path) -> str:
    """The complaints of promtool about a test; empty if it passes."""
    command = [promtool, "test", "rules", str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=200)
    return done.stdout + done.stderr if done.returncode else ""
