"""The conclusions from the outcomes of a reconcile's stages: its failures, and the time of the next reconcile."""

from collections.abc import Mapping

from controllers.controller import Result
from controllers.errors import RequeueError
from member.outcome import Failed, Outcome, first_retry


def failed(outcomes: Mapping[str, Outcome]) -> dict[str, Failed]:
    """The failures among the outcomes, by stage."""
    return {stage: outcome for stage, outcome in outcomes.items() if isinstance(outcome, Failed)}


def result_of(outcomes: Mapping[str, Outcome]) -> Result | None:
    """The result with the shortest delay that a stage requests.

    Raises RequeueError if a stage failed without requesting a delay.
    """
    if failures := {stage: each for stage, each in failed(outcomes).items() if each.retry_after is None}:
        first = next(iter(failures.values()))
        message = "; ".join(f"{stage}: {outcome.message}" for stage, outcome in failures.items())
        raise RequeueError(first.reason, message)
    delay = first_retry(outcomes.values())
    return Result(requeue_after=delay) if delay else None


def sooner(result: Result | None, pause: float) -> Result | None:
    """The result, with a delay of at most `pause` seconds; unchanged if `pause` is 0."""
    if not pause:
        return result
    return Result(requeue_after=min(pause, (result and result.requeue_after) or pause))
