"""When to look again at what no event tells of, such as a store that is about to come up.

What has just begun is looked at soon, what lasts less and less often: a wait of a minute may go on for another few
seconds unseen, and a cluster that is ill for a day must not cost PD two rounds a second.
"""

from datetime import datetime

from apis import predicates
from member.round import Round

_SOONEST = 0.5
_LATEST = 10.0
_PART = 0.1
"""The share of the time it has lasted so far."""


def next_look(round_: Round, component: str) -> float:
    """Seconds until the next look at a component, from how long it has been progressing."""
    status = predicates.status_of(round_.tc, component)
    conditions = status.conditions if status else []
    since = next(
        (c["lastTransitionTime"] for c in conditions if (c["type"], c["status"]) == ("Progressing", "True")), ""
    )
    return max(_SOONEST, min(_PART * _age(since, round_.doors.clock.wall()), _LATEST))


def _age(since: str, now: datetime) -> float:
    try:
        return (now - datetime.fromisoformat(since)).total_seconds()
    except ValueError:
        return 0.0
