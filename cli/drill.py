"""`tidb-operator drill`: what the loss of a node, a zone, a pod or the operator would do to clusters.

The command reads files only. It brings the clusters of `--from` up in a sandbox, applies `--to` if there is one, takes
away what `--fail` names, and reports what stops serving, when the operator acts, and when all is whole again.
"""

import argparse
import os
import textwrap
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from msgspec import to_builtins

from apis.cluster_kinds import CLUSTER_MODELS
from apis.components import component_type
from cli import manifests, markdown, plan, report_page
from cli.drill_flags import add_drill_flags, check_moment
from cli.plan import Basis, PlanFailed
from cli.policies import Policy
from cli.reasons.reason import NOTHING
from cli.reasons.registry import REASONS
from cli.tidb.output import PLAN_FORMATS, Columns, Output, Page, output_for
from cli.timeline import Timeline, bar_of_lack, bars_of, lack, lasting, row, span
from kube.objects import Json
from ports.clock import Clock, SystemClock
from rehearsal.change import Scene, built
from rehearsal.damage import Damage, Failover, Hurt, Outage, Spell
from rehearsal.drill import Drilled, Loss, Moment, NoSuchThing, When, drill

HOLDS, DOES_NOT = plan.GOES, plan.DOES_NOT
"""The exit codes: the clusters serve and become whole again without help, or not, or a policy is broken."""


def run(arguments: Sequence[str], environ: Mapping[str, str] = os.environ) -> int:
    """Run the command and return the exit code. Raises Failure, ApiError."""
    parser = argparse.ArgumentParser(
        "tidb-operator drill",
        description=textwrap.dedent(__doc__),
        epilog=f"Exit codes: {EXIT_CODES}",
        allow_abbrev=False,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    before = "manifests of the clusters as they are (- is standard input); repeat for more files"
    parser.add_argument("--from", dest="before", type=Path, action="append", required=True, metavar="FILE", help=before)
    after = "manifests of a change during which something is lost; repeat for more files"
    parser.add_argument("--to", dest="after", type=Path, action="append", default=[], metavar="FILE", help=after)
    parser.add_argument("-o", "--output", default=PLAN_FORMATS[0], choices=PLAN_FORMATS, help="default: table")
    add_drill_flags(parser)
    given = parser.parse_args(arguments)
    if not given.after:
        check_moment(given, "--to")
    there, then = (
        [manifest for path in paths for manifest in manifests.read(path)] for paths in (given.before, given.after)
    )
    report = _drill(there, then, given, SystemClock())
    show(report, output_for(given.output, environ, no_color=False))
    return report.code


EXIT_CODES = (
    "0 the clusters serve and become whole again without help, 1 something stops, something is left for a human, or a "
    "--policy is broken, 2 it could not be rehearsed."
)


def _drill(
    before: Sequence[manifests.Manifest], after: Sequence[manifests.Manifest], given: argparse.Namespace, clock: Clock
) -> "Report":
    """Drill the clusters of manifests. Raises Failure."""
    if not any(manifest.kind in CLUSTER_MODELS for manifest in before):
        raise PlanFailed(f"--from has no cluster; name a file with one of {', '.join(CLUSTER_MODELS)}")
    missing = plan.issued([*before, *after])
    there, then = [*missing, *(manifest.body for manifest in before)], [manifest.body for manifest in after]
    with plan.silent(clock), plan.failing(), built(there, then, clock.wall()) as scene:
        return report_of(scene, then, given, plan.basis_of(scene.nodes))


def report_of(scene: Scene, after: Sequence[Json], given: argparse.Namespace, basis: Basis) -> "Report":
    """Drill what `--fail` and the other flags name. Raises Failure."""
    kind, name = given.fail
    loss = Loss(kind, name, given.lasting)
    try:
        drilled = drill(scene, after, loss, When(given.during, given.at, given.every_moment))
    except NoSuchThing as error:
        raise PlanFailed(str(error)) from None
    return Report(loss, drilled, basis, given.policies)


@dataclass(frozen=True, slots=True)
class Report:
    """The result of a drill: one moment, or several of which the worst is shown in full."""

    loss: Loss
    drilled: Sequence[Drilled]
    basis: Basis
    policies: Sequence[Policy] = ()

    @property
    def worst(self) -> Drilled:
        """The moment that hurts most; of equals, the first."""
        return max(self.drilled, key=lambda each: each.severity)

    @property
    def code(self) -> int:
        """The exit code of the command."""
        holds = all(holds_out(damage) for drilled in self.drilled for damage in drilled.damages.values())
        return HOLDS if holds and not self.breaches else DOES_NOT

    @property
    def breaches(self) -> Sequence[str]:
        """The policies that are broken at some moment, in words."""
        found = (
            (_moment(drilled.moment), key, policy, plan.breach(policy, each.steps, each.floors))
            for drilled in self.drilled
            for key, each in drilled.damages.items()
            for policy in self.policies
        )
        return [f"{policy.name}={policy.bound} is broken by {key} {at}: {how}" for at, key, policy, how in found if how]

    @property
    def document(self) -> Json:
        """The drill for programs."""
        worst = self.worst.moment
        return {
            "lost": str(self.loss),
            "worst": {"at": round(worst.at), "step": worst.step},
            "moments": [_of_moment(drilled) for drilled in self.drilled],
            "broken": list(self.breaches),
            "assumed": self.basis.document,
            "differences": list(self.basis.remarks),
        }


def holds_out(damage: Damage) -> bool:
    """True if a cluster serves, and becomes whole again without help."""
    return not damage.stops and damage.whole is not None


def _of_moment(drilled: Drilled) -> Json:
    clusters = [{"cluster": key, "verdict": verdict(each)} | _document(each) for key, each in drilled.damages.items()]
    return {"at": round(drilled.moment.at), "step": drilled.moment.step, "clusters": clusters}


def _document(damage: Damage) -> Json:
    ends: Json = {"end": damage.end, "reason": damage.reason, "message": damage.message, "wayOut": _way_out(damage)}
    ends["whole"] = _rounded(damage.whole)
    parts = {
        "stops": damage.outages,
        "regions": damage.spells,
        "failovers": damage.failovers,
        "lowest": damage.floors,
        "steps": damage.steps,
    }
    return ends | {name: to_builtins(part) for name, part in parts.items()}


def _rounded(seconds: float | None) -> int | None:
    return None if seconds is None else round(seconds)


# For people


def show(report: Report, output: Output) -> None:
    """Print a report in the requested form."""
    others = {"markdown": lambda: markdown_of(report), "html": lambda: html_of(report)}
    output.show(report.document, lambda: page_of(report), others)


def verdict(damage: Damage) -> str:
    """The damage in one sentence."""
    stops = [_outage(outage) for outage in damage.outages]
    stops += [_spell(spell) for spell in damage.spells if spell.hurt in ("without_copy", "without_majority")]
    parts = stops or ["all components serve"]
    if not stops:
        parts += [_spell(spell) for spell in damage.spells if spell.hurt == "without_spare"]
    parts.append("not whole again without help" if damage.whole is None else f"whole again {_after(damage.whole)}")
    # a roll may hurt the same regions once for each pod
    return f"{'; '.join(each if times == 1 else f'{each}, {times} times' for each, times in Counter(parts).items())}."


def _after(seconds: float) -> str:
    return f"after {span(seconds)}" if seconds else "at once"


def _outage(outage: Outage) -> str:
    return f"{component_type(outage.component).title} {lack(outage)}"


_HURTS: Mapping[Hurt, str] = {
    "without_copy": "have no copy on a running store",
    "without_majority": "can be neither read nor written",
    "leaderless": "must elect another leader",
    "without_spare": "have no spare replica",
}


def _spell(spell: Spell) -> str:
    what = f"{spell.most} of {spell.total} regions {_HURTS[spell.hurt]}"
    # how long an election takes is up to TiKV
    return what if spell.hurt == "leaderless" else f"{what}, {lasting(spell.seconds)}"


def _failover(failover: Failover) -> str:
    title, given_up = component_type(failover.component).title, f"the operator gives {failover.pod} up"
    if not failover.substitute:
        return f"{title}: {given_up}"
    serves = failover.serves
    ready = "which is not Ready in the end" if serves is None else f"Ready after {span(serves - failover.at)}"
    return f"{title}: {given_up} and starts {failover.substitute}, {ready}"


def events_of(damage: Damage) -> Sequence[tuple[str, str]]:
    """What happens, with its time, in order."""
    found = [(outage.begins, _outage(outage)) for outage in damage.outages]
    found += [(spell.begins, _spell(spell)) for spell in damage.spells]
    found += [(failover.at, _failover(failover)) for failover in damage.failovers]
    found += [(damage.whole, "whole again")] if damage.whole else []
    return [(f"{round(at)}s", what) for at, what in sorted(found, key=lambda each: each[0])]


def page_of(report: Report) -> Page:
    """The report for people."""

    def lines() -> Iterator[Columns | str]:
        if len(report.drilled) > 1:
            table = Columns("LOST", "STEP", "DAMAGE")
            for row in _moments(report):
                table.add(*row)
            yield table
            yield ""
        worst = report.worst
        for key, damage in worst.damages.items():
            yield f"{key}, {report.loss} lost {_moment(worst.moment)}: {verdict(damage)}"
            yield ""
            if events := events_of(damage):
                table = Columns("AT", "EVENT")
                for event in events:
                    table.add(*event)
                yield table
                yield ""
            for line in lines_of(damage):
                yield line
                yield ""
        yield from _notes(report)

    return lines()


def markdown_of(report: Report) -> str:
    """The report as a comment in a pull request."""

    def lines() -> Iterator[str]:
        if len(report.drilled) > 1:
            yield from markdown.table(("Lost", "Step", "Damage"), _moments(report))
        worst = report.worst
        for key, damage in worst.damages.items():
            where = f", {report.loss} lost {_moment(worst.moment)}"
            yield from markdown.headed(key, f"{where}: {verdict(damage)}")
            yield from markdown.table(("At", "Event"), events_of(damage))
            yield from markdown.paragraphs(lines_of(damage))
        yield from markdown.paragraphs(_notes(report))

    return markdown.document(lines())


def html_of(report: Report) -> str:
    """The report as one file for a browser."""
    worst = report.worst
    moments = _moments(report) if len(report.drilled) > 1 else ()
    clusters = (
        report_page.section(f"{key}, {report.loss} lost {_moment(worst.moment)}", _parts(key, damage))
        for key, damage in worst.damages.items()
    )
    every = report_page.table("Every moment", ("Lost", "Step", "Damage"), moments)
    notes = map(report_page.paragraph, _notes(report))
    return report_page.page("What the loss would do", [*clusters, every, *notes])


def _parts(key: str, damage: Damage) -> Iterator[str]:
    """What the page says about one cluster."""
    yield report_page.verdict(verdict(damage), is_good=holds_out(damage))
    yield report_page.timeline(timeline_of(damage), f"Timeline of {key}")
    yield report_page.table("Events", ("At", "Event"), events_of(damage))
    yield report_page.table("Steps", ("At", "Pod", "Step"), map(row, damage.steps))
    yield from map(report_page.paragraph, lines_of(damage))


def timeline_of(damage: Damage) -> Timeline:
    """What happens to the pods, and the times in which a component has too few of them."""
    return Timeline([*bars_of(damage.steps), *map(bar_of_lack, damage.outages)], damage.whole or 0.0)


def _moments(report: Report) -> Sequence[tuple[str, str, str]]:
    """A line for each moment."""
    return [
        (f"{round(drilled.moment.at)}s", drilled.moment.step or "the change begins", " ".join(map(verdict, damages)))
        for drilled in report.drilled
        for damages in [drilled.damages.values()]
    ]


def _moment(moment: Moment) -> str:
    if moment.step:
        return f"{round(moment.at)}s after the change, during the {moment.step}"
    return f"{round(moment.at)}s after the change" if moment.at else "at the beginning"


def lines_of(damage: Damage) -> Iterator[str]:
    """What a drill adds below its events: the lowest numbers, how it ends, and what is left for the user."""
    if damage.floors:
        yield plan.lowest(damage.floors)
    if damage.message:
        yield f"In the end, {damage.reason}: {damage.message.rstrip('.')}."
    if way_out := _way_out(damage):
        yield f"Left for you: {way_out}"


def _way_out(damage: Damage) -> str:
    """What the user can do at the end; empty if nothing is left, or for a reason without a page."""
    known = REASONS.get(damage.reason)
    return known.you if known and damage.message and known.you != NOTHING else ""


def _notes(report: Report) -> Iterator[str]:
    yield from (f"Policy {each}." for each in report.breaches)
    yield from report.basis.remarks
    yield "Times count from the loss."
    yield f"Assumed: {report.basis.assumed}."
