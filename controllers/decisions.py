"""The run of a cluster's stages, which is skipped while no input has changed (design: idle is free).

    observed → the same as after the last run, and caches answer the same? → reuse the outcomes
                └─ no → run the stages; if they sent nothing and changed nothing, remember the outcomes

The inputs are the object, the observations, and the answers of caches. The outcomes are not remembered if a stage asks
a server or reads the clock; then the stages run in every reconcile. With the setting `rechecks`, as in some
plans of the simulator, the stages always run, and different outcomes on the same inputs are a defect.
"""

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import TypeVar

import msgspec

from controllers.stages import Stage, Steps, broken_off
from member.context import ClusterContext, Held
from member.outcome import Done, Outcome
from ports import effects

C = TypeVar("C", bound=ClusterContext)


def decide(ctx: C, stages: Callable[[], Iterable[Stage[C]]], see: Callable[[], bytes]) -> Steps[C]:
    """Run the stages on the observations, or reuse their last outcomes, and put the outcomes into `ctx.outcomes`.

    `stages` is called if they run. `see` encodes the observations as bytes, for comparisons.
    """
    seen, decided, clock = see(), ctx.memory.decided, ctx.deps.clock
    known = decided.on(seen, clock) if _may_rest(ctx) else None
    if known is not None and not ctx.settings.rechecks:
        ctx.outcomes |= known
        return
    with effects.watched() as noted:
        yield from act(ctx, stages())
    acted = noted.count > 0 or see() != seen or not _may_rest(ctx)
    if known is not None and (acted or ctx.outcomes != known):
        ctx.outcomes["decisions"] = yield Stage("decisions", partial(_another_end, known))
    if acted:
        decided.forget()
    else:
        decided.nothing_to_do(seen, ctx.readings, ctx.outcomes, clock)


def act(ctx: C, stages: Iterable[Stage[C]]) -> Steps[C]:
    """Run the stages, except for components whose observation raised an error: their status may be wrong."""
    broken = broken_off(ctx.observations)
    for stage in stages:
        ctx.outcomes[stage.name] = broken.get(stage.name) or (yield stage)


def seen_of(ctx: ClusterContext, *more: object) -> bytes:
    """The observations of a cluster as bytes; `more` are observations that only its kind has."""
    meta = ctx.owner.metadata
    return msgspec.json.encode(
        (meta.uid, meta.resource_version, sorted(ctx.removed), ctx.observations, ctx.unavailable, ctx.tc.status, more)
    )


def _may_rest(ctx: ClusterContext) -> bool:
    """True if nothing is under way that an unchanged status might hide."""
    if ctx.held is not Held.NO or ctx.rolls_to_come:
        return False
    return {Done}.issuperset(map(type, ctx.observations.values()))


def _another_end(known: Mapping[str, Outcome], ctx: ClusterContext) -> Outcome:
    """Raise AssertionError: the inputs lack something that decisions depend on."""
    changed = {name: (known.get(name), now) for name, now in ctx.outcomes.items() if known.get(name) != now}
    raise AssertionError(f"decided otherwise on the same inputs, or did something: {changed}")
