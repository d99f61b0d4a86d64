"""The time of the next reconcile, from the outcomes of the stages."""

import pytest

from controllers.controller import Result
from controllers.errors import RequeueError
from controllers.outcomes import result_of
from member.outcome import Done, Failed, Outcome, Refused, Waiting, in_time_for


@pytest.mark.parametrize(
    ("outcomes", "result"),
    [
        ([Done(), Waiting("W", "waits")], None),
        ([Done(retry_after=7.0)], Result(requeue_after=7.0)),
        ([Waiting("W", "waits", 9.0), Done(retry_after=7.0), Refused("R", "refused", 8.0)], Result(requeue_after=7.0)),
    ],
)
@pytest.mark.rule("3.3")
def test_the_earliest_retry_of_all_stages_counts_whatever_their_outcome(
    outcomes: list[Outcome], result: Result | None
) -> None:
    assert result == result_of({str(number): outcome for number, outcome in enumerate(outcomes)})


@pytest.mark.rule("3.3")
def test_a_failure_is_retried_with_back_off() -> None:
    with pytest.raises(RequeueError, match="b: broken"):
        result_of({"a": Done(retry_after=1.0), "b": Failed("F", "broken")})


@pytest.mark.rule("3.3")
def test_a_failure_with_a_retry_time_delays_nothing_else() -> None:
    assert Result(requeue_after=1.0) == result_of({"a": Done(retry_after=1.0), "b": Failed("F", "refused", 9.0)})
    assert Result(requeue_after=9.0) == result_of({"b": Failed("F", "refused", 9.0)})


@pytest.mark.parametrize(
    ("told", "untold", "expected"),
    [
        (Refused("R", "refused"), Waiting("W", "waits", 5.0), Refused("R", "refused", 5.0)),
        (Refused("R", "refused", 3.0), Done(retry_after=5.0), Refused("R", "refused", 3.0)),
        (Waiting("W", "waits", 9.0), Refused("R", "refused", 5.0), Waiting("W", "waits", 5.0)),
        (Done("all there"), Waiting("W", "waits"), Done("all there")),
        (Waiting("W", "waits"), Failed("F", "broken"), Waiting("W", "waits")),
        (Failed("F", "broken"), Waiting("W", "waits", 5.0), Failed("F", "broken")),
        (Failed("F", "refused", 9.0), Waiting("W", "waits", 5.0), Failed("F", "refused", 5.0)),
    ],
)
@pytest.mark.rule("3.3")
def test_a_change_without_an_event_is_noticed_at_its_time(told: Outcome, untold: Outcome, expected: Outcome) -> None:
    assert expected == in_time_for(told, untold)
