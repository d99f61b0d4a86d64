"""`tidb-operator plan`: what a change of manifests would do to their clusters, found by a rehearsal in a sandbox.

The command reads files only. It brings the clusters of `--from` up, with this operator and simulated servers on a
simulated clock, applies `--to`, and reports which pods restart, what serves meanwhile, and what the operator rejects.
"""

import argparse
import os
import tempfile
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from msgspec import to_builtins

from apis.cluster_kinds import CLUSTER_MODELS
from apis.components import component_type
from cli import certs, manifests, markdown, report_page
from cli.failures import Failure
from cli.manifests import Manifest
from cli.policies import MAX_RESTARTS, MINIMA, Policy, add_policies
from cli.tidb.output import PLAN_FORMATS, Columns, Output, Page, output_for
from cli.timeline import Bar, Timeline, bar_of_lack, bars_of, lack, row, span
from controller_manager.logs import configure_logs
from kube.errors import ApiError
from kube.field_change import FieldChange
from kube.objects import Json
from ports.clock import Clock, SystemClock
from rehearsal.change import APPLIED, ZONES, rehearse
from rehearsal.forecast import Act, Floor, Forecast, Gap, Step
from rehearsal.stage import CannotRehearse

GOES, DOES_NOT, FAILED = 0, 1, 2
"""The exit codes: the change goes through while the clusters serve, or not, or it breaks a policy; or the rehearsal is
impossible."""


class PlanFailed(Failure):
    """Raised if the rehearsal is impossible."""

    code = FAILED


def run(arguments: Sequence[str], environ: Mapping[str, str] = os.environ) -> int:
    """Run the command and return the exit code. Raises Failure, ApiError."""
    parser = argparse.ArgumentParser(
        "tidb-operator plan",
        description=textwrap.dedent(__doc__),
        epilog="Exit codes: 0 the change goes through and all serve meanwhile, 1 it is refused, gets stuck, or stops "
        "something for a while, or a --policy is broken, 2 it could not be rehearsed.",
        allow_abbrev=False,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--from", dest="before", type=Path, action="append", default=[], metavar="FILE", help=_FROM)
    parser.add_argument("--to", dest="after", type=Path, action="append", required=True, metavar="FILE", help=_TO)
    parser.add_argument("-o", "--output", default=PLAN_FORMATS[0], choices=PLAN_FORMATS, help="default: table")
    add_policies(parser)
    given = parser.parse_args(arguments)
    before, after = (
        [manifest for path in paths for manifest in manifests.read(path)] for paths in (given.before, given.after)
    )
    with silent(SystemClock()):
        plan = replace(plan_of(before, after, SystemClock()), policies=given.policies)
    show(plan, output_for(given.output, environ, no_color=False))
    return plan.code


@contextmanager
def silent(clock: Clock) -> Iterator[None]:
    """Drop the log of a rehearsal."""
    with Path(os.devnull).open("w", encoding="utf-8") as nowhere:
        configure_logs(-1, clock=clock, stream=nowhere)
        yield


def show(plan: "Plan", output: Output) -> None:
    """Print a plan in the requested form."""
    others = {"markdown": lambda: markdown_of(plan), "html": lambda: html_of(plan)}
    output.show(plan.document, lambda: page_of(plan), others)


_FROM = "manifests of the clusters as they are; without it, the plan is for new clusters"
_TO = "manifests of the clusters as they should become (- is standard input); repeat for more files"


@dataclass(frozen=True, slots=True)
class Basis:
    """What a plan assumes: a sentence, and the same for programs. `remarks` say how its world differs from the real."""

    assumed: str
    document: Json
    remarks: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Plan:
    """The result of a rehearsal. `left_out` are the objects that it ignores, `changes` the changed fields by object."""

    forecasts: Mapping[str, Forecast]
    left_out: Sequence[str]
    basis: Basis
    policies: Sequence[Policy] = ()
    changes: Mapping[str, Sequence[FieldChange]] = field(default_factory=dict)

    @property
    def code(self) -> int:
        """The exit code of the command."""
        return GOES if all(map(goes, self.forecasts.values())) and not any(self.breaches) else DOES_NOT

    @property
    def breaches(self) -> Sequence[str]:
        """The policies that are broken, in words."""
        pairs = ((key, forecast, policy) for key, forecast in self.forecasts.items() for policy in self.policies)
        found = ((key, policy, breach(policy, forecast.steps, forecast.floors)) for key, forecast, policy in pairs)
        return [f"{policy.name}={policy.bound} is broken by {key}: {how}" for key, policy, how in found if how]

    @property
    def document(self) -> Json:
        """The plan for programs."""
        return {
            "clusters": [{"cluster": key} | _document(each) for key, each in self.forecasts.items()],
            "changes": [_changed(key, change) for key, changes in self.changes.items() for change in changes],
            "broken": list(self.breaches),
            "assumed": self.basis.document,
            "differences": list(self.basis.remarks),
            "notRehearsed": list(self.left_out),
        }


def plan_of(before: Sequence[Manifest], after: Sequence[Manifest], clock: Clock) -> Plan:
    """Rehearse a change of manifests that is made now, by the `clock`.

    Certificates that the clusters need and the manifests lack are issued for the rehearsal. Raises Failure.
    """
    if not any(manifest.kind in CLUSTER_MODELS for manifest in after):
        raise PlanFailed(f"--to has no cluster; name a file with one of {', '.join(CLUSTER_MODELS)}")
    missing = issued([*before, *after])
    with failing():
        found = rehearse(
            [*missing, *(manifest.body for manifest in before)], [manifest.body for manifest in after], clock.wall()
        )
    return Plan(found.forecasts, left_out(after), basis_of(found.nodes), changes=found.changes)


def issued(manifests: Sequence[Manifest]) -> list[Json]:
    """Secrets with the certificates that clusters need and the manifests lack."""
    with tempfile.TemporaryDirectory(prefix="tidb-plan-") as place:
        return list(certs.secrets(manifests, Path(place)))


def basis_of(nodes: int) -> Basis:
    """What a rehearsal assumes that knows no cluster."""
    assumed = (
        f"{nodes} nodes in {ZONES} zones with room for every pod, durations of typical clusters, and an empty "
        "database: larger stores take longer"
    )
    return Basis(assumed, {"nodes": nodes, "zones": ZONES, "durations": "typical"})


@contextmanager
def failing() -> Iterator[None]:
    """Report a rehearsal that is impossible as PlanFailed."""
    try:
        yield
    except CannotRehearse as error:
        raise PlanFailed(str(error)) from None
    except ApiError as error:
        raise PlanFailed(f"the API server of the rehearsal rejects the manifests: {error.message}") from None


def left_out(manifests: Iterable[Manifest]) -> Sequence[str]:
    """The manifests that a rehearsal ignores."""
    return [
        f"{manifest.kind} {manifest.namespace}/{manifest.name}"
        for manifest in manifests
        if manifest.kind not in APPLIED
    ]


def breach(policy: Policy, steps: Sequence[Step], floors: Sequence[Floor]) -> str:
    """How steps and lowest numbers of Ready pods break a policy; empty if they do not."""
    if policy.name == MAX_RESTARTS:
        count = len({step.pod for step in steps if step.act == "restarts"})
        what = f"{count} pods restart" if count != 1 else "1 pod restarts"
        return what if count > policy.bound else ""
    component = MINIMA[policy.name]
    least = min((floor.lowest for floor in floors if floor.component == component), default=policy.bound)
    return f"{component_type(component).title} has {least} Ready pods for a while" if least < policy.bound else ""


def goes(forecast: Forecast) -> bool:
    """True if the change goes through, and everything serves meanwhile."""
    return forecast.end == "done" and not forecast.gaps


def _document(forecast: Forecast) -> Json:
    document = {"end": forecast.end, "seconds": round(forecast.seconds), "verdict": verdict(forecast)}
    parts = {"steps": forecast.steps, "lowest": forecast.floors, "gaps": forecast.gaps}
    texts = {"message": forecast.message, "warnings": list(forecast.warnings)}
    return document | texts | {name: to_builtins(part) for name, part in parts.items()}


def _changed(key: str, change: FieldChange) -> Json:
    """A change for programs, without values that are long or may contain passwords."""
    values = {"before": change.old, "after": change.new} if change.is_shown else {}
    return {"object": key, "field": change.path} | values


def verdict(forecast: Forecast) -> str:
    """The plan in one sentence."""
    what = _summary(forecast.steps)
    if forecast.end == "refused":
        return f"Refused: {forecast.message}"
    if forecast.end == "held":
        return f"{what} in about {span(forecast.seconds)}; {forecast.message}." if what else f"{forecast.message}."
    if forecast.end == "stuck":
        return f"Gets stuck after {span(forecast.seconds)}: {forecast.message}"
    if not forecast.steps:
        return "No pod restarts, starts or leaves."
    meanwhile = list(map(_sentence, forecast.gaps)) or ["all components serve meanwhile"]
    return "; ".join([f"{what} in about {span(forecast.seconds)}", *(meanwhile if forecast.floors else [])]) + "."


def _summary(steps: Sequence[Step]) -> str:
    """How many pods restart, start and leave, e.g. "8 pods restart, 1 pod leaves"."""
    counts = ((act, len({step.pod for step in steps if step.act == act})) for act in _PLURALS)
    return ", ".join(f"{count} pods {_PLURALS[act]}" if count > 1 else f"1 pod {act}" for act, count in counts if count)


_PLURALS: Mapping[Act, str] = {"restarts": "restart", "starts": "start", "leaves": "leave"}


def _sentence(gap: Gap) -> str:
    return f"{component_type(gap.component).title} {lack(gap)}"


def page_of(plan: Plan) -> Page:
    """The plan for people."""

    def lines() -> Iterator[Columns | str]:
        for key, forecast in plan.forecasts.items():
            yield f"{key}: {verdict(forecast)}"
            if changes := plan.changes.get(key):
                yield ""
                yield from map(str, changes)
            if forecast.steps:
                yield ""
                yield _table(forecast.steps)
            for warning in forecast.warnings:
                yield ""
                yield f"Warning: {warning}"
            if forecast.floors:
                yield ""
                yield lowest(forecast.floors)
            yield ""
        yield from _notes(plan)

    return lines()


def markdown_of(plan: Plan) -> str:
    """The plan as a comment in a pull request."""

    def lines() -> Iterator[str]:
        for key, forecast in plan.forecasts.items():
            yield from markdown.headed(key, f": {verdict(forecast)}")
            yield from markdown.listing(map(str, plan.changes.get(key, ())))
            yield from markdown.table(("At", "Pod", "Step"), map(row, forecast.steps))
            yield from markdown.paragraphs(f"Warning: {warning}" for warning in forecast.warnings)
            yield from markdown.paragraphs([lowest(forecast.floors)] if forecast.floors else [])
        yield from markdown.paragraphs(_notes(plan))

    return markdown.document(lines())


def html_of(plan: Plan) -> str:
    """The plan as one file for a browser."""
    clusters = (
        report_page.section(key, _parts(key, forecast, plan.changes.get(key, ())))
        for key, forecast in plan.forecasts.items()
    )
    return report_page.page("What the change would do", [*clusters, *map(report_page.paragraph, _notes(plan))])


def _parts(key: str, forecast: Forecast, changes: Sequence[FieldChange]) -> Iterator[str]:
    """What the page says about one cluster."""
    yield report_page.verdict(verdict(forecast), is_good=goes(forecast))
    yield from map(report_page.warning, forecast.warnings)
    yield report_page.listing("Changed fields", map(str, changes))
    yield report_page.timeline(timeline_of(forecast), f"Timeline of {key}")
    yield report_page.table("Steps", ("At", "Pod", "Step"), map(row, forecast.steps))
    floors = (
        (component_type(floor.component).title, f"{floor.before}", f"{floor.lowest}") for floor in forecast.floors
    )
    yield report_page.table("Ready pods", ("Component", "Before", "At least"), floors)
    gaps = ((bar.at, f"{bar.name} {bar.what}") for bar in _lacks(forecast))
    yield report_page.table("Too few pods", ("At", "Component"), gaps)


def timeline_of(forecast: Forecast) -> Timeline:
    """The steps of a change, and the times in which a component has too few pods."""
    return Timeline([*bars_of(forecast.steps), *_lacks(forecast)], forecast.seconds)


def _lacks(forecast: Forecast) -> Sequence[Bar]:
    """The times in which a component has too few pods, in order."""
    return [bar_of_lack(gap) for gap in sorted(forecast.gaps, key=lambda each: each.begins)]


def _notes(plan: Plan) -> Iterator[str]:
    others = ((key, changes) for key, changes in plan.changes.items() if key not in plan.forecasts)
    yield from (f"{key}: {change}" for key, changes in others for change in changes)
    yield from (f"Policy {each}." for each in plan.breaches)
    yield from plan.basis.remarks
    yield from (f"Not rehearsed: {each}." for each in plan.left_out)
    yield f"Assumed: {plan.basis.assumed}."


def lowest(floors: Sequence[Floor]) -> str:
    """The lowest numbers of Ready pods, in a sentence."""
    return f"Ready at least: {', '.join(map(_floor, floors))}."


def _floor(floor: Floor) -> str:
    return f"{component_type(floor.component).title} {floor.lowest} of {floor.before}"


def _table(steps: Sequence[Step]) -> Columns:
    table = Columns("AT", "POD", "STEP")
    for step in steps:
        table.add(*row(step))
    return table
