"""The checks can fail: each test plants one defect in the operator, and the simulator must name the rule it breaks."""

from dataclasses import replace

import pytest

import controllers.tidbcluster.conditions
import discovery.reading
import kube.apply
import member.evidence
import member.failover.witnesses
import member.lifecycle.component_sync
import member.lifecycle.roll_view
import member.pd.rolling
import member.tidb.rolling
import member.tikv.rolling
from controllers.kind import Kind
from controllers.stages import Stage
from controllers.tidbcluster import stages
from kube.actions import Decision
from kube.objects import Json
from kube.resources import PERSISTENT_VOLUME_CLAIMS, PODS, TIDB_CLUSTERS
from member.apply.stateful_set import UpdateStrategy
from member.context import ReconcileContext
from member.evidence import Evidence
from member.lifecycle.pod_removal import PodRemoval
from member.outcome import Outcome
from member.pd.component import PD
from member.tidb.component import TIDB
from member.tikv.component import TIKV
from simulate.engine.plan import Edit, Foreign, Plan, World
from tests.simulate.planting import nothing, plant_workload, rogue, rules, short

pytestmark = [pytest.mark.slow, pytest.mark.planted]


def test_reports_nothing_without_a_defect() -> None:
    assert set() == rules(short("tikv-out"), lambda: None)


@pytest.mark.rule("I20")
def test_reports_a_stage_that_ignores_its_gate(monkeypatch: pytest.MonkeyPatch) -> None:
    plant = lambda: monkeypatch.setattr(member.lifecycle.component_sync, "_waits_for", lambda *_: None)  # noqa: E731

    assert "I20" in rules(short("bring-up"), plant)


@pytest.mark.rule("I36")
def test_reports_a_ready_condition_after_a_failed_observation(monkeypatch: pytest.MonkeyPatch) -> None:
    cut = World(at=1, verb="network_cut", arguments={}, seconds=0)
    plan = Plan(name="cut", budget=90.0, faults=(cut,))

    def good(*_: object) -> tuple[bool, str, str]:
        return True, "Ready", "TiDB cluster is fully up and running"

    assert "I36" in rules(plan, lambda: monkeypatch.setattr(controllers.tidbcluster.conditions, "ready", good))


@pytest.mark.rule("O3")
def test_reports_a_status_written_in_every_reconcile(monkeypatch: pytest.MonkeyPatch) -> None:
    honest = kube.apply._difference

    def restless(old: Json, new: Json) -> Json:
        return honest(old, new) or {"clusterID": new.get("clusterID")}

    plant = lambda: monkeypatch.setattr(kube.apply, "_difference", restless)  # noqa: E731

    assert "O3" in rules(short("tidb-out"), plant)


@pytest.mark.rule("I30")
def test_reports_a_write_to_the_users_spec(monkeypatch: pytest.MonkeyPatch) -> None:
    def write(ctx: ReconcileContext) -> None:
        patch = {"spec": {"tidb": {"maxFailoverCount": 3}}}
        ctx.deps.client.patch(TIDB_CLUSTERS, ctx.name, ctx.namespace, patch)

    assert "I30" in rules(short("tidb-out"), rogue(write, monkeypatch))


@pytest.mark.rule("O5")
def test_reports_a_pod_deleted_without_a_live_read(monkeypatch: pytest.MonkeyPatch) -> None:
    deleted: list[str] = []

    def delete(ctx: ReconcileContext) -> None:
        if not deleted and ctx.listers.pods.get(ctx.namespace, "basic-tidb-3"):
            deleted.append("basic-tidb-3")
            ctx.deps.client.delete(PODS, "basic-tidb-3", ctx.namespace)

    assert "O5" in rules(short("tidb-out"), rogue(delete, monkeypatch))


@pytest.mark.rule("R24")
def test_reports_a_second_restart_of_an_updated_pod(monkeypatch: pytest.MonkeyPatch) -> None:
    deleted: list[str] = []

    def delete(ctx: ReconcileContext) -> None:
        pod = ctx.listers.pods.get(ctx.namespace, "basic-tidb-1")
        live = ctx.listers.stateful_sets.get(ctx.namespace, "basic-tidb")
        newest = live.decode()["status"].get("updateRevision") if live else ""
        if pod and pod.metadata.uid not in deleted and pod.metadata.labels["controller-revision-hash"] == newest:
            deleted.append(pod.metadata.uid)
            ctx.deps.client.delete(PODS, "basic-tidb-1", ctx.namespace)

    assert "R24" in rules(short("tidb-out"), rogue(delete, monkeypatch))


@pytest.mark.rule("I1", "I2")
def test_reports_a_claim_deleted_because_the_cache_lacks_its_pod(monkeypatch: pytest.MonkeyPatch) -> None:
    def delete(ctx: ReconcileContext) -> None:
        claim = ctx.listers.persistent_volume_claims.get(ctx.namespace, "tikv-basic-tikv-0")
        if claim and ctx.listers.pods.get(ctx.namespace, "basic-tikv-9") is None:
            ctx.deps.client.delete(PERSISTENT_VOLUME_CLAIMS, claim.metadata.name, ctx.namespace)

    assert {"I1", "I2", "O5"} <= rules(short("tidb-out"), rogue(delete, monkeypatch))


@pytest.mark.rule("O7")
def test_reports_an_unexpected_exception_of_a_stage(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "O7" in rules(short("tidb-out"), rogue(lambda ctx: ctx.outcomes["missing"], monkeypatch))


@pytest.mark.rule("O7")
def test_reports_an_unexpected_exception_of_an_observation(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(ctx: ReconcileContext) -> Outcome:
        raise RuntimeError(ctx.name)

    observations = (*stages.observations()[:-1], Stage("tidb", broken))
    assert "O7" in rules(short("tidb-out"), lambda: monkeypatch.setattr(stages, "observations", lambda: observations))


@pytest.mark.rule("I26")
def test_reports_a_stage_that_ignores_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = Plan(name="paused", budget=60.0, edits=(Edit(at=1, spec={"paused": True, "tidb": {"replicas": 4}}),))

    first, *others = stages.observations()

    def impatient(ctx: ReconcileContext) -> Outcome | Decision[Outcome]:
        ctx.tc.spec.paused = False
        return first.run(ctx)

    observations = (replace(first, run=impatient), *others)
    assert "I26" in rules(plan, lambda: monkeypatch.setattr(stages, "observations", lambda: observations))


@pytest.mark.rule("I28")
def test_reports_an_operator_that_acts_on_an_invalid_spec(monkeypatch: pytest.MonkeyPatch) -> None:
    spec = {"tidb": {"replicas": 4}, "tikv": {"evictLeaderTimeout": "soon"}}
    plan = Plan(name="invalid", budget=60.0, edits=(Edit(at=1, spec=spec),))

    def plant() -> None:
        monkeypatch.setattr(Kind, "_problems_of", lambda *_: ())

    assert "I28" in rules(plan, plant)


@pytest.mark.rule("I11")
def test_reports_a_tikv_restart_that_does_not_wait_for_leaders(monkeypatch: pytest.MonkeyPatch) -> None:
    impatient = replace(member.tikv.rolling.ROLLING, prepare=nothing)
    careless = replace(TIKV, rolling=impatient)

    assert "I11" in rules(short("tikv-upgrade"), lambda: plant_workload(monkeypatch, careless))


@pytest.mark.rule("I12")
def test_reports_a_restart_of_the_pd_leader_without_a_transfer(monkeypatch: pytest.MonkeyPatch) -> None:
    plant = lambda: monkeypatch.setattr(member.pd.rolling, "_transfer", nothing)  # noqa: E731

    assert "I12" in rules(short("pd-upgrade"), plant)


@pytest.mark.rule("I10", "I15")
def test_reports_a_partition_that_is_reset_to_0(monkeypatch: pytest.MonkeyPatch) -> None:
    honest = UpdateStrategy.lowered
    plant = lambda: monkeypatch.setattr(UpdateStrategy, "lowered", lambda _, why: honest(0, why))  # noqa: E731

    assert {"I15"} <= rules(short("tikv-upgrade"), plant)


@pytest.mark.rule("I16")
def test_reports_a_component_upgraded_before_its_predecessors(monkeypatch: pytest.MonkeyPatch) -> None:
    plant = lambda: monkeypatch.setattr(member.lifecycle.roll_view, "_waits_for", lambda *_: None)  # noqa: E731

    assert "I16" in rules(short("upgrade"), plant)


@pytest.mark.rule("I17")
def test_reports_a_scale_out_by_more_pods_than_the_user_allows(monkeypatch: pytest.MonkeyPatch) -> None:
    scaling = TIDB.scaling
    hasty = replace(TIDB, scaling=replace(scaling, out=replace(scaling.out, limit=lambda _: 2)))

    assert "I17" in rules(short("tidb-out"), lambda: plant_workload(monkeypatch, hasty))


@pytest.mark.rule("I3")
def test_reports_replicas_lowered_before_the_store_is_tombstone(monkeypatch: pytest.MonkeyPatch) -> None:
    early = replace(TIKV.scaling.in_, drain=_at_once)
    scaling = replace(TIKV.scaling, in_=early)
    careless = replace(TIKV, scaling=scaling)

    assert "I3" in rules(short("tikv-in"), lambda: plant_workload(monkeypatch, careless))


@pytest.mark.rule("I4")
def test_reports_replicas_lowered_while_the_member_is_in_pd(monkeypatch: pytest.MonkeyPatch) -> None:
    early = replace(PD.scaling.in_, drain=_at_once)
    careless = replace(PD, scaling=replace(PD.scaling, in_=early))

    assert "I4" in rules(short("pd-in"), lambda: plant_workload(monkeypatch, careless))


@pytest.mark.rule("I22")
def test_reports_a_failover_with_only_one_witness(monkeypatch: pytest.MonkeyPatch) -> None:
    cut = World(at=1, verb="network_cut", arguments={"target": "default/basic-pd-2", "origin": "default/*"}, seconds=0)
    plan = Plan(name="cut off", cluster="brittle", budget=120.0, faults=(cut,))
    assert "I22" not in rules(plan, lambda: None)

    def credulous(component_says_so: bool, *_: object) -> bool:
        return component_says_so

    assert "I22" in rules(plan, lambda: monkeypatch.setattr(member.failover.witnesses, "is_lost", credulous))


async def _at_once(removal: PodRemoval) -> Evidence:
    """Every request is allowed."""
    return member.evidence.pods_live(removal.ctx, "tikv")


@pytest.mark.rule("I7", "R01")
def test_reports_a_second_cluster_that_bootstraps_although_the_volumes_of_the_first_exist(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lost = [
        World(at=1, verb="disk_lost", arguments={"namespace": "default", "claim": f"pd-basic-pd-{ordinal}"})
        for ordinal in range(3)
    ]
    crash = World(at=2, verb="pod_crash", arguments={"pod": "default/basic-pd-*"})
    empty = {"status": {"clusterID": None, "pd": {"members": None, "leader": None}, "tikv": {"stores": None}}}
    forgotten = Foreign(at=2.1, target="tidbclusters.pingcap.com/basic", subresource="status", patch=empty)
    plan = Plan(
        name="emptied", cluster="brittle", budget=120.0, faults=(*lost, crash, forgotten), ends="PDBootstrapRefused"
    )
    assert set() == rules(plan, lambda: None)

    def blind(*_: object) -> frozenset[str]:
        return frozenset()

    assert "I7" in rules(plan, lambda: monkeypatch.setattr(discovery.reading.LiveClusters, "claimed", blind))
