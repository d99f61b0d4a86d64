"""The checks can fail: they notice work that is forgotten, incomplete, too early or too frequent."""

from collections.abc import Callable, Mapping
from dataclasses import replace

import pytest

import controllers.tidbcluster.conditions
import kube.apply
import member.evidence
import member.lifecycle.component_sync
import member.lifecycle.scaling
import member.lifecycle.suspend
import member.pd.failover
import member.pd.scaling
import member.stores.scaling
import member.tidb.rolling
import meta.orphan_pods
import meta.volumes
from apis.component_statuses import PDFailureMember
from kube.objects import Json, Object
from kube.resources import PERSISTENT_VOLUME_CLAIMS
from kube.semantic import merge_patch
from member import api_clients
from member.apply.stateful_set import Replicas
from member.context import ReconcileContext
from member.evidence import Evidence, LiveStatus, look_up, pods_live
from member.failover.members import MemberFailover
from member.failover.witnesses import Failing
from member.lifecycle.scaling import Scaling, Size
from member.observed.claims import own_claims
from member.outcome import Outcome
from member.pd.component import PD
from member.tidb.component import TIDB
from simulate.engine.plan import Edit, Plan, World
from simulate.oracles import compare, compare_with_direct, direct_plan, reference
from tests.simulate.planting import broken, nothing, plant_workload, rogue, rules, short

pytestmark = [pytest.mark.slow, pytest.mark.planted]


@pytest.mark.rule("O1", "I13")
def test_reports_an_evict_leader_scheduler_that_stays_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = short("tikv-upgrade", 120.0)
    honest = reference([broken(plan, lambda: None)])

    def plant() -> None:
        monkeypatch.setattr("dataplane.pd.PDClient.end_evict_leaders", lambda *_: None)

    outcome = broken(plan, plant)
    assert "I13" in {violation.rule for violation in outcome.violations}
    assert "pd/evicting" in {violation.what.partition(" ")[0] for violation in compare(outcome, honest)}


@pytest.mark.rule("I6")
def test_reports_a_delete_policy_on_volumes_in_use(monkeypatch: pytest.MonkeyPatch) -> None:
    careless = lambda *_: "Delete"  # noqa: E731
    assert "I6" in rules(short("tidb-out"), lambda: monkeypatch.setattr(meta.volumes, "_policy", careless))


@pytest.mark.rule("I8")
def test_reports_two_pd_members_that_leave_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    scaling = PD.scaling
    hasty = replace(PD, scaling=replace(scaling, in_=replace(scaling.in_, limit=lambda _: 2)))

    def plant() -> None:
        plant_workload(monkeypatch, hasty)
        monkeypatch.setattr(member.pd.scaling, "_too_early", lambda _: None)

    assert "I8" in rules(short("pd-in"), plant)


@pytest.mark.rule("I18")
def test_reports_a_scale_in_below_the_wanted_replicas(monkeypatch: pytest.MonkeyPatch) -> None:
    honest = member.lifecycle.scaling.next_size

    async def too_few(ctx: ReconcileContext, component: str, scaling: Scaling, body: Json, desired: Json) -> Size:
        if component == "tidb":
            kept, why = body["spec"]["replicas"] > 1, pods_live(ctx, component)
            return Size(Replicas.lowered(body, [why] if kept else []))
        return await honest(ctx, component, scaling, body, desired)

    assert "I18" in rules(
        short("tidb-in", 30.0), lambda: monkeypatch.setattr(member.lifecycle.component_sync, "next_size", too_few)
    )


@pytest.mark.rule("I23")
def test_reports_a_member_removed_before_its_failure_record_is_stored(monkeypatch: pytest.MonkeyPatch) -> None:
    honest = MemberFailover._record_failure

    async def hasty(self: MemberFailover[ReconcileContext, PDFailureMember], lost: Failing) -> Outcome:
        await honest(self, lost)
        (record,) = self.status.failure_members.values()
        return await member.pd.failover._replace(self.ctx, record, [lost])

    def as_if_live(ctx: ReconcileContext) -> LiveStatus:
        return LiveStatus(member.evidence._LIVE_READ, ctx.status)

    def plant() -> None:
        monkeypatch.setattr(member.pd.failover, "live_status", as_if_live)
        monkeypatch.setattr(MemberFailover, "_record_failure", hasty)

    assert "I23" in rules(short("pd-failover", 180.0), plant)


@pytest.mark.rule("I37")
def test_reports_components_suspended_in_the_wrong_order(monkeypatch: pytest.MonkeyPatch) -> None:
    plant = lambda: monkeypatch.setattr(member.lifecycle.suspend, "workloads", lambda _: ())  # noqa: E731

    assert "I37" in rules(short("suspend-resume"), plant)


@pytest.mark.rule("I38")
def test_reports_a_pending_pod_treated_as_an_orphan(monkeypatch: pytest.MonkeyPatch) -> None:
    pending = World(at=0.5, verb="pod_pending", arguments={"pod": "default/basic-tikv-3"}, seconds=0)
    edit = Edit(at=1, spec={"tikv": {"replicas": 4}})
    plan = Plan(name="pending", budget=30.0, edits=(edit,), faults=(pending,), ends="ScalingOut")
    taken: list[Object] = []

    def once(ctx: ReconcileContext, pod: Object) -> Mapping[str, Evidence]:
        taken.append(pod)
        elsewhere = look_up(ctx, PERSISTENT_VOLUME_CLAIMS, "of-nobody", ctx.namespace)
        assert isinstance(elsewhere, Evidence)
        return dict.fromkeys(own_claims(pod), elsewhere) if len(taken) == 1 else {}

    assert "I38" in rules(plan, lambda: monkeypatch.setattr(meta.orphan_pods, "_missing_claims", once))


@pytest.mark.rule("I39")
def test_reports_ddl_that_stays_paused(monkeypatch: pytest.MonkeyPatch) -> None:
    rolling = replace(TIDB.rolling, finish=nothing)
    forgetful = replace(TIDB, rolling=rolling)

    assert "I39" in rules(short("tidb-upgrade"), lambda: plant_workload(monkeypatch, forgetful))


@pytest.mark.rule("I39")
def test_reports_ddl_paused_before_the_pause_is_recorded(monkeypatch: pytest.MonkeyPatch) -> None:
    honest = member.tidb.rolling._write

    async def late(ctx: ReconcileContext, marks: Json) -> None:
        if len(marks) != 3:
            await honest(ctx, marks)

    plant = lambda: monkeypatch.setattr(member.tidb.rolling, "_write", late)  # noqa: E731

    assert "I39" in rules(short("tidb-upgrade"), plant)


@pytest.mark.rule("I40", "O9")
def test_reports_a_stage_that_sends_too_many_requests(monkeypatch: pytest.MonkeyPatch) -> None:
    def ask(ctx: ReconcileContext) -> None:
        for _ in range(8):
            api_clients.pd(ctx).stores()

    assert {"I40", "O9"} <= rules(short("tidb-out"), rogue(ask, monkeypatch))


@pytest.mark.rule("I36")
def test_reports_a_cluster_that_is_ready_too_early(monkeypatch: pytest.MonkeyPatch) -> None:
    premature: Callable[..., tuple[bool, str, str]] = lambda *_: (True, "Ready", "it will be")  # noqa: E731

    assert "I36" in rules(
        short("tidb-out"), lambda: monkeypatch.setattr(controllers.tidbcluster.conditions, "ready", premature)
    )


@pytest.mark.rule("O6")
def test_reports_a_label_that_outlives_its_removal_from_the_spec(monkeypatch: pytest.MonkeyPatch) -> None:
    given, taken = ({"tidb": {"service": {"labels": labels}}} for labels in ({"team": "a"}, None))
    plan = Plan(name="there and back", budget=60.0, edits=(Edit(at=1, spec=given), Edit(at=20, spec=taken)))
    direct = direct_plan(plan)
    assert direct is not None
    known = reference([broken(direct, lambda: None)])
    assert [] == list(compare_with_direct(broken(plan, lambda: None), known))

    def sticky(live: Json, desired: Json, _: object) -> Json | None:
        return merge_patch(live, desired, None)

    outcome = broken(plan, lambda: monkeypatch.setattr(kube.apply, "merge_patch", sticky))
    assert {"O6"} == {violation.rule for violation in compare_with_direct(outcome, known)}


@pytest.mark.rule("O8")
def test_reports_a_wait_that_no_condition_names(monkeypatch: pytest.MonkeyPatch) -> None:
    silent = lambda *_: (False, "Done", "the cluster matches its spec")  # noqa: E731

    assert "O8" in rules(
        short("tikv-out"), lambda: monkeypatch.setattr(controllers.tidbcluster.conditions, "progressing", silent)
    )


@pytest.mark.rule("I1", "I3")
def test_reports_a_scale_in_based_on_an_outdated_list_of_stores(monkeypatch: pytest.MonkeyPatch) -> None:
    old = World(at=0.5, verb="pd_old", arguments={"cluster": "default/basic", "path": "/pd/api/v1/stores"}, seconds=0)
    edits = (
        Edit(at=1, spec={"enablePVReclaim": True, "tikv": {"replicas": 4}}),
        Edit(at=90, spec={"tikv": {"replicas": 3}}),
    )
    plan = Plan(name="an old list", budget=200.0, edits=edits, faults=(old,), ends="StoresUnknown")
    assert set() == rules(plan, lambda: None)

    def credulous(ctx: ReconcileContext, *_: object) -> Evidence:
        return pods_live(ctx, "tikv")

    plant = lambda: monkeypatch.setattr(member.stores.scaling, "not_serving", credulous)  # noqa: E731

    assert {"I1", "I3"} <= rules(plan, plant)
