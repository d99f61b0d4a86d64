"""A manifest is applied again after a take-over: v1.6 had left out of `config` what its schema does not know."""

from collections.abc import Iterator

import pytest

from kube.objects import Json
from ports.clock import FakeClock
from tests.takeover.halfway import NAME, Halfway

pytestmark = pytest.mark.slow

STORED = "[schedule]\n  leader-schedule-limit = 4\n"
IN_GIT: Json = {"schedule": {"leader-schedule-limit": 4, "max-store-preparing-time": "48h"}}


@pytest.fixture
def taken(clock: FakeClock) -> Iterator[Halfway]:
    """A cluster whose manifest v1.6 has stored as text."""
    made = Halfway(clock, {"pd": {"config": STORED}})
    assert set() == made.take_over()
    yield made
    made.world.stop()


@pytest.mark.rule("4.2")
def test_settings_of_pd_that_v1_6_omitted_are_added_and_one_event_says_they_have_no_effect(taken: Halfway) -> None:
    taken.world.change(pd={"config": IN_GIT})
    assert {f"{NAME}-pd-{ordinal}" for ordinal in range(3)} == taken.take_over()
    assert "Done" == taken.world.reason()
    said = "spec.pd.config.schedule.max-store-preparing-time: has no effect on a running PD; change it with pd-ctl"
    (event,) = taken.world.events("NoEffectOnRunningPD")
    assert (said, 1) == (event["message"], event["count"])


@pytest.mark.rule("4.2")
def test_changes_that_v1_6_knows_are_refused_as_before(taken: Halfway) -> None:
    taken.world.change(pd={"config": {"schedule": IN_GIT["schedule"] | {"leader-schedule-limit": 8}}})
    taken.world.run(35.0)
    assert ("InvalidSpec", []) == (taken.world.reason(), taken.world.messages("NoEffectOnRunningPD"))
