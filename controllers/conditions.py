"""The condition Progressing of objects of every kind, and the format of conditions in a status.

v1.6 has no Progressing:

    True     the operator is working, or waits for something that is under way
    False    the object matches its spec (reason `Done`), or the operator cannot continue without the user
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
"""The reason of Progressing while the user pauses the object."""

_OF_THE_WHOLE = (INVALID, PAUSED)
"""Reasons that affect the whole object, not a component."""

CORRECTED = False, DONE, "what was named here has been corrected"
"""The value of a condition that listed fields without effect, after the user has corrected all of them."""

_MOST = 10
"""The maximum number of mistakes in a message, which must stay readable."""

_REFUSALS = 6
"""The maximum number of refusals after the first in a message, which must stay readable."""

ConditionValue: TypeAlias = tuple[bool, str, str]
"""The status of a condition (True or False), its reason, its message."""


def progressing(
    outcomes: Mapping[str, Outcome], subject: str = "object", components: Collection[str] = ()
) -> ConditionValue:
    """The value of Progressing for the `subject`: refusals, which need the user, else the most urgent unfinished stage.

    Of several refusals the first gives the reason, and the message lists all. A stage that waits while its component
    serves is the least urgent. The message names a stage only if it is one of the `components`, which users know.
    """
    unfinished = [(stage, outcome) for stage, outcome in outcomes.items() if not isinstance(outcome, Done)]
    if unfinished:
        (stage, outcome), *others = sorted(unfinished, key=lambda each: _urgency(each[1]))
        message = outcome.message if outcome.reason in _OF_THE_WHOLE else _of_stage(stage, outcome.message, components)
        more = _other_refusals(outcome, others, components)
        # an invalid spec does not explain missing pods, so the message names the next unfinished stage as well
        if outcome.reason == INVALID and not more:
            more = [_of_stage(other, each.message, components) for other, each in others[:1]]
        message = "; ".join((message, *more))
        # another operator may be the cause of everything else
        contested = [each.message for each in outcomes.values() if isinstance(each, Done) and each.reason == CONTESTED]
        message = "; ".join((message, *contested))
        return not isinstance(outcome, Refused), outcome.reason, message
    if resting := {stage: outcome for stage, outcome in outcomes.items() if outcome.reason != DONE}:
        first = next(iter(resting.values()))
        named = ", ".join(each for each in resting if each in components)
        return False, first.reason, f"{named}: {first.message}" if named else first.message
    return False, DONE, f"the {subject} matches its spec"


def _of_stage(stage: str, message: str, components: Collection[str]) -> str:
    """The message behind the name of its component. Other stages are not named: a name would read like a field."""
    return f"{stage}: {message}" if stage in components else message


def _other_refusals(first: NotDone, others: Sequence[tuple[str, NotDone]], components: Collection[str]) -> list[str]:
    """The messages of further refusals, without repetitions of the first; those above the maximum are only counted."""
    refused = [(stage, each.message) for stage, each in others if isinstance(each, Refused)]
    news = [(stage, message) for stage, message in refused if first.message not in message]
    refusals = list(dict.fromkeys(_of_stage(stage, message, components) for stage, message in news))
    left = len(refusals) - _REFUSALS
    return (
        refusals if left <= 0 else [*refusals[:_REFUSALS], f"and {left} more refusals, in the conditions of components"]
    )


def listed(mistakes: Sequence[object]) -> str:
    """The mistakes of a spec in one message; those above the maximum are only counted."""
    more = f"; and {len(mistakes) - _MOST} more" if len(mistakes) > _MOST else ""
    return "; ".join(map(str, mistakes[:_MOST])) + more


def _urgency(outcome: NotDone) -> int:
    """The sort key of an outcome: the one with the lowest key gives the reason."""
    if isinstance(outcome, Waiting):
        return 3 if outcome.serves else 2
    return 0 if isinstance(outcome, Refused) else 1


def done(outcomes: Mapping[str, Outcome]) -> ConditionValue:
    """The value of Ready for a kind whose objects are ready when all stages are done."""
    _, reason, message = progressing(outcomes)
    is_done = all(isinstance(outcome, Done) for outcome in outcomes.values())
    return (True, READY, message) if is_done else (False, reason, message)


def _time(condition: Json, field: str) -> str:
    """The time in a field of a condition; empty if another writer has put something else there."""
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
    """The conditions, with the condition of type `kind` added or updated (meta/v1 Condition).

    `lastTransitionTime` changes with status and reason, because users read how long a reason has held; with
    `times_status`, it changes with the status alone. With `update_time` the condition also has `lastUpdateTime`, as in
    v1.6, which changes with the message as well.
    """
    holds, reason, message = value
    # messages contain text from specs, tools and servers, and users print them on terminals
    message = printable(message, lines=True)
    status = "True" if holds else "False"
    # another writer may have left entries without a type, which no reader understands
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
