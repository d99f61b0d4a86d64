"""Intervals for checks of state that no event reports, such as a store that is about to start.

The operator checks a new wait soon, and a long one less and less often. After a minute, a delay of a few seconds does
not matter, and a cluster that is unhealthy for a day must not cost PD two reconciles per second. Without longer
intervals five minutes of a silent TiDB cost 961 requests, not 189 (bench/memories.json). The status has the time, so a
restart changes nothing.
"""

from datetime import datetime

from apis import predicates
from apis.times import parse_time
from kube.objects import condition_of
from member.context import ClusterContext
from member.outcome import LATEST, SOONEST, poll_interval


def next_poll(ctx: ClusterContext, component: str) -> float:
    """Seconds until the next check of a component, from the age of its condition Progressing."""
    status = predicates.status_of(ctx.tc, component)
    progressing = condition_of(status.conditions if status else [], "Progressing")
    is_done = progressing.get("reason") == "Done"
    return poll_since(ctx, "" if is_done else progressing.get("lastTransitionTime") or "")


def poll_since(ctx: ClusterContext, since: str) -> float:
    """Seconds until the next check of a state that began at `since` (RFC 3339)."""
    return poll_interval(seconds_since(since, ctx.deps.clock.wall()))


def poll_on_progress(begun: int, left: int, age: float) -> float:
    """Seconds until the next check of a count that falls from `begun` to `left` in `age` seconds.

    This is half of the estimated rest, so the operator sees the end soon, however long the whole takes. A count that
    does not fall is checked as rarely as any other wait.
    """
    done = begun - left
    if done <= 0 or left <= 0:
        return poll_interval(age)
    return max(SOONEST, min(age * left / done / 2, LATEST))


def seconds_since(since: str, now: datetime) -> float:
    """The age of an RFC 3339 time in seconds; 0 for any other text."""
    begun = parse_time(since)
    return (now - begun).total_seconds() if begun else 0.0


def time_left(since: str, period: float, now: datetime) -> float:
    """Seconds until the end of a period that began at `since` (RFC 3339); 0 for any other text.

    A time far in the future was recorded before the clock was set back: the period counts as over (F44).
    """
    begun = parse_time(since)
    return max(period - abs((now - begun).total_seconds()), 0.0) if begun else 0.0
