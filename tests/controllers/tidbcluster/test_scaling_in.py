"""Shrinking, and shrinking that is taken back half-way (lifecycle.md 8.3, 8.5, 8.7)."""

from collections.abc import Callable
from datetime import timedelta

import pytest

from apis.ordinals import slots_annotation
from dataplane.addresses import Address
from dataplane.pd import OFFLINE, TOMBSTONE, UP, PDClient, Store
from kube.resources import PERSISTENT_VOLUME_CLAIMS, PODS, TIDB_CLUSTERS
from member.labels import PVC_DEFER_DELETING, SCALE_IN_TIME
from ports.transport import Request
from sandbox.apiserver.faults import Fault as ApiFault
from sandbox.apiserver.refusals import Refusal
from tests.operator_world import NAMESPACE, OPERATOR, OperatorWorld, sample


def pd_of(world: OperatorWorld) -> PDClient:
    return PDClient(world.world.data_plane_transport(), Address("http://basic-pd.default:2379"))


def member_names(world: OperatorWorld) -> list[str]:
    return sorted(member.name for member in pd_of(world).members().members)


def stores_of(world: OperatorWorld) -> dict[str, Store]:
    """The stores that are not Tombstone, by pod."""
    return {store.address.partition(".")[0]: store for store in pd_of(world).stores()}


def claim_marks(world: OperatorWorld) -> dict[str, set[str]]:
    """Our marks on every claim that carries one, and on pods that stay."""
    found = {}
    pods = [pod for pod in world.every(PODS) if "deletionTimestamp" not in pod["metadata"]]
    for item in [*world.every(PERSISTENT_VOLUME_CLAIMS), *pods]:
        marks = {PVC_DEFER_DELETING, SCALE_IN_TIME} & (item["metadata"].get("annotations") or {}).keys()
        if marks:
            found[item["metadata"]["name"]] = marks
    return found


def dataplane_writes(world: OperatorWorld) -> list[str]:
    return [f"{call.method} {call.url.rpartition('/pd/api/v1/')[2]}" for call in world.operator.dataplane.writes()]


def ready_with(world: OperatorWorld, component: str, replicas: int) -> OperatorWorld:
    cluster = sample("basic")
    cluster["spec"][component]["replicas"] = replicas
    world.apply(cluster)
    world.run_until_ready()
    # a cluster that is Ready at once may still be reconciled again
    world.run(1.0)
    world.forget()
    return world


@pytest.fixture
def wide_pd(world: OperatorWorld) -> OperatorWorld:
    """`basic` with five of PD."""
    return ready_with(world, "pd", 5)


@pytest.fixture
def wide_tikv(world: OperatorWorld) -> OperatorWorld:
    """`basic` with five of TiKV."""
    return ready_with(world, "tikv", 5)


@pytest.mark.slow
@pytest.mark.rule("lifecycle-8.3")
def test_pd_scales_in_one_by_one_and_scales_out_on_new_volumes(wide_pd: OperatorWorld) -> None:
    claims = {name: wide_pd.get(PERSISTENT_VOLUME_CLAIMS, name)["metadata"]["uid"] for name in _pd_claims(5)}
    wide_pd.change(pd={"replicas": 3})
    wide_pd.run_until_ready()
    assert [4, 3] == wide_pd.asked_replicas("pd")
    assert [f"basic-pd-{ordinal}" for ordinal in range(3)] == member_names(wide_pd)
    marks = {PVC_DEFER_DELETING, SCALE_IN_TIME}
    assert {"pd-basic-pd-3": marks, "pd-basic-pd-4": marks} == claim_marks(wide_pd)

    wide_pd.change(pd={"replicas": 5})
    # a cluster whose status was written often is reconciled again within a second
    wide_pd.run(1.0)
    wide_pd.run_until_ready()
    assert [f"basic-pd-{ordinal}" for ordinal in range(5)] == member_names(wide_pd)
    now = {name: wide_pd.get(PERSISTENT_VOLUME_CLAIMS, name)["metadata"]["uid"] for name in _pd_claims(5)}
    assert ["pd-basic-pd-3", "pd-basic-pd-4"] == [name for name in claims if claims[name] != now[name]]
    assert {} == claim_marks(wide_pd)


def _pd_claims(count: int) -> list[str]:
    return [f"pd-basic-pd-{ordinal}" for ordinal in range(count)]


@pytest.mark.slow
@pytest.mark.rule("F28", "#1112", "#1145", "#1151", "I12")
def test_transfers_the_leader_before_it_leaves_pd(wide_pd: OperatorWorld) -> None:
    pd_of(wide_pd).transfer_leader("basic-pd-4")
    wide_pd.run_until(lambda: pd_of(wide_pd).leader().name == "basic-pd-4")
    wide_pd.forget()
    wide_pd.change(pd={"replicas": 4})
    wide_pd.run_until_ready()
    assert 4 == wide_pd.replicas("pd")
    transfer, delete = dataplane_writes(wide_pd)
    assert ("POST leader/transfer/basic-pd-0", True) == (transfer, delete.startswith("DELETE members/id/"))


@pytest.mark.slow
@pytest.mark.rule("I8", "I9")
def test_removes_no_pd_member_while_another_one_is_unhealthy(wide_pd: OperatorWorld) -> None:
    wide_pd.world.data_plane.hang(NAMESPACE, "basic-pd-1")
    wide_pd.change(pd={"replicas": 4})
    wide_pd.run(60.0)
    assert "waiting for basic-pd-1 to be healthy before removing basic-pd-4 from PD" in wide_pd.progressing
    assert (5, [], {}) == (wide_pd.replicas("pd"), dataplane_writes(wide_pd), claim_marks(wide_pd))

    wide_pd.world.data_plane.hang(NAMESPACE, "basic-pd-1", hung=False)
    wide_pd.run_until_ready()
    assert 4 == wide_pd.replicas("pd")


@pytest.mark.slow
@pytest.mark.rule("lifecycle-8.5")
def test_a_mark_without_a_time_zone_blocks_neither_its_store_nor_other_components(
    wide_tikv: OperatorWorld,
) -> None:
    marks = {"annotations": {SCALE_IN_TIME: "2026-11-21T03:00:00"}}
    wide_tikv.admin.patch(PERSISTENT_VOLUME_CLAIMS, "tikv-basic-tikv-4", NAMESPACE, {"metadata": marks})
    wide_tikv.change(tikv={"replicas": 4}, tidb={"replicas": 2})
    wide_tikv.run_until_ready(within=600.0)
    assert (4, 2) == (wide_tikv.replicas("tikv"), wide_tikv.replicas("tidb"))


@pytest.mark.slow
@pytest.mark.rule("F12")
def test_a_pd_pod_that_never_joined_can_leave(wide_pd: OperatorWorld) -> None:
    wide_pd.world.faults.pod_pending("*/basic-pd-5")
    wide_pd.change(pd={"replicas": 6})
    wide_pd.run_until(lambda: wide_pd.replicas("pd") == 6)
    wide_pd.run(5.0)
    wide_pd.change(pd={"replicas": 5})
    wide_pd.run_until_ready()
    assert (5, 5) == (wide_pd.replicas("pd"), len(member_names(wide_pd)))


@pytest.mark.slow
@pytest.mark.rule("I8")
def test_removes_a_joining_pd_pod_only_together_with_its_member(basic: OperatorWorld) -> None:
    """The member of a deleted pod would be half of a quorum of two, forever."""
    for tenths in range(1, 12):
        basic.change(pd={"replicas": 2})
        basic.run(tenths / 10)
        basic.change(pd={"replicas": 1})
        basic.run_until(lambda: basic.replicas("pd") == 1, within=120.0)
        basic.run_until_ready(within=120.0)
        assert ["basic-pd-0"] == member_names(basic), f"after {tenths / 10} s"


@pytest.mark.slow
@pytest.mark.rule("F38")
def test_removes_a_member_whose_pod_is_lost(wide_pd: OperatorWorld) -> None:
    wide_pd.world.faults.pod_pending("*/basic-pd-4")
    wide_pd.admin.delete(PODS, "basic-pd-4", NAMESPACE)
    wide_pd.run(5.0)
    wide_pd.change(pd={"replicas": 4})
    wide_pd.run_until_ready()
    assert [f"basic-pd-{ordinal}" for ordinal in range(4)] == member_names(wide_pd)


@pytest.mark.rule("F34")
def test_keeps_the_last_pd_while_another_component_needs_it(basic: OperatorWorld) -> None:
    basic.change(pd={"replicas": 0})
    basic.run(60.0)
    assert (1, [], []) == (basic.replicas("pd"), dataplane_writes(basic), basic.asked_replicas("pd"))
    (event,) = basic.events("FailedScaleIn")
    assert "pd: spec.pd.replicas cannot be 0 while there are 1 TiKV stores, 1 TiDB members" in event["message"]


@pytest.mark.slow
@pytest.mark.rule("F34", "#3456")
def test_removes_the_last_pd_when_the_pd_of_another_cluster_leads(basic: OperatorWorld) -> None:
    second = sample("basic")
    second["metadata"]["name"] = "second"
    del second["spec"]["tikv"], second["spec"]["tidb"]
    second["spec"]["cluster"] = {"name": "basic"}
    basic.apply(second)
    basic.run_until_ready("second")
    pd_of(basic).transfer_leader("second-pd-0")
    basic.run_until(lambda: pd_of(basic).leader().name == "second-pd-0")
    basic.change("second", pd={"replicas": 0})
    basic.run_until(lambda: basic.replicas("pd", "second") == 0)
    basic.run(35.0)
    assert (["basic-pd-0"], True, "Done") == (member_names(basic), basic.is_ready("second"), basic.reason("second"))
    assert "POST leader/transfer/basic-pd-0" in dataplane_writes(basic)


@pytest.mark.slow
@pytest.mark.parametrize("parallelism", [1, 2])
@pytest.mark.rule("lifecycle-8.5", "I3")
def test_tikv_shrinks_as_its_stores_become_tombstone(wide_tikv: OperatorWorld, parallelism: int) -> None:
    gone = [store.id for pod, store in stores_of(wide_tikv).items() if pod in {"basic-tikv-3", "basic-tikv-4"}]
    wide_tikv.change(tikv={"replicas": 3, "scalePolicy": {"scaleInParallelism": parallelism}})
    shrunk_before_tombstone = []

    def look() -> bool:
        if wide_tikv.replicas("tikv") < 5 and len(stores_of(wide_tikv)) > wide_tikv.replicas("tikv"):
            shrunk_before_tombstone.append(wide_tikv.replicas("tikv"))
        return wide_tikv.is_ready() and wide_tikv.reason() == "Done" and wide_tikv.replicas("tikv") == 3

    wide_tikv.run_until(look)
    assert [] == shrunk_before_tombstone
    assert sorted(gone) == [store.id for store in _tombstones(wide_tikv)]
    assert frozenset() == pd_of(wide_tikv).evicting_stores()
    marks = {PVC_DEFER_DELETING, SCALE_IN_TIME}
    assert {"tikv-basic-tikv-3": marks, "tikv-basic-tikv-4": marks} == claim_marks(wide_tikv)

    wide_tikv.change(tikv={"replicas": 5})
    wide_tikv.run_until_ready()
    assert {} == claim_marks(wide_tikv)
    assert [] == [store for store in stores_of(wide_tikv).values() if store.id in gone]


@pytest.mark.slow
@pytest.mark.rule("lifecycle-8.5")
def test_a_wait_for_a_store_counts_its_remaining_regions(wide_tikv: OperatorWorld) -> None:
    wide_tikv.world.faults.regions_frozen("default/basic")
    store = stores_of(wide_tikv)["basic-tikv-4"]
    wide_tikv.change(tikv={"replicas": 4})
    wide_tikv.run(20.0)
    what = f"tikv: evicting leaders from pod basic-tikv-4 (store {store.id}): {store.leader_count} left"
    assert what in wide_tikv.progressing
    assert "Scale" == wide_tikv.cluster()["status"]["tikv"]["phase"]
    assert frozenset({store.id}) == pd_of(wide_tikv).evicting_stores()
    wide_tikv.run(300.0)
    what = f"tikv: store {store.id} of pod basic-tikv-4 is Offline: {store.region_count} regions left to move"
    assert what in wide_tikv.progressing


@pytest.mark.slow
@pytest.mark.rule("F35", "F44")
def test_a_clock_jump_does_not_shorten_the_wait_for_leaders(
    wide_tikv: OperatorWorld,
) -> None:
    wide_tikv.world.faults.regions_frozen("default/basic")
    store = stores_of(wide_tikv)["basic-tikv-4"]
    wide_tikv.change(tikv={"replicas": 4})
    wide_tikv.run(20.0)
    wide_tikv.clock.jump(timedelta(minutes=10))
    wide_tikv.run(260.0)
    assert "Up" == pd_of(wide_tikv).store(store.id).state_name
    wide_tikv.run(40.0)
    assert "Offline" == pd_of(wide_tikv).store(store.id).state_name


@pytest.mark.slow
@pytest.mark.rule("F13", "F35")
def test_takes_no_store_offline_while_another_has_not_reported_since_its_restart(
    wide_tikv: OperatorWorld,
) -> None:
    store = stores_of(wide_tikv)["basic-tikv-4"]
    wide_tikv.run(5.0)
    wide_tikv.world.faults.pod_slow("default/basic-tikv-0", 12.0)
    wide_tikv.world.faults.pod_crash("default/basic-tikv-0")
    wide_tikv.run(1.0)
    wide_tikv.change(tikv={"replicas": 4})
    wide_tikv.run(9.0)
    assert ("Up", "Up") == (
        stores_of(wide_tikv)["basic-tikv-0"].state_name,
        pd_of(wide_tikv).store(store.id).state_name,
    )
    assert "has reported to PD since its restart" in wide_tikv.progressing
    wide_tikv.run_until_ready(within=120.0)
    assert "Tombstone" == pd_of(wide_tikv).store(store.id).state_name


@pytest.mark.slow
@pytest.mark.rule("I5")
def test_tikv_keeps_as_many_stores_as_regions_have_replicas(wide_tikv: OperatorWorld) -> None:
    wide_tikv.change(tikv={"replicas": 2, "scalePolicy": {"scaleInParallelism": 5}})
    wide_tikv.run(60.0)
    assert ({"Up"}, 5) == ({store.state_name for store in stores_of(wide_tikv).values()}, wide_tikv.replicas("tikv"))
    (event,) = wide_tikv.events("FailedScaleIn")
    assert "2 TiKV stores would be Up, but PD keeps 3 replicas of each region" in event["message"]
    assert frozenset() == pd_of(wide_tikv).evicting_stores()


@pytest.mark.slow
@pytest.mark.rule("lifecycle-8.5")
def test_removes_no_store_while_the_others_lack_space_for_its_data(wide_tikv: OperatorWorld) -> None:
    stores = stores_of(wide_tikv)
    low = [
        wide_tikv.world.faults.store_low_space(f"{NAMESPACE}/basic", stores[f"basic-tikv-{ordinal}"].id)
        for ordinal in range(3)
    ]
    wide_tikv.change(tikv={"replicas": 3, "scalePolicy": {"scaleInParallelism": 2}})
    wide_tikv.run(60.0)
    assert ({"Up"}, 5) == ({store.state_name for store in stores_of(wide_tikv).values()}, wide_tikv.replicas("tikv"))
    assert frozenset() == pd_of(wide_tikv).evicting_stores()
    (event,) = wide_tikv.events("FailedScaleIn")
    assert "of data would have to move, but the stores that stay have room for 0.0 MiB" in event["message"]

    # each of the three has to take a replica of everything
    low[0]()
    wide_tikv.run(60.0)
    assert {"Up"} == {store.state_name for store in stores_of(wide_tikv).values()}
    for free in low[1:]:
        free()
    wide_tikv.run_until_ready(within=300.0)
    assert 3 == wide_tikv.replicas("tikv")


@pytest.mark.rule("F31", "#3514")
def test_tiflash_stores_do_not_count_in_a_tikv_scale_in(world: OperatorWorld) -> None:
    tikv = ready_with(world, "tikv", 3)
    tikv.register_store("basic-tiflash-0.basic-tiflash-peer.default.svc:3930", {"engine": "tiflash"})
    tikv.change(tikv={"replicas": 2})
    tikv.run(10.0)
    assert 4 == sum(store.state_name == "Up" for store in stores_of(tikv).values())
    (event,) = tikv.events("FailedScaleIn")
    assert "2 TiKV stores would be Up, but PD keeps 3 replicas of each region" in event["message"]
    assert [] == dataplane_writes(tikv)


def _leaders_leave(world: OperatorWorld) -> bool:
    return bool(pd_of(world).evicting_stores())


def _both_go_offline(world: OperatorWorld) -> bool:
    return 2 == sum(store.state_name == "Offline" for store in stores_of(world).values())


def _one_is_tombstone(world: OperatorWorld) -> bool:
    return bool(_tombstones(world))


def _tombstones(world: OperatorWorld) -> list[Store]:
    return [store for store in pd_of(world).all_stores() if store.state_name == TOMBSTONE]


def _one_pod_is_gone(world: OperatorWorld) -> bool:
    return world.replicas("tikv") == 4


@pytest.mark.slow
@pytest.mark.parametrize("restarted", [False, True], ids=["same operator", "restarted operator"])
@pytest.mark.parametrize("when", [_leaders_leave, _both_go_offline, _one_is_tombstone, _one_pod_is_gone])
@pytest.mark.rule("F36", "I32")
def test_reverts_a_tikv_scale_in(
    wide_tikv: OperatorWorld, when: Callable[[OperatorWorld], bool], restarted: bool
) -> None:
    before = {pod: store.id for pod, store in stores_of(wide_tikv).items()}
    if when is _leaders_leave:
        wide_tikv.world.faults.regions_frozen("default/basic")
    wide_tikv.change(tikv={"replicas": 3, "scalePolicy": {"scaleInParallelism": 1 if when is _one_pod_is_gone else 2}})
    wide_tikv.run_until(lambda: when(wide_tikv))
    if restarted:
        wide_tikv.restart()
    wide_tikv.change(tikv={"replicas": 5})
    wide_tikv.world.faults.heal()
    wide_tikv.run_until_ready(within=120.0)

    assert ({}, frozenset()) == (claim_marks(wide_tikv), pd_of(wide_tikv).evicting_stores())
    assert ([f"basic-tikv-{ordinal}" for ordinal in range(5)], {"Up"}) == (
        sorted(stores_of(wide_tikv)),
        {store.state_name for store in stores_of(wide_tikv).values()},
    )
    if when in {_leaders_leave, _both_go_offline}:
        assert before == {pod: store.id for pod, store in stores_of(wide_tikv).items()}
        assert 5 == wide_tikv.replicas("tikv")
    _is_at_rest(wide_tikv)


def _is_at_rest(world: OperatorWorld) -> None:
    # leaders are spread until then
    world.run(60.0)
    world.forget()
    world.run(300.0)
    assert ([], []) == (world.writes(), dataplane_writes(world))


@pytest.mark.slow
@pytest.mark.parametrize("restarted", [False, True], ids=["same operator", "restarted operator"])
@pytest.mark.rule("F36", "F32")
def test_a_member_removed_from_pd_returns_with_an_empty_volume(wide_pd: OperatorWorld, restarted: bool) -> None:
    """Crashed between the removal of the member and the removal of its pod."""
    uid = wide_pd.get(PERSISTENT_VOLUME_CLAIMS, "pd-basic-pd-4")["metadata"]["uid"]
    refused = ApiFault(refusal=Refusal(503, "ServiceUnavailable", "not now"))
    heal = wide_pd.world.faults.api_fault(refused, OPERATOR, "patch", "statefulsets.apps")
    wide_pd.change(pd={"replicas": 4})
    wide_pd.run_until(lambda: "basic-pd-4" not in member_names(wide_pd))
    assert 5 == wide_pd.replicas("pd")
    if restarted:
        wide_pd.restart()
    wide_pd.change(pd={"replicas": 5})
    heal()
    wide_pd.run_until_ready()
    assert [4, 5] == wide_pd.asked_replicas("pd")[-2:]
    assert [f"basic-pd-{ordinal}" for ordinal in range(5)] == member_names(wide_pd)
    assert uid != wide_pd.get(PERSISTENT_VOLUME_CLAIMS, "pd-basic-pd-4")["metadata"]["uid"]
    assert {} == claim_marks(wide_pd)
    _is_at_rest(wide_pd)


@pytest.mark.slow
@pytest.mark.rule("F36")
def test_keeps_a_member_that_pd_still_lists(wide_pd: OperatorWorld) -> None:
    """Crashed after the intent was noted."""
    heal = wide_pd.world.faults.pd_answers("default/basic", 500, b'"no"', path="/pd/api/v1/members/*", method="DELETE")
    wide_pd.change(pd={"replicas": 4})
    wide_pd.run_until(lambda: "pd-basic-pd-4" in claim_marks(wide_pd))
    wide_pd.change(pd={"replicas": 5})
    heal()
    wide_pd.run_until_ready()
    assert ({}, []) == (claim_marks(wide_pd), wide_pd.asked_replicas("pd"))


@pytest.mark.slow
@pytest.mark.rule("I18")
def test_keeps_a_serving_tidb_while_the_remaining_ones_do_not_serve(world: OperatorWorld) -> None:
    tidb = ready_with(world, "tidb", 4)
    heal = [tidb.world.faults.pod_unready(f"{NAMESPACE}/basic-tidb-{ordinal}") for ordinal in (0, 1)]
    tidb.change(tidb={"replicas": 2})
    tidb.run(30.0)
    assert [] == tidb.asked_replicas("tidb")
    sentence = "tidb: keeping pod basic-tidb-3 until more of the 2 remaining pods are Ready; 0 are"
    assert sentence == tidb.condition("Progressing")["message"]
    heal[0]()
    tidb.run(30.0)
    assert [3, 2] == tidb.asked_replicas("tidb")


@pytest.mark.slow
@pytest.mark.rule("lifecycle-8.7")
def test_tidb_scales_in_by_its_parallelism(world: OperatorWorld) -> None:
    tidb = ready_with(world, "tidb", 4)
    tidb.change(tidb={"replicas": 1, "scalePolicy": {"scaleInParallelism": 2}})
    tidb.run_until_ready()
    assert [2, 1] == tidb.asked_replicas("tidb")


@pytest.mark.slow
@pytest.mark.rule("F5", "R08")
def test_removes_nothing_for_an_outdated_spec_in_the_cache(wide_pd: OperatorWorld) -> None:
    wide_pd.change(pd={"replicas": 4}, tidb={"replicas": 0})
    wide_pd.operator.look()
    wide_pd.operator.caches[TIDB_CLUSTERS].blind = True
    wide_pd.change(pd={"replicas": 5}, tidb={"replicas": 1})
    wide_pd.run(5.0)
    assert ([], []) == (wide_pd.asked_replicas("pd"), wide_pd.asked_replicas("tidb"))
    assert (5, {}) == (len(member_names(wide_pd)), claim_marks(wide_pd))


@pytest.mark.slow
@pytest.mark.parametrize("component", ["pd", "tikv"])
@pytest.mark.rule("F5", "R08")
def test_keeps_an_unregistered_pod_despite_an_outdated_spec(basic: OperatorWorld, component: str) -> None:
    basic.world.faults.pod_pending(f"*/basic-{component}-3")
    basic.change(**{component: {"replicas": 4}})
    basic.run_until(lambda: basic.replicas(component) == 4)
    basic.run(10.0)
    basic.change(**{component: {"replicas": 3}})
    basic.operator.look()
    basic.operator.caches[TIDB_CLUSTERS].blind = True
    basic.change(**{component: {"replicas": 4}})
    basic.forget()
    basic.run(60.0)
    assert ([], {}) == (basic.asked_replicas(component), claim_marks(basic))


@pytest.mark.slow
@pytest.mark.rule("lifecycle-4.4")
def test_reports_delete_slots_without_effect_once(basic: OperatorWorld) -> None:
    annotation = {slots_annotation("tikv"): "[0]"}
    basic.admin.patch(TIDB_CLUSTERS, "basic", NAMESPACE, {"metadata": {"annotations": annotation}})
    basic.run_until(lambda: bool(basic.events("DeleteSlotsIgnored")))
    basic.run(300.0)
    (event,) = basic.events("DeleteSlotsIgnored")
    assert "tikv.tidb.pingcap.com/delete-slots=[0] has no effect" in event["message"]
    assert (1, 1) == (event.get("count", 1), basic.replicas("tikv"))


@pytest.mark.slow
@pytest.mark.rule("F37")
def test_removes_a_finished_pod_while_another_one_fails(wide_tikv: OperatorWorld) -> None:
    stuck = stores_of(wide_tikv)["basic-tikv-3"].id
    path = f"/pd/api/v1/store/{stuck}"
    heal = wide_tikv.world.faults.pd_answers("default/basic", 500, b'"not now"', path=path, method="DELETE")
    wide_tikv.change(tikv={"replicas": 3, "scalePolicy": {"scaleInParallelism": 2}})
    wide_tikv.run_until(lambda: wide_tikv.replicas("tikv") == 4)
    wide_tikv.run(10.0)
    assert "not now" in wide_tikv.progressing
    assert "Up" == stores_of(wide_tikv)["basic-tikv-3"].state_name
    heal()
    wide_tikv.run_until_ready(within=200.0)
    assert [4, 3] == wide_tikv.asked_replicas("tikv")


@pytest.mark.slow
@pytest.mark.rule("F12", "F41")
def test_removes_a_tikv_pod_that_never_registered_immediately(wide_tikv: OperatorWorld) -> None:
    wide_tikv.world.faults.pod_pending("*/basic-tikv-5")
    wide_tikv.change(tikv={"replicas": 6})
    wide_tikv.run(10.0)
    wide_tikv.change(tikv={"replicas": 5})
    wide_tikv.run_until_ready(within=5.0)
    assert (5, 5) == (wide_tikv.replicas("tikv"), len(stores_of(wide_tikv)))


@pytest.mark.slow
@pytest.mark.rule("F38")
def test_removes_a_store_whose_pod_is_lost(wide_tikv: OperatorWorld) -> None:
    wide_tikv.world.faults.pod_pending("*/basic-tikv-4")
    wide_tikv.admin.delete(PODS, "basic-tikv-4", NAMESPACE)
    wide_tikv.run(30.0)
    wide_tikv.change(tikv={"replicas": 4})
    wide_tikv.run_until_ready()
    assert [f"basic-tikv-{ordinal}" for ordinal in range(4)] == sorted(stores_of(wide_tikv))


@pytest.mark.slow
@pytest.mark.rule("R19")
def test_an_empty_store_list_proves_nothing(wide_tikv: OperatorWorld) -> None:
    heal = wide_tikv.world.faults.pd_no_stores("default/basic")
    wide_tikv.change(tikv={"replicas": 4})
    wide_tikv.run(400.0)
    assert (5, "tikv: waiting for PD to report the TiKV stores before scaling in" in wide_tikv.progressing) == (
        wide_tikv.replicas("tikv"),
        True,
    )
    heal()
    wide_tikv.run_until_ready(within=200.0)
    assert 4 == wide_tikv.replicas("tikv")


@pytest.mark.slow
@pytest.mark.parametrize("component", ["pd", "tikv"])
@pytest.mark.rule("I31")
def test_finishes_a_scale_in_despite_restarts_of_the_operator(world: OperatorWorld, component: str) -> None:
    three = ready_with(world, component, 3)
    for replicas in (5, 3):
        three.change(**{component: {"replicas": replicas}})
        for _ in range(15):
            three.run(0.3)
            three.restart()
        three.run_until_ready(within=120.0)
        assert replicas == three.replicas(component)
    found = member_names(three) if component == "pd" else sorted(stores_of(three))
    assert [f"basic-{component}-{ordinal}" for ordinal in range(3)] == found
    assert frozenset() == pd_of(three).evicting_stores()
    marks = {PVC_DEFER_DELETING, SCALE_IN_TIME}
    assert {f"{component}-basic-{component}-{ordinal}": marks for ordinal in (3, 4)} == claim_marks(three)


_REFUSED = ApiFault(refusal=Refusal(500, "InternalError", "not now"))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("verb", "resource"),
    [("get", "tidbclusters.pingcap.com"), ("patch", "persistentvolumeclaims"), ("patch", "statefulsets.apps")],
)
@pytest.mark.parametrize("component", ["pd", "tikv"])
@pytest.mark.rule("lifecycle-18")
def test_a_scale_in_continues_when_the_api_server_recovers(
    world: OperatorWorld, component: str, verb: str, resource: str
) -> None:
    four = ready_with(world, component, 4)
    heal = four.world.faults.api_fault(_REFUSED, OPERATOR, verb, resource)
    four.change(**{component: {"replicas": 3}})
    four.run(20.0)
    assert (4, True) == (four.replicas(component), "not now" in four.progressing)
    heal()
    four.run_until_ready(within=200.0)
    assert 3 == four.replicas(component)


@pytest.mark.slow
@pytest.mark.parametrize("component", ["pd", "tikv"])
@pytest.mark.rule("lifecycle-18")
def test_a_scale_in_continues_when_pd_recovers(world: OperatorWorld, component: str) -> None:
    four = ready_with(world, component, 4)
    heal = four.world.faults.pd_answers("default/basic", 500, b'"not now"', method="DELETE")
    four.change(**{component: {"replicas": 3}})
    four.run(60.0)
    assert (4, True) == (four.replicas(component), "not now" in four.progressing)
    heal()
    four.run_until_ready(within=200.0)
    assert 3 == four.replicas(component)


@pytest.mark.slow
@pytest.mark.rule("lifecycle-8.5", "I3")
def test_a_tombstone_that_pd_has_removed_counts_as_gone(wide_tikv: OperatorWorld) -> None:
    heal = wide_tikv.world.faults.api_fault(_REFUSED, OPERATOR, "patch", "statefulsets.apps")
    wide_tikv.change(tikv={"replicas": 4})
    wide_tikv.run_until(lambda: _one_is_tombstone(wide_tikv))
    url = "http://basic-pd.default:2379/pd/api/v1/stores/remove-tombstone"
    wide_tikv.world.data_plane_transport().request(Request("DELETE", url, {}, timeout=5.0))
    assert [] == _tombstones(wide_tikv)
    heal()
    wide_tikv.run_until_ready()
    assert 4 == wide_tikv.replicas("tikv")


@pytest.mark.slow
@pytest.mark.rule("lifecycle-8.5")
def test_a_tikv_pod_that_runs_gets_time_to_register(wide_tikv: OperatorWorld) -> None:
    wide_tikv.world.faults.pod_crash_loop("*/basic-tikv-5")
    wide_tikv.change(tikv={"replicas": 6})
    wide_tikv.run(10.0)
    wide_tikv.change(tikv={"replicas": 5})
    wide_tikv.run(10.0)
    assert (
        "pod basic-tikv-5 is running but has no store; removing it unless one registers within" in wide_tikv.progressing
    )
    wide_tikv.run_until_ready(within=30.0)
    assert 5 == wide_tikv.replicas("tikv")


@pytest.mark.slow
@pytest.mark.rule("F6")
def test_outdated_marks_in_the_cache_remove_nothing(wide_pd: OperatorWorld) -> None:
    wide_pd.change(pd={"replicas": 4})
    wide_pd.run_until_ready()
    wide_pd.operator.caches[PERSISTENT_VOLUME_CLAIMS].blind = True
    wide_pd.change(pd={"replicas": 5})
    wide_pd.run(30.0)
    assert ([4, 5], 5) == (wide_pd.asked_replicas("pd"), len(member_names(wide_pd)))


@pytest.mark.slow
@pytest.mark.rule("F29", "R14")
def test_removes_a_pd_member_that_never_started(wide_pd: OperatorWorld) -> None:
    """A pod that was scaled in while it started has asked PD; PD lets no other pod join until it forgets this one."""
    wide_pd.run(1.0)  # until etcd counts all members as connected
    pd = wide_pd.world.data_plane.pd_cluster(NAMESPACE, "basic")
    assert pd is not None
    pd.join("basic-pd-6", "http://basic-pd-6.basic-pd-peer.default.svc:2380")
    assert "" in member_names(wide_pd)
    wide_pd.change(pd={"replicas": 6})
    wide_pd.run_until_ready()
    assert [f"basic-pd-{ordinal}" for ordinal in range(6)] == member_names(wide_pd)


@pytest.mark.slow
@pytest.mark.rule("F35")
def test_one_condition_shows_that_pd_agrees_to_an_eviction_and_does_not_list_it(wide_tikv: OperatorWorld) -> None:
    """An error at each request, and a wait between them, were two conditions that took turns."""
    world = wide_tikv
    heal = world.world.faults.pd_lies("default/basic", "no-leaders-are-evicted", "all")
    world.world.data_plane.hang(NAMESPACE, "basic-tikv-4")
    world.change(tikv={"replicas": 4})
    world.run(5.0)
    told = set()
    for _ in range(30):
        world.run(2.0)
        told.add(
            (world.condition("Progressing")["reason"], world.condition("Progressing")["message"].partition("; ")[2])
        )
    assert {("ScalingIn", "PD has agreed to this eviction, but does not list it")} == told
    asked = [each for each in dataplane_writes(world) if each == "POST schedulers"]
    assert 3 <= len(asked) <= 8
    heal()


@pytest.mark.slow
@pytest.mark.rule("F36")
def test_a_store_that_pd_agrees_to_keep_and_shows_as_leaving_stays_marked(wide_tikv: OperatorWorld) -> None:
    world = wide_tikv
    world.world.faults.regions_frozen("default/basic")
    world.change(tikv={"replicas": 4})
    world.run_until(lambda: stores_of(world)["basic-tikv-4"].state_name == OFFLINE, 400.0)
    world.forget()
    heal = world.world.faults.pd_lies("default/basic", "store-is-offline", "all", "basic-tikv-4")
    world.change(tikv={"replicas": 5})
    world.run(120.0)
    kept = [each for each in dataplane_writes(world) if each.endswith("state?state=Up")]
    assert 1 <= len(kept) <= 6
    assert "PD contradicts itself: it agreed to keep the store" in world.condition("Progressing")["message"]
    assert SCALE_IN_TIME in claim_marks(world)["tikv-basic-tikv-4"]
    heal()
    world.run_until_ready()
    assert UP == stores_of(world)["basic-tikv-4"].state_name
    assert {} == claim_marks(world)


@pytest.mark.slow
@pytest.mark.parametrize("lie", ["store-is-tombstone", "store-is-missing", "store-is-down"])
@pytest.mark.rule("F16")
def test_an_eviction_that_has_begun_does_not_end_because_one_answer_differs(wide_tikv: OperatorWorld, lie: str) -> None:
    world, about = wide_tikv, "basic-tikv-0" if lie == "store-is-down" else "basic-tikv-4"
    world.change(pd={"replicas": 3})
    world.run_until_ready()
    world.forget()
    world.world.faults.regions_frozen("default/basic")
    heal = world.world.faults.pd_lies("default/basic", lie, "follower", about)
    world.change(tikv={"replicas": 4})
    world.run(120.0)
    assert ["POST schedulers"] == [each for each in dataplane_writes(world) if "schedulers" in each]
    heal()
    world.world.faults.heal()
    world.run_until_ready(within=400.0)
    assert frozenset() == pd_of(world).evicting_stores()
