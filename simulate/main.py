"""`python -m simulate`: run plans, and report the violations of failed ones and how to repeat them.

run PLAN...        plans by file, by generated name (`tikv-out/crash-after-3`), or by seed (`seed/17`)
seeds FIRST COUNT  random plans
sweep [WORKLOAD]   every kind of fault at every write of workloads; all plans of a family (`pair`, `foreign`, ...)
record WORKLOAD    the numbered writes of a run without faults
manifests FIRST COUNT  manifests with mistakes, by seed, on the way of `make run`
mutants FIRST COUNT    objects of all kinds with a value of a wrong type that the definitions accept, by seed
mixes              every mix of components, with and without TLS and a PD of its own
truth [NAME]           plan changes on twins, make them in their worlds, and compare
traces record FILE     write the writes of plans to a file
traces compare A B     show what differs in the writes of two files, of two commits
"""

import argparse
import os
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from msgspec.structs import replace

from simulate.engine.engine import Engine
from simulate.engine.logs import silence
from simulate.engine.plan import InvalidPlan, Plan, dump, load
from simulate.engine.trace import Show
from simulate.engine.write_traces import Writes, compared, save
from simulate.engine.write_traces import load as load_traces
from simulate.families.generate import FAMILIES, KINDS, family, generated, sweep
from simulate.families.seeds import random_plan
from simulate.families.workloads import WORKLOADS
from simulate.fork_pool import Broken, ForkPool, Report
from simulate.judge.alerts import CannotEvaluate, Recorded, misjudged
from simulate.manifests import type_mutants
from simulate.manifests.mixes import judge_mixes, mixes
from simulate.manifests.newcomers import DEFECT, Verdict, judge_all
from simulate.oracles import Reference, compare, compare_with_direct, direct_plan, reference
from simulate.run import Outcome, prepare, run
from simulate.truth import changes, drill_comes_true, plan_comes_true

_REFERENCE_SEEDS = (1, 2)
_CHANGING = ("pair", "field", "order", "flip", "midway")
"""The families of changes whose plans must come true."""
_RANDOM_PLANS = 200
"""The number of random plans whose writes `traces record` keeps."""

_CountWrites = Callable[[Plan], int]
"""Returns the number of writes of a plan without faults."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; exit code 1 if a plan failed, 2 for an invalid plan."""
    options = _parser().parse_args(arguments)
    silence()
    try:
        return _COMMANDS[options.command](options)
    except InvalidPlan as error:
        print(f"error: {error}", file=sys.stderr)
        return 2


def find(name: str) -> Plan:
    """The plan of a file or name. Raises InvalidPlan, OSError."""
    if name.endswith((".yaml", ".yml")):
        return load(Path(name))
    kind, _, number = name.partition("/")
    if kind == "seed" and number.isdecimal():
        return random_plan(int(number))
    return generated(name)


def _run(options: argparse.Namespace) -> int:
    plans = [find(name) for name in options.plans]
    return _Campaign(options, print if options.trace else None).judge(plans)


def _seeds(options: argparse.Namespace) -> int:
    return _Campaign(options).judge(map(random_plan, range(options.first, options.first + options.count)))


def _sweep(options: argparse.Namespace) -> int:
    campaign = _Campaign(options)
    kinds = tuple(options.kinds.split(",")) if options.kinds else tuple(KINDS)
    names = options.workloads or list(WORKLOADS)
    found = campaign.found(lambda writes: [plan for name in names for plan in _swept(name, writes, kinds)])
    return campaign.judge(found[options.first :: options.every])


def _swept(name: str, writes: _CountWrites, kinds: tuple[str, ...]) -> Iterator[Plan]:
    """The plans of a family or of a workload."""
    return family(name, writes) if name in FAMILIES else sweep(name, writes(generated(name)), kinds)


def _record(options: argparse.Namespace) -> int:
    plan = generated(options.workload)
    outcome = run(prepare(plan), plan)
    for number, write in enumerate(outcome.writes, 1):
        print(f"{number:4} {write}")
    return 0 if outcome.passed else 1


def _manifests(options: argparse.Namespace) -> int:
    """Check manifests by seed; 1 if one neither became Ready nor got a message."""
    seeds = range(options.first, options.first + options.count)
    return _report("manifests", seeds, judge_all(seeds, options.jobs))


def _mutants(options: argparse.Namespace) -> int:
    """Check objects with values of wrong types by seed; 1 if the operator raised or reported nothing."""
    seeds = range(options.first, options.first + options.count)
    return _report("mutants", seeds, type_mutants.judge_all(seeds, options.jobs))


def _report(command: str, seeds: range, verdicts: Iterable[Verdict]) -> int:
    ends: Counter[str] = Counter()
    for verdict in verdicts:
        ends[verdict.outcome] += 1
        if verdict.outcome == DEFECT:
            print(f"FAILED  {command}, seed {verdict.seed}\n{verdict.told}")
            print(f"  see it again: python -m simulate {command} {verdict.seed} 1", flush=True)
    counts = ", ".join(f"{count} {end}" for end, count in sorted(ends.items()))
    print(f"{command} of seeds {seeds.start} to {seeds.stop - 1}: {counts}")
    return 1 if ends[DEFECT] else 0


def _mixes(options: argparse.Namespace) -> int:
    """Check mixes of components; 1 if one neither became Ready nor got a message."""
    ends: Counter[str] = Counter()
    for mix, verdict in judge_mixes(mixes()[:: options.every], options.jobs):
        ends[verdict.outcome] += 1
        if verdict.outcome == DEFECT:
            print(f"FAILED  {mix.name}\n{verdict.told}", flush=True)
    print(f"mixes of components: {', '.join(f'{count} {end}' for end, count in sorted(ends.items()))}")
    return 1 if ends[DEFECT] else 0


def _truth(options: argparse.Namespace) -> int:
    """Compare plans, or drills, with what happens; 1 if one differs."""
    plans = (plan for name in options.names or _CHANGING for plan in _changing(name))
    work, command = (drill_comes_true, "truth --drills") if options.drills else (plan_comes_true, "truth")
    count = failed = 0
    for report in ForkPool(work, options.jobs).run(list(changes(plans))[options.first :: options.every]):
        count += 1
        if isinstance(report, Broken) or not report.passed:
            failed += 1
            _print_failure(report, command)
    print(f"{count} {'drills of a loss' if options.drills else 'plans'} compared with what happened, {failed} differ")
    return 1 if failed else 0


def _changing(name: str) -> Iterator[Plan]:
    """The plans of a family, whatever the number of their writes; or one plan."""
    return family(name, lambda _: 0) if name in FAMILIES else iter([find(name)])


def _record_traces(options: argparse.Namespace) -> int:
    """Write the writes of plans to a file; 1 if the simulator failed in one."""
    plans = _Campaign(options).found(lambda writes: list(_traced(options, writes)))
    traces: dict[str, Writes] = {}
    broken: list[Broken] = []
    for report in ForkPool(_collected, options.jobs).run(plans):
        if isinstance(report, Broken):
            broken.append(report)
        else:
            traces[report.plan.name] = report.sent
    for each in broken:
        _print_failure(each)
    save(options.file, traces)
    print(f"{len(traces)} plans, {sum(map(len, traces.values()))} writes, {options.file.stat().st_size} bytes")
    return 1 if broken else 0


def _traced(options: argparse.Namespace, writes: _CountWrites) -> Iterator[Plan]:
    """A sample of each named family and workload, or of all, and of the random plans."""
    for name in options.names or [*WORKLOADS, *FAMILIES]:
        if name in WORKLOADS or name in FAMILIES:
            yield from list(_swept(name, writes, tuple(KINDS)))[:: options.every]
        else:
            yield find(name)
    if not options.names:
        yield from map(random_plan, range(0, _RANDOM_PLANS, options.every))


def _collected(engine: Engine, plan: Plan) -> Outcome:
    writes = engine.trace.collect()
    outcome = run(engine, plan)
    return replace(outcome, sent=tuple(writes))


def _compare_traces(options: argparse.Namespace) -> int:
    """Show the differences of two files; 1 if there are any."""
    before, after = load_traces(options.before), load_traces(options.after)
    lines = list(compared(before, after))
    print("\n".join(lines or [f"{len(before)} plans, no write differs"]))
    return 1 if lines else 0


_COMMANDS: Mapping[str, Callable[[argparse.Namespace], int]] = {
    "run": _run,
    "seeds": _seeds,
    "sweep": _sweep,
    "record": _record,
    "manifests": _manifests,
    "mutants": _mutants,
    "mixes": _mixes,
    "truth": _truth,
    "traces record": _record_traces,
    "traces compare": _compare_traces,
}


class _Campaign:
    """Many plans, their reference runs, and the final report."""

    def __init__(self, options: argparse.Namespace, show: Show | None = None) -> None:
        self._always = options.check_always
        self._show = show
        self._pool = ForkPool(self._work, options.jobs)
        self._recorded: dict[str, dict[int, Outcome]] = {}

    def judge(self, plans: Iterable[Plan]) -> int:
        """Run the plans; 1 if one failed."""
        count = failed = 0
        recorded: list[Recorded] = []
        for report in self._reports(list(plans)):
            count += 1
            if isinstance(report, Outcome) and report.alerts:
                recorded.append(report.alerts)
            if isinstance(report, Outcome) and report.passed:
                if self._show is not None:
                    print(f"passed  {report.plan.name}  trace {report.digest}")
                continue
            failed += 1
            _print_failure(report)
        failed += _print_misjudged(recorded)
        print(f"{count} plans, {failed} failed")
        return 1 if failed else 0

    def found(self, plans_of: Callable[[_CountWrites], list[Plan]]) -> list[Plan]:
        """The plans that depend on the numbers of writes of other plans without faults."""
        asked: list[Plan] = []

        def note(plan: Plan) -> int:
            asked.append(plan)
            return 0

        plans_of(note)
        # a count needs one run; plans that are chosen later need the others
        first = _REFERENCE_SEEDS[0]
        self._record(asked, [first])
        return plans_of(lambda plan: len(self._recorded[plan.workload][first].writes))

    def _reports(self, plans: list[Plan]) -> Iterator[Report]:
        self._record([plan for plan in plans if plan.reference and plan.faults])
        self._record(filter(None, map(direct_plan, plans)))
        known = {key: reference(list(runs.values())) for key, runs in self._recorded.items()}
        for report in self._pool.run(plans):
            yield report if isinstance(report, Broken) else _compared(report, known)

    def _record(self, plans: Iterable[Plan], seeds: Sequence[int] = _REFERENCE_SEEDS) -> None:
        """Run missing reference runs. Raises InvalidPlan if one fails."""
        workloads = {plan.workload: plan.without_faults() for plan in plans}
        missing = [
            replace(plan, seed=seed)
            for workload, plan in workloads.items()
            for seed in seeds
            if seed not in self._recorded.get(workload, {})
        ]
        show, self._show = self._show, None
        for report in self._pool.run(missing):
            if isinstance(report, Broken) or not report.passed:
                _print_failure(report)
                raise InvalidPlan(f"{report.plan.name} fails without any fault")
            self._recorded.setdefault(report.plan.workload, {})[report.plan.seed] = report
        self._show = show

    def _work(self, engine: Engine, plan: Plan) -> Outcome:
        engine.trace.show(self._show)
        return run(engine, plan, always=self._always)


def _compared(outcome: Outcome, known: dict[str, Reference]) -> Outcome:
    """The outcome with the findings of O1, O2 and O6."""
    plan, found = outcome.plan, list(outcome.violations)
    if plan.reference and plan.workload in known:
        found += compare(outcome, known[plan.workload])
    if way := direct_plan(plan):
        found += compare_with_direct(outcome, known[way.workload])
    return replace(outcome, violations=tuple(found))


def _print_misjudged(recorded: Sequence[Recorded]) -> int:
    """Show the plans whose outage the shipped alerts miss; how many they are."""
    try:
        found = misjudged(recorded)
    except CannotEvaluate as error:
        print(f"the alerts on {len(recorded)} outages were not evaluated: {error}")
        return 0
    for plan, what in found.items():
        print(f"FAILED  {plan}\n  O8: {'; '.join(what)}\n  see it again: python -m simulate run {plan}", flush=True)
    return len(found)


def _print_failure(report: Report, command: str = "run --trace") -> None:
    plan = report.plan
    print(f"FAILED  {plan.name}")
    print("".join(f"    {line}\n" for line in dump(plan).splitlines()), end="")
    if isinstance(report, Broken):
        print(report.why)
    else:
        for violation in report.violations:
            print(f"  {violation}")
    print(f"  see it again: python -m simulate {command} {plan.name}", flush=True)


def _names() -> str:
    return f"{', '.join(WORKLOADS)}, or a family of {', '.join(FAMILIES)}"


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m simulate", description=__doc__.partition("\n")[0])
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes at a time")
    parser.add_argument("--check-always", action="store_true", help="judge every invariant at every step")
    commands = parser.add_subparsers(dest="command", required=True)
    one = commands.add_parser("run", help="run plans")
    one.add_argument("plans", nargs="+", metavar="PLAN", help="a file, `workload/kind-N`, or `seed/N`")
    one.add_argument("--trace", action="store_true", help="show who wrote what, and why")
    seeds = commands.add_parser("seeds", help="run random plans")
    seeds.add_argument("first", type=int)
    seeds.add_argument("count", type=int)
    made = commands.add_parser("manifests", help="bring manifests with mistakes in")
    made.add_argument("first", type=int, help="the first seed")
    made.add_argument("count", type=int)
    mutated = commands.add_parser("mutants", help="bring objects with values of wrong types in")
    mutated.add_argument("first", type=int, help="the first seed")
    mutated.add_argument("count", type=int)
    mixed = commands.add_parser("mixes", help="bring every mix of components in")
    mixed.add_argument("--every", type=int, default=1, help="take each n-th mix only")
    true = commands.add_parser("truth", help="plan changes on twins, make them in their worlds, and compare")
    true.add_argument("names", nargs="*", metavar="PLAN", help=f"a plan or a family; default: {', '.join(_CHANGING)}")
    true.add_argument("--drills", action="store_true", help="lose something in the middle of each change")
    true.add_argument("--every", type=int, default=1, help="take each n-th change only")
    true.add_argument("--from", type=int, default=0, dest="first", help="leave out so many before the first one")
    swept = commands.add_parser("sweep", help="run a fault at every write")
    swept.add_argument("workloads", nargs="*", metavar="WORKLOAD", help=f"of {_names()}; default: all workloads")
    swept.add_argument("--kinds", default="", help=f"of {','.join(KINDS)}; default: all")
    swept.add_argument("--every", type=int, default=1, help="take each n-th plan only")
    swept.add_argument("--from", type=int, default=0, dest="first", help="leave out so many before the first one")
    recorded = commands.add_parser("record", help="show the numbered writes of a workload")
    recorded.add_argument("workload", choices=list(WORKLOADS))
    _add_traces(commands.add_parser("traces", help="record and compare the writes of plans"))
    return parser


def _add_traces(parser: argparse.ArgumentParser) -> None:
    commands = parser.add_subparsers(dest="traces", required=True)
    recorded = commands.add_parser("record", help="write the writes of plans to a file")
    recorded.set_defaults(command="traces record")
    recorded.add_argument("file", type=Path)
    recorded.add_argument(
        "names", nargs="*", metavar="PLAN", help=f"a plan, or one of {_names()}; default: all of these"
    )
    recorded.add_argument("--every", type=int, default=1, help="take each n-th plan of a family or a workload only")
    differing = commands.add_parser("compare", help="show what differs in two files")
    differing.set_defaults(command="traces compare")
    differing.add_argument("before", type=Path)
    differing.add_argument("after", type=Path)
