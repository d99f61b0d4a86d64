"""The checks can fail: a status that keeps reporting the past, also while the spec is invalid."""

from typing import Any

import pytest

import controllers.tidbcluster.conditions
import member.apply.last_applied
import member.failover.steps
import member.lifecycle.component_sync
import member.lifecycle.wanted_state
import member.tidb.status
from kube.field_change import FieldChange, first_difference
from kube.objects import Json
from kube.semantic import semantically_equal
from member.apply.last_applied import read_record
from member.observed.status import observe_pods
from simulate.engine.plan import Edit, Plan, World
from simulate.families.generate import generated
from tests.simulate.planting import broken, rules

pytestmark = [pytest.mark.slow, pytest.mark.planted]

_INVALID = Edit(at=1.0, spec={"tikv": {"version": "no version"}})


def _plan(verb: str) -> Plan:
    fault = World(at=10.0, verb=verb, arguments={"pod": "default/basic-tidb-0"}, seconds=0.0)
    return Plan(name="invalid", budget=160.0, edits=(_INVALID,), given=(fault,), ends="InvalidSpec")


@pytest.mark.rule("I36")
def test_reports_a_ready_cluster_with_unready_pods(monkeypatch: pytest.MonkeyPatch) -> None:
    assert set() == rules(_plan("pod_unready"), lambda: None)

    def blind(_: Any) -> tuple[bool, str, str]:
        return True, "Ready", "it was"

    found = rules(_plan("pod_unready"), lambda: monkeypatch.setattr(controllers.tidbcluster.conditions, "ready", blind))
    assert "I36-ready" in found


@pytest.mark.parametrize("what", ["member", "store"])
@pytest.mark.rule("O10")
def test_reports_a_foreign_removal_from_pd_that_no_message_names(monkeypatch: pytest.MonkeyPatch, what: str) -> None:
    plan = generated(f"pd-ctl/tikv-out.{what}-removed@9")
    blind: Any = lambda *_: ""  # noqa: E731
    found = rules(plan, lambda: monkeypatch.setattr(member.failover.steps, "removal_by_others", blind))
    assert "O10" in found


@pytest.mark.rule("I36")
def test_reports_stale_counts_in_the_status(monkeypatch: pytest.MonkeyPatch) -> None:
    def frozen(ctx: Any, kind: str, status: Any, *ignored: Any) -> Any:
        before = status.stateful_set
        found = observe_pods(ctx, kind, status, *ignored)
        status.stateful_set = before
        return found

    found = rules(_plan("pod_unready"), lambda: monkeypatch.setattr(member.tidb.status, "observe_pods", frozen))
    assert "I36-seen" in found


@pytest.mark.rule("O3")
def test_reports_a_roll_whose_only_change_is_a_default_of_the_api_server(monkeypatch: pytest.MonkeyPatch) -> None:
    def literal(live: Json, desired: Json) -> FieldChange | None:
        record = read_record(live)
        assert record is not None
        return first_difference(record.spec["template"], desired["spec"]["template"], "template", semantically_equal)

    def plant() -> None:
        for module in (member.apply.last_applied, member.lifecycle.component_sync, member.lifecycle.wanted_state):
            monkeypatch.setattr(module, "template_change", literal)
        monkeypatch.setattr(member.lifecycle.wanted_state, "own_change", lambda *_, **__: None)

    plan = generated("same/pd.additionalContainers (defaults)")
    assert set() == rules(plan, lambda: None)
    found = [violation.what for violation in broken(plan, plant).violations if violation.rule == "O3"]
    assert any("event 'all 3 pods of pd are up to date" in what for what in found), found
