"""When to look again at what no event reports, such as a store that is about to come up.

What has just begun is looked at soon, what lasts less and less often: a wait of a minute may go on for another few
seconds unseen, and a cluster that is ill for a day must not cost PD two reconciles a second.
"""

from datetime import datetime

from apis import predicates
from apis.times import parse_time
from kube.objects import condition_of
from member.context import ClusterContext
from member.outcome import LATEST, SOONEST, poll_interval


def next_poll(ctx: ClusterContext, component: str) -> float:
    """Seconds until the next look at a component, from how long its Progressing condition has been as it is."""
    status = predicates.status_of(ctx.tc, component)
    progressing = condition_of(status.conditions if status else [], "Progressing")
    is_done = progressing.get("reason") == "Done"
    return poll_since(ctx, "" if is_done else progressing.get("lastTransitionTime") or "")


def poll_since(ctx: ClusterContext, since: str) -> float:
    """Seconds until the next look at what began at a time (RFC 3339)."""
    return poll_interval(seconds_since(since, ctx.deps.clock.wall()))


def poll_on_progress(begun: int, left: int, age: float) -> float:
    """Seconds until the next look at what goes down from `begun` to `left` in `age` seconds: half of what it will take.

    So the end is seen soon however long it lasts; what does not move is looked at as rarely as anything else.
    """
    done = begun - left
    if done <= 0 or left <= 0:
        return poll_interval(age)
    return max(SOONEST, min(age * left / done / 2, LATEST))


def seconds_since(since: str, now: datetime) -> float:
    """The age of an RFC 3339 time; 0 for what is none."""
    begun = parse_time(since)
    return (now - begun).total_seconds() if begun else 0.0


def time_left(since: str, period: float, now: datetime) -> float:
    """Seconds until a period is over that began at an RFC 3339 time; 0 where that is none.

    What seems to begin much later than now did so before the clock was put back: it is over (F44).
    """
    begun = parse_time(since)
    return max(period - abs((now - begun).total_seconds()), 0.0) if begun else 0.0
