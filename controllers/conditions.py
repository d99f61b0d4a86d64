"""Conditions of a status, of whatever kind: what the operator is doing, and how a condition is written down.

Progressing is ours:

    True     the operator is at work or waits for something that is under way
    False    the object is as its spec wants it (reason `Done`), or the operator can't go on without the user
"""

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import TypeAlias

from apis.times import parse_time, stamp
from kube.objects import Json, condition_of
from member.outcome import CONTESTED, DONE, Done, NotDone, Outcome, Refused, Waiting
from ports.foreign_text import printable

READY = "Ready"
PROGRESSING = "Progressing"

INVALID = "InvalidSpec"
"""The reason of Progressing while the spec is not valid."""

PAUSED = "Paused"
"""The reason of Progressing while the user has paused the object."""

_OF_THE_WHOLE = (INVALID, PAUSED)
"""Reasons that concern the whole object, not a component."""

CORRECTED = False, DONE, "what was named here has been corrected"
"""The value of a condition that lists what the user wrote in vain, once nothing is left of it."""

_MOST = 10
"""So many mistakes are in a message, which must stay readable."""

_REFUSALS = 6
"""So many refusals beside the first are in a message, which must stay readable."""

ConditionValue: TypeAlias = tuple[bool, str, str]
"""Whether a condition holds, its reason, its message."""


def progressing(
    outcomes: Mapping[str, Outcome], subject: str = "object", components: Collection[str] = ()
) -> ConditionValue:
    """What the operator is doing for the `subject`: the stages that need the user, else the first that is not done.

    Of several refusals the first gives the reason, and the message lists all. A stage that serves and only waits to be
    as before comes last. The message names a stage that is one of the `components`, which the user knows.
    """
    unfinished = [(stage, outcome) for stage, outcome in outcomes.items() if not isinstance(outcome, Done)]
    if unfinished:
        (stage, outcome), *others = sorted(unfinished, key=lambda each: _urgency(each[1]))
        said = outcome.message if outcome.reason in _OF_THE_WHOLE else _of_stage(stage, outcome.message, components)
        more = _other_refusals(outcome, others, components)
        # a problem of the spec is not why pods are missing
        if outcome.reason == INVALID and not more:
            more = [_of_stage(other, each.message, components) for other, each in others[:1]]
        said = "; ".join((said, *more))
        # it may be the cause of all others
        contested = [each.message for each in outcomes.values() if isinstance(each, Done) and each.reason == CONTESTED]
        said = "; ".join((said, *contested))
        return not isinstance(outcome, Refused), outcome.reason, said
    if resting := {stage: outcome for stage, outcome in outcomes.items() if outcome.reason != DONE}:
        first = next(iter(resting.values()))
        named = ", ".join(each for each in resting if each in components)
        return False, first.reason, f"{named}: {first.message}" if named else first.message
    return False, DONE, f"the {subject} matches its spec"


def _of_stage(stage: str, message: str, components: Collection[str]) -> str:
    """The message with the component that it is about; the name of another stage would read like a field."""
    return f"{stage}: {message}" if stage in components else message


def _other_refusals(first: NotDone, others: Sequence[tuple[str, NotDone]], components: Collection[str]) -> list[str]:
    """What else needs the user, without what repeats the first; of many, the last are only counted."""
    refused = [(stage, each.message) for stage, each in others if isinstance(each, Refused)]
    news = [(stage, message) for stage, message in refused if first.message not in message]
    told = list(dict.fromkeys(_of_stage(stage, message, components) for stage, message in news))
    left = len(told) - _REFUSALS
    return told if left <= 0 else [*told[:_REFUSALS], f"and {left} more refusals, in the conditions of components"]


def listed(mistakes: Sequence[object]) -> str:
    """The mistakes of a spec in one message; of many, the last are only counted."""
    more = f"; and {len(mistakes) - _MOST} more" if len(mistakes) > _MOST else ""
    return "; ".join(map(str, mistakes[:_MOST])) + more


def _urgency(outcome: NotDone) -> int:
    """The lower, the sooner it is said."""
    if isinstance(outcome, Waiting):
        return 3 if outcome.serves else 2
    return 0 if isinstance(outcome, Refused) else 1


def done(outcomes: Mapping[str, Outcome]) -> ConditionValue:
    """Ready, for what is ready when nothing is left to do."""
    _, reason, message = progressing(outcomes)
    is_done = all(isinstance(outcome, Done) for outcome in outcomes.values())
    return (True, READY, message) if is_done else (False, reason, message)


def _time(condition: Json, field: str) -> str:
    """A time in a condition; empty when others have made something of it that is none."""
    text = str(condition.get(field) or "")
    return text if parse_time(text) else ""


def with_condition(
    conditions: Sequence[Json],
    kind: str,
    value: ConditionValue,
    now: datetime,
    *,
    update_time: bool = False,
    times_status: bool = False,
) -> list[Json]:
    """The conditions with one of them set (meta/v1 Condition).

    Its time is that of its status and reason, since users read how long the reason has held; with `times_status` that
    of its status alone. `update_time`: it has a `lastUpdateTime` as well, as v1.6's own have, which moves with the
    message, too.
    """
    holds, reason, message = value
    # specs, tools and servers have a say in messages, and users print them on terminals
    message = printable(message, lines=True)
    status = "True" if holds else "False"
    # another writer may have left entries without a type; no reader knows those
    conditions = [c for c in conditions if isinstance(c.get("type"), str) and c["type"]]
    old = condition_of(conditions, kind)
    lasts = old.get("status") == status and (times_status or old.get("reason", "") == reason)
    since = _time(old, "lastTransitionTime") if lasts else ""
    timed = since and (not update_time or _time(old, "lastUpdateTime"))
    if old and timed and (old.get("reason", ""), old.get("message", "")) == (reason, message):
        return conditions
    new = {"type": kind, "status": status, "reason": reason, "message": message}
    new |= {"lastUpdateTime": stamp(now)} if update_time else {}
    new |= {"lastTransitionTime": since or stamp(now)}
    if not old:
        return [*conditions, new]
    return [new if c is old else c for c in conditions]
