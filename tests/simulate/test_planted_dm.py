"""The checks of DMClusters can fail: each test plants one defect, and the simulator must name the rule it breaks."""

import pytest

import member.dm.rolling
import member.dm.scaling
from kube.resources import DM_CLUSTERS
from member.evidence import _LIVE_READ, Evidence
from simulate.engine.other_kinds import DM, changed, made, sources
from simulate.engine.plan import Fault, Plan, World
from simulate.engine.worlds import NAMESPACE
from tests.simulate.planting import rules

pytestmark = [pytest.mark.slow, pytest.mark.planted]


def _plan(*given: Fault, **change: object) -> Plan:
    edits = made(1.0, DM_CLUSTERS), changed(40.0, DM_CLUSTERS, **change)
    return Plan(name="dm", cluster="tiny", budget=75.0, edits=edits, given=given, reference=False)


@pytest.mark.rule("I9")
def test_reports_a_restart_of_a_master_that_the_quorum_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    peers = {"target": f"{NAMESPACE}/{DM}-dm-master-0", "origin": "*", "port": 8291}
    plan = _plan(World(at=35.0, verb="network_cut", arguments=peers, seconds=60.0), version="v8.5.3")
    plant = lambda: monkeypatch.setattr(member.dm.rolling, "_without_quorum", lambda *_: None)  # noqa: E731
    assert "DM-quorum" in rules(plan, plant)


@pytest.mark.rule("6.8")
def test_reports_the_removal_of_a_worker_whose_source_has_no_heir(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = _plan(sources(35.0, "orders", "clients"), worker={"replicas": 1})
    assert "DM-source" not in rules(plan, lambda: None)

    evidence = Evidence(_LIVE_READ, "planted")

    def plant() -> None:
        monkeypatch.setattr(member.dm.scaling, "worker_replaceable", lambda *_: evidence)
        monkeypatch.setattr(member.dm.scaling, "_without_heir", lambda *_: [])

    assert "DM-source" in rules(plan, plant)
