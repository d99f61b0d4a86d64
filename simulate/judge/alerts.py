"""The shipped alerts on the outages of many plans, evaluated by Prometheus' promtool in one run (reliability.md O8).

A plan scrapes the operator as Prometheus does, and notes which alerts must fire at which scrape.
"""

import re
import shutil
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec
from prometheus_client import CollectorRegistry

RULES = Path(__file__).resolve().parents[2] / "manifests" / "monitoring" / "alerts.yaml"
EVERY = 15
"""Seconds between two scrapes."""

_MISSING, _STALE = "_", "stale"
_FAILED = re.compile(
    r'^ +expr: .+, time: (?P<time>\w+),\n +exp: \{plan="(?P<plan>[^"]+)"\} (?P<expected>.+)\n +got: .*$', re.MULTILINE
)
_LONGEST = 300.0
"""Seconds for which promtool may work."""


class Scrapes:
    """What Prometheus would have stored, scrape by scrape. `targets` are registries by `instance`."""

    def __init__(
        self, targets: Mapping[str, CollectorRegistry], is_wanted: Callable[[str], bool] = lambda _name: True
    ) -> None:
        """`is_wanted` says which metrics are stored, by name."""
        self._targets, self._is_wanted = targets, is_wanted
        self._series: dict[str, list[str]] = {}
        self.count = 0

    def scrape(self) -> None:
        """Scrape all of them once."""
        for values in self._series.values():
            # Prometheus ends a series as soon as a scrape lacks it
            values.append(_MISSING if values[-1] in (_MISSING, _STALE) else _STALE)
        for instance, registry in self._targets.items():
            for family in registry.collect():
                for sample in family.samples if self._is_wanted(family.name) else ():
                    name = series_name(sample.name, sample.labels | {"instance": instance, "job": "tidb-operator"})
                    values = self._series.setdefault(name, [_MISSING] * (self.count + 1))
                    values[-1] = f"{sample.value:.17g}"
        self.count += 1

    @property
    def series(self) -> Mapping[str, str]:
        """The values of each series, as promtool reads them."""
        return {name: " ".join(values) for name, values in self._series.items()}


class Expected(msgspec.Struct, frozen=True):
    """Whether the alert `alert` fires at the scrape of this number for the cluster `namespace`/`name`.

    Without `component`, for any of its components; without `reasons`, for any reason.
    """

    scrape: int
    fires: bool
    alert: str
    namespace: str
    name: str
    component: str = ""
    reasons: tuple[str, ...] = ()

    def query(self, plan: str) -> Mapping[str, object]:
        """A test in PromQL, whose answer has the name of the plan as a label: promtool names no group of tests."""
        labels = [f'alertname="{self.alert}"', 'alertstate="firing"']
        labels += [f'namespace="{self.namespace}"', f'name="{self.name}"']
        labels += [f'component="{self.component}"'] if self.component else []
        labels += [f'reason=~"{"|".join(self.reasons)}"'] if self.reasons else []
        fires = f"(count(ALERTS{{{', '.join(labels)}}}) or vector(0)) > bool 0"
        return {
            "expr": f'label_replace({fires}, "plan", "{plan}", "", "")',
            "eval_time": f"{self.scrape * EVERY}s",
            "exp_samples": [{"labels": f'{{plan="{plan}"}}', "value": int(self.fires)}],
        }


class Recorded(msgspec.Struct, frozen=True):
    """The series of a plan, and what is expected of the alerts on them."""

    plan: str
    series: dict[str, str]
    expected: tuple[Expected, ...]


class CannotEvaluate(Exception):
    """Raised where promtool is not installed, or does not do its work."""


def misjudged(recorded: Sequence[Recorded]) -> Mapping[str, Sequence[str]]:
    """What promtool finds against the alerts of plans, by the name of the plan. Raises CannotEvaluate."""
    if not recorded:
        return {}
    promtool = shutil.which("promtool")
    if promtool is None:
        raise CannotEvaluate("promtool is not installed; Debian has it in the package prometheus")
    with TemporaryDirectory() as directory:
        path = Path(directory) / "alerts.yaml"
        # promtool reads YAML, and JSON is YAML that is written in no time
        path.write_bytes(msgspec.json.encode(_tests(recorded)))
        command = [promtool, "test", "rules", str(path)]
        done = subprocess.run(  # noqa: S603  (a list of words; no shell reads them)
            command, capture_output=True, text=True, check=False, timeout=_LONGEST
        )
    said = done.stdout + done.stderr
    found = _by_plan(said)
    if bool(done.returncode) is not bool(found):
        raise CannotEvaluate(said)
    return found


def series_name(name: str, labels: Mapping[str, str]) -> str:
    """A series as promtool writes it."""
    shown = ",".join(f'{key}="{value}"' for key, value in sorted(labels.items()))
    return f"{name}{{{shown}}}"


def _tests(recorded: Sequence[Recorded]) -> Mapping[str, object]:
    tests = [
        {
            "interval": f"{EVERY}s",
            "input_series": [{"series": name, "values": values} for name, values in each.series.items()],
            "promql_expr_test": [one.query(each.plan) for one in each.expected],
        }
        for each in recorded
    ]
    return {"rule_files": [str(RULES)], "evaluation_interval": f"{EVERY}s", "tests": tests}


def _by_plan(said: str) -> Mapping[str, Sequence[str]]:
    found: dict[str, list[str]] = {}
    for each in _FAILED.finditer(said):
        what = "fires" if each["expected"].startswith("0") else "does not fire"
        found.setdefault(each["plan"], []).append(f"the alert {what} at {each['time']}")
    return found
