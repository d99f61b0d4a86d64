"""Series as Prometheus would have recorded them, written down for `promtool test rules`."""

from collections.abc import Iterable, Mapping
from pathlib import Path

import msgspec
from prometheus_client import CollectorRegistry

RULES = Path(__file__).parents[2] / "manifests" / "monitoring" / "alerts.yaml"

_MISSING = "_"


class Recording:
    """Scrapes of processes, one a minute. `targets` are their registries by `instance`."""

    def __init__(self, targets: Mapping[str, CollectorRegistry]) -> None:
        self._targets = targets
        self._series: dict[str, list[str]] = {}
        self._scrapes = 0

    def scrape(self) -> None:
        """Scrape all of them once."""
        for values in self._series.values():
            values.append(_MISSING)
        for instance, registry in self._targets.items():
            for family in registry.collect():
                for sample in family.samples:
                    name = _series(sample.name, sample.labels | {"instance": instance, "job": "tidb-operator"})
                    values = self._series.setdefault(name, [_MISSING] * (self._scrapes + 1))
                    values[-1] = f"{sample.value:.17g}"
        self._scrapes += 1

    def write(self, path: Path, firing: Iterable[Mapping[str, str]]) -> None:
        """A test for promtool: at the last scrape these alerts on clusters fire, no others; each is its labels."""
        fired = [{"labels": _series("ALERTS", {**each, "alertstate": "firing"}), "value": 1} for each in firing]
        query = {
            "expr": 'ALERTS{alertstate="firing", alertname=~"TidbCluster.*"}',
            "eval_time": f"{self._scrapes - 1}m",
            "exp_samples": sorted(fired, key=lambda each: str(each["labels"])),
        }
        series = [{"series": name, "values": " ".join(values)} for name, values in self._series.items()]
        tests = [{"interval": "1m", "input_series": series, "promql_expr_test": [query]}]
        # promtool reads YAML, and JSON is YAML that is written in no time
        path.write_bytes(msgspec.json.encode({"rule_files": [str(RULES)], "evaluation_interval": "1m", "tests": tests}))


def _series(name: str, labels: Mapping[str, str]) -> str:
    shown = ",".join(f'{key}="{value}"' for key, value in sorted(labels.items()))
    return f"{name}{{{shown}}}"
