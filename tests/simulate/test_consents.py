"""The family *consent*: which plans there are, and what each must show in the end."""

from itertools import islice

import pytest

from apis.consent import ALLOWED_FROM
from simulate.engine.plan import Crash, InvalidPlan, Permits
from simulate.families.consents import FAMILY
from simulate.families.generate import generated


def test_finds_each_plan_by_its_name() -> None:
    for plan in islice(FAMILY.plans(), 0, None, 97):
        assert plan == generated(plan.name)


def test_an_owner_consents_and_withdraws() -> None:
    plan = generated("consent/monitor/withdrawn/none/none/crash-after-3")
    consents = [each.annotations[ALLOWED_FROM] for each in plan.edits if each.annotations]
    assert (["third, author", None], (Crash(write=3, of="*eve*"),)) == (consents, plan.faults)
    assert plan.across is not None
    assert (False, True) == (plan.across.shows, plan.across.waits)


def test_an_upgrade_changes_the_flag() -> None:
    plan = generated("consent/monitor/upgraded/none/none/none")
    assert ["allow", "consent"] == [each.flag for each in plan.faults if isinstance(each, Permits)]


@pytest.mark.parametrize(
    "rest", ["", "monitor", "monitor/never/none/none", "monitor/never/none/none/lost-x", "backup/never/none/none/none"]
)
def test_refuses_a_name_that_is_no_plan(rest: str) -> None:
    with pytest.raises(InvalidPlan, match="is no "):
        FAMILY.plan(rest)
