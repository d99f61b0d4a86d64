"""Series as Prometheus would have recorded them, written down for `promtool test rules`."""

import subprocess
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec
from prometheus_client import CollectorRegistry

from kube.objects import Json

RULES = Path(__file__).parents[2] / "manifests" / "monitoring" / "alerts.yaml"

_MISSING, _STALE = "_", "stale"


_ON_CLUSTERS = 'ALERTS{alertstate="firing", alertname=~"TidbCluster.*"}'


@dataclass(frozen=True, slots=True)
class Alerts:
    """At a scrape, by its number, these alerts on clusters fire and no others; each is its labels."""

    scrape: int
    firing: Sequence[Mapping[str, str]]


class Recording:
    """Scrapes of processes, one each so many seconds. `targets` are their registries by `instance`."""

    def __init__(self, targets: Mapping[str, CollectorRegistry], seconds: int = 60) -> None:
        self._targets = targets
        self._seconds = seconds
        self._series: dict[str, list[str]] = {}
        self.scrapes = 0

    def scrape(self) -> None:
        """Scrape all of them once."""
        for values in self._series.values():
            # Prometheus ends a series at once that is gone from a scrape
            values.append(_MISSING if values[-1] in (_MISSING, _STALE) else _STALE)
        for instance, registry in self._targets.items():
            for family in registry.collect():
                for sample in family.samples:
                    name = _series(sample.name, sample.labels | {"instance": instance, "job": "tidb-operator"})
                    values = self._series.setdefault(name, [_MISSING] * (self.scrapes + 1))
                    values[-1] = f"{sample.value:.17g}"
        self.scrapes += 1

    def write(self, path: Path, expected: Iterable[Alerts]) -> None:
        """Write a test for promtool, which evaluates the rules at each scrape."""
        every = f"{self._seconds}s"
        series = [{"series": name, "values": " ".join(values)} for name, values in self._series.items()]
        queries = [self._query(each) for each in expected]
        tests = [{"interval": every, "input_series": series, "promql_expr_test": queries}]
        # promtool reads YAML, and JSON is YAML that is written in no time
        path.write_bytes(
            msgspec.json.encode({"rule_files": [str(RULES)], "evaluation_interval": every, "tests": tests})
        )

    def _query(self, expected: Alerts) -> Json:
        fired = (
            {"labels": _series("ALERTS", {**each, "alertstate": "firing"}), "value": 1} for each in expected.firing
        )
        return {
            "expr": _ON_CLUSTERS,
            "eval_time": f"{expected.scrape * self._seconds}s",
            "exp_samples": sorted(fired, key=lambda each: str(each["labels"])),
        }


def judged(promtool: str, path: Path) -> str:
    """What promtool has to say against a test; empty when all is as expected."""
    command = [promtool, "test", "rules", str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=200)
    return done.stdout + done.stderr if done.returncode else ""


def _series(name: str, labels: Mapping[str, str]) -> str:
    shown = ",".join(f'{key}="{value}"' for key, value in sorted(labels.items()))
    return f"{name}{{{shown}}}"
