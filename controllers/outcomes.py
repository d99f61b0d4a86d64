"""What follows from the answers of a reconcile's stages: whether it failed, and when to come back."""

from collections.abc import Mapping

from controllers.controller import Result
from controllers.errors import RequeueError
from member.outcome import Failed, Outcome, first_retry


def failed(outcomes: Mapping[str, Outcome]) -> dict[str, Failed]:
    """Those that failed, by stage."""
    return {stage: outcome for stage, outcome in outcomes.items() if isinstance(outcome, Failed)}


def result_of(outcomes: Mapping[str, Outcome]) -> Result | None:
    """When to come back: the first that a stage asks for. Raises RequeueError when one failed that asks for nothing."""
    if failures := {stage: each for stage, each in failed(outcomes).items() if each.retry_after is None}:
        first = next(iter(failures.values()))
        message = "; ".join(f"{stage}: {outcome.message}" for stage, outcome in failures.items())
        raise RequeueError(first.reason, message)
    delay = first_retry(outcomes.values())
    return Result(requeue_after=delay) if delay else None


def sooner(result: Result | None, pause: float) -> Result | None:
    """The same result, but not later than after a pause in seconds; 0 is none."""
    if not pause:
        return result
    return Result(requeue_after=min(pause, (result and result.requeue_after) or pause))
