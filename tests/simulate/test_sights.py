"""Events that wait for something to be seen."""

import pytest

from simulate.engine.engine import Engine
from simulate.engine.events import Sight
from simulate.engine.plan import Edit, InvalidPlan, Plan
from simulate.engine.worlds import CLUSTERS
from simulate.run import prepare, run


def test_sees_an_object_or_the_value_of_a_field() -> None:
    engine = Engine()
    there = Sight(engine.world, "tidbclusters.pingcap.com/basic")
    field = Sight(engine.world, "tidbclusters.pingcap.com/basic/spec/pd/replicas")
    missing = Sight(engine.world, "tidbclusters.pingcap.com/basic/status/pd/failureMembers")
    assert [False] * 3 == [each.is_seen() for each in (there, field, missing)]
    engine.apply(CLUSTERS["tiny"]())
    assert [True, True, False] == [each.is_seen() for each in (there, field, missing)]


def test_refuses_a_sight_that_names_no_object() -> None:
    with pytest.raises(InvalidPlan, match="'pods' is no `plural"):
        Sight(Engine().world, "pods")


@pytest.mark.slow
def test_an_edit_happens_once_after_its_object_appears() -> None:
    edits = (
        Edit(at=1.0, spec={"tidb": {"replicas": 2}}),
        Edit(once="pods/basic-tidb-1", later=20.0, spec={"tidb": {"replicas": 1}}),
    )
    plan = Plan(name="once", cluster="tiny", budget=60.0, edits=edits, reference=False)
    outcome = run(prepare(plan), plan)
    assert outcome.passed, outcome.violations
    assert 2 == sum("statefulsets.apps basic-tidb" in write for write in outcome.writes)


@pytest.mark.slow
def test_a_plan_fails_if_one_of_its_events_never_happens() -> None:
    plan = Plan(name="never", cluster="tiny", budget=1.0, edits=(Edit(once="pods/basic-tidb-7"),), reference=False)
    (violation,) = run(prepare(plan), plan).violations
    assert ("O10", "an event waits for pods/basic-tidb-7, which has not come") == (violation.rule, violation.what)
