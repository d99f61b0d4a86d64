"""Deciding what to do for a cluster, unless nothing was to be done and no input has changed (design: idle is free).

    observed → the same as last time, when all was done, and so are the caches? → the same answers
                └─ no → the stages act; if they sent nothing and changed nothing, their answers are noted

The inputs are the object, what observing it showed, and what caches answered. Where a stage asks anybody else, or the
clock, its answer is not noted, and all act each time. With the setting `rechecks`, as in the simulator, the stages act
all the same, and it is a defect if they come to another end.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TypeVar

import msgspec

from controllers.stages import Attempt, Stage, broken_off
from member.context import ClusterContext, Held
from member.outcome import Done, Outcome
from ports import effects

C = TypeVar("C", bound=ClusterContext)


def decide(ctx: C, stages: Sequence[Stage[C]], attempt: Attempt[C], see: Callable[[], bytes]) -> None:
    """Have stages act on what was observed; what each answered is left in `ctx.outcomes`.

    `see` puts what was observed into bytes that can be compared.
    """
    seen, decided, clock = see(), ctx.memory.decided, ctx.deps.clock
    known = decided.on(seen, clock) if _may_rest(ctx) else None
    if known is not None and not ctx.settings.rechecks:
        ctx.outcomes |= known
        return
    with effects.watched() as noted:
        act(ctx, stages, attempt)
    acted = noted.count > 0 or see() != seen or not _may_rest(ctx)
    if known is not None and (acted or ctx.outcomes != known):
        ctx.outcomes["decisions"] = attempt(Stage("decisions", partial(_another_end, known)), ctx)
    if acted:
        decided.forget()
    else:
        decided.nothing_to_do(seen, ctx.readings, ctx.outcomes, clock)


def act(ctx: C, stages: Sequence[Stage[C]], attempt: Attempt[C]) -> None:
    """Have stages act, but for components whose observation broke off: what their status says is not known to hold."""
    for stage in stages:
        ctx.outcomes[stage.name] = broken_off(ctx.observations.get(stage.name)) or attempt(stage, ctx)


def seen_of(ctx: ClusterContext, *more: object) -> bytes:
    """What was observed of a cluster of any kind, and `more` that is of its own kind."""
    meta = ctx.owner.metadata
    return msgspec.json.encode(
        (meta.uid, meta.resource_version, sorted(ctx.removed), ctx.observations, ctx.unavailable, ctx.tc.status, more)
    )


def _may_rest(ctx: ClusterContext) -> bool:
    """Whether nothing is under way that an unchanged status might hide."""
    if ctx.held is not Held.NO or ctx.rolls_to_come:
        return False
    return all(isinstance(observed, Done) for observed in ctx.observations.values())


def _another_end(known: Mapping[str, Outcome], ctx: ClusterContext) -> Outcome:
    """Raise AssertionError: the inputs lack something that decisions depend on."""
    changed = {name: (known.get(name), now) for name, now in ctx.outcomes.items() if known.get(name) != now}
    raise AssertionError(f"decided otherwise on the same inputs, or did something: {changed}")
