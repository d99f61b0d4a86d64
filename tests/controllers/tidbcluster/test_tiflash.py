"""TiFlash in a running cluster: its life cycle from the first pod to the last (lifecycle.md 6.4, 7.5, 8.6, 9.3)."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from dataplane.pd import DOWN
from kube.objects import Json
from kube.resources import CONFIG_MAPS, PERSISTENT_VOLUME_CLAIMS, PODS, SECRETS, STATEFUL_SETS
from member.context import FailoverSettings, Settings
from ports.clock import FakeClock
from rehearsal.operator import SETTINGS
from sandbox.dataplane.pd.cluster import PdCluster
from tests.certificates import CLIENT, Authority, secret_name
from tests.operator_world import NAMESPACE, OperatorWorld, sample

pytestmark = pytest.mark.slow

TABLE = "table-45-r"


def claim(size: str = "1Gi") -> Json:
    return {"resources": {"requests": {"storage": size}}}


def with_tiflash(replicas: int = 2, **fields: Any) -> Json:
    cluster = sample("basic")
    tiflash = {"baseImage": "pingcap/tiflash", "replicas": replicas, "maxFailoverCount": 1, "storageClaims": [claim()]}
    cluster["spec"]["tiflash"] = tiflash | fields
    return cluster


def pd_of(world: OperatorWorld) -> PdCluster:
    found = world.world.data_plane.pd_cluster(NAMESPACE, "basic")
    assert found is not None
    return found


def add_table(world: OperatorWorld, replicas: int) -> None:
    """The placement rule that ALTER TABLE ... SET TIFLASH REPLICA creates."""
    world.world.faults.tiflash_replicas(f"{NAMESPACE}/basic", replicas)


def stores(world: OperatorWorld) -> dict[str, str]:
    """The state of each TiFlash store by its pod, as PD's truth has it."""
    every, now = pd_of(world).stores, world.clock.now()
    return {each.address.partition(".")[0]: every.true_state(each, now) for each in every.all() if each.is_tiflash}


def settle(world: OperatorWorld, within: float = 180.0) -> None:
    """Let the operator notice the last change, and finish its work."""
    world.run_until(lambda: world.reason() != "Done", within=30.0)
    world.run_until_ready(within=within)
    world.run(5.0)


def pods(world: OperatorWorld) -> list[str]:
    return sorted(pod for each in world.every(PODS) if "-tiflash-" in (pod := each["metadata"]["name"]))


def learners(world: OperatorWorld) -> dict[str, int]:
    return {each.address.partition(".")[0]: each.peers for each in pd_of(world).stores.all() if each.is_tiflash}


def tiflash(world: OperatorWorld) -> Json:
    found: Json = world.cluster()["status"]["tiflash"]
    return found


@pytest.fixture
def flash(world: OperatorWorld) -> OperatorWorld:
    """A Ready cluster with two TiFlash."""
    world.apply(with_tiflash())
    world.run_until_ready()
    world.forget()
    return world


@pytest.mark.rule("lifecycle-6.4")
def test_tiflash_starts_with_the_cluster_and_the_status_lists_its_stores(flash: OperatorWorld) -> None:
    status = tiflash(flash)
    assert (True, "Normal", "pingcap/tiflash:v8.5.2") == (status["synced"], status["phase"], status["image"])
    assert {"basic-tiflash-0": "Up", "basic-tiflash-1": "Up"} == {
        each["podName"]: each["state"] for each in status["stores"].values()
    }
    assert "peerStores" not in status
    ours = {each["podName"] for each in flash.cluster()["status"]["tikv"]["stores"].values()}
    assert all("tikv" in pod for pod in ours)
    label = flash.get(PODS, "basic-tiflash-0")["metadata"]["labels"]["tidb.pingcap.com/store-id"]
    assert label in status["stores"]


@pytest.mark.rule("I29")
def test_an_idle_cluster_with_tiflash_writes_nothing(flash: OperatorWorld) -> None:
    flash.run(120.0)
    assert [] == flash.writes()


@pytest.mark.rule("lifecycle-3.1")
def test_tiflash_waits_for_pd_and_enables_placement_rules(world: OperatorWorld) -> None:
    cluster = with_tiflash()
    cluster["spec"]["pd"]["config"] = {"replication": {"enable-placement-rules": False}}
    world.apply(cluster)
    world.run_until(lambda: world.reason() != "", within=10.0)
    assert not any(each["metadata"]["name"] == "basic-tiflash" for each in world.every(STATEFUL_SETS))
    world.run_until_ready()
    assert pd_of(world).placement.is_enabled


@pytest.mark.rule("lifecycle-7.2", "F22", "#3789")
def test_upgrades_tiflash_before_tikv_one_pod_at_a_time(flash: OperatorWorld) -> None:
    order: list[str] = []

    def noted() -> bool:
        for each in flash.every(PODS):
            name, images = each["metadata"]["name"], [part["image"] for part in each["spec"]["containers"]]
            if any(image.endswith("v8.5.3") for image in images) and name not in order:
                order.append(name)
        away = [each for each in flash.every(PODS) if "-tiflash-" in each["metadata"]["name"] and not is_ready(each)]
        assert len(away) <= 1
        return flash.is_ready("basic") and flash.reason() == "Done" and len(order) >= 5

    flash.change(version="v8.5.3")
    flash.run_until(noted, within=300.0)
    parts = [name.split("-")[1] for name in order]
    assert sorted(parts, key=["pd", "tiflash", "tikv", "tidb"].index) == parts
    assert [name for name in order if "tiflash" in name] == ["basic-tiflash-1", "basic-tiflash-0"]


def is_ready(pod: Json) -> bool:
    return any(each["type"] == "Ready" and each["status"] == "True" for each in pod["status"].get("conditions", []))


@pytest.mark.rule("lifecycle-8.6")
def test_a_store_leaves_when_its_replicas_have_moved_and_keeps_its_marked_claim(flash: OperatorWorld) -> None:
    add_table(flash, 1)
    flash.run_until(lambda: sum(learners(flash).values()) == 6)
    flash.change(tiflash={"replicas": 1})
    settle(flash, 120.0)

    assert ["basic-tiflash-0"] == pods(flash)
    assert ({"basic-tiflash-0": "Up", "basic-tiflash-1": "Tombstone"}, 6) == (
        stores(flash),
        learners(flash)["basic-tiflash-0"],
    )
    kept = flash.get(PERSISTENT_VOLUME_CLAIMS, "data0-basic-tiflash-1")["metadata"]["annotations"]
    assert "tidb.pingcap.com/pvc-defer-deleting" in kept


@pytest.mark.parametrize(("count", "wanted"), [(2, 1), (1, 0)])
@pytest.mark.rule("lifecycle-8.6")
def test_a_scale_in_below_the_replicas_of_a_table_waits_and_names_the_rule(
    flash: OperatorWorld, count: int, wanted: int
) -> None:
    add_table(flash, count)
    flash.run(10.0)
    flash.change(tiflash={"replicas": wanted})
    flash.run_until(lambda: flash.reason() == "FailedScaleIn", within=60.0)
    flash.run(60.0)

    message = flash.condition("Progressing")["message"]
    assert f"the placement rule {TABLE} of group tiflash keeps {count} replicas" in message
    assert "ALTER TABLE ... SET TIFLASH REPLICA" in message
    assert "Up" == stores(flash)["basic-tiflash-0"]

    pd_of(flash).placement.remove("tiflash", TABLE)
    pd_of(flash).stores.reschedule(flash.clock.now())
    flash.run_until(lambda: wanted == len(pods(flash)), within=180.0)


@pytest.mark.rule("F36")
def test_a_reverted_scale_in_keeps_the_store(flash: OperatorWorld) -> None:
    add_table(flash, 1)
    flash.run(5.0)
    thaw = flash.world.faults.regions_frozen(f"{NAMESPACE}/basic")
    flash.change(tiflash={"replicas": 1})
    flash.run_until(lambda: stores(flash)["basic-tiflash-1"] == "Offline", within=60.0)
    flash.change(tiflash={"replicas": 2})
    flash.run_until(lambda: stores(flash)["basic-tiflash-1"] == "Up", within=60.0)
    thaw()
    flash.run_until_ready()
    assert 2 == len(pods(flash))


@pytest.mark.rule("lifecycle-8.6")
def test_scales_out_from_0_on_new_claims(flash: OperatorWorld) -> None:
    flash.change(tiflash={"replicas": 0})
    settle(flash, 180.0)
    assert [] == pods(flash)
    flash.change(tiflash={"replicas": 1, "storageClaims": [claim("512Mi"), claim("2Gi")]})
    settle(flash, 180.0)

    assert {"basic-tiflash-0": "Up"} == {pod: state for pod, state in stores(flash).items() if state != "Tombstone"}
    sizes = {
        each["metadata"]["name"]: each["spec"]["resources"]["requests"]["storage"]
        for each in flash.every(PERSISTENT_VOLUME_CLAIMS)
        if each["metadata"]["name"].endswith("basic-tiflash-0")
    }
    assert {"data0-basic-tiflash-0": "512Mi", "data1-basic-tiflash-0": "2Gi"} == sizes


@pytest.mark.rule("lifecycle-12")
def test_tiflash_is_suspended_before_tikv_and_resumed(flash: OperatorWorld) -> None:
    ids = set(tiflash(flash)["stores"])
    flash.change(suspendAction={"suspendStatefulSet": True})
    flash.run_until(lambda: not flash.every(STATEFUL_SETS), within=120.0)
    flash.change(suspendAction={"suspendStatefulSet": False})
    settle(flash, 180.0)
    assert ids == set(tiflash(flash)["stores"])


@pytest.mark.rule("lifecycle-13")
def test_replaces_a_volume_after_its_store_has_left(flash: OperatorWorld) -> None:
    before = flash.get(PERSISTENT_VOLUME_CLAIMS, "data0-basic-tiflash-1")["metadata"]["uid"]
    pod = {"metadata": {"annotations": {"tidb.pingcap.com/replace-volume": "true"}}}
    flash.admin.patch(PODS, "basic-tiflash-1", NAMESPACE, pod)

    def replaced() -> bool:
        found = [each for each in flash.every(PERSISTENT_VOLUME_CLAIMS) if each["metadata"]["uid"] == before]
        return not found and flash.is_ready("basic") and flash.reason() == "Done"

    flash.run_until(replaced, within=300.0)
    assert {"Up"} == {state for state in stores(flash).values() if state != "Tombstone"}
    assert 2 == len(tiflash(flash)["stores"])


@pytest.mark.rule("lifecycle-10.2")
def test_tiflash_volumes_grow(flash: OperatorWorld) -> None:
    def sizes() -> list[str]:
        claims = [flash.get(PERSISTENT_VOLUME_CLAIMS, f"data0-basic-tiflash-{ordinal}") for ordinal in range(2)]
        return [each["spec"]["resources"]["requests"]["storage"] for each in claims]

    flash.change(tiflash={"storageClaims": [claim("2Gi")]})
    flash.run_until(lambda: sizes() == ["2Gi", "2Gi"] and flash.exists(STATEFUL_SETS, "basic-tiflash"), within=240.0)
    flash.run_until_ready()
    templates = flash.get(STATEFUL_SETS, "basic-tiflash")["spec"]["volumeClaimTemplates"]
    assert "2Gi" == templates[0]["spec"]["resources"]["requests"]["storage"]


@pytest.mark.rule("lifecycle-6.5")
def test_a_new_proxy_configuration_restarts_the_pods(flash: OperatorWorld) -> None:
    uids = {each["metadata"]["uid"] for each in flash.every(PODS) if "tiflash" in each["metadata"]["name"]}
    flash.change(tiflash={"config": {"proxy": "log-level = 'warn'\n"}})
    settle(flash, 240.0)
    after = {each["metadata"]["uid"] for each in flash.every(PODS) if "tiflash" in each["metadata"]["name"]}
    assert not uids & after
    texts = [each["data"].get("proxy_templ.toml", "") for each in flash.every(CONFIG_MAPS)]
    assert any('log-level = "warn"' in text for text in texts)


@pytest.fixture
def brittle(clock: FakeClock) -> Iterator[OperatorWorld]:
    """A Ready cluster with two TiFlash whose losses are recorded after a minute."""
    failover = FailoverSettings(pd_period=60.0, tikv_period=60.0, tidb_period=60.0, tiflash_period=60.0)
    world = OperatorWorld(clock=clock, settings=Settings(SETTINGS.discovery_image, failover))
    cluster = with_tiflash()
    cluster["spec"]["pd"]["config"] = {"schedule": {"max-store-down-time": "1m"}}
    world.apply(cluster)
    world.run_until_ready()
    yield world
    world.stop()


@pytest.mark.rule("lifecycle-9.3")
def test_a_lost_store_gets_a_substitute_until_the_user_says_that_it_is_back(brittle: OperatorWorld) -> None:
    add_table(brittle, 1)
    brittle.run(5.0)
    heal = brittle.world.faults.pod_crash_loop(f"{NAMESPACE}/basic-tiflash-1")
    brittle.run_until(lambda: brittle.reason() == "TiFlashFailedOver", within=600.0)
    record = next(iter(tiflash(brittle)["failureStores"].values()))
    assert ("basic-tiflash-1", 3) == (record["podName"], len(pods(brittle)))
    assert {"basic-tiflash-0", "basic-tiflash-2"} == {pod for pod, state in stores(brittle).items() if state == "Up"}
    assert DOWN == stores(brittle)["basic-tiflash-1"]

    heal()
    brittle.change(tiflash={"recoverFailover": True})
    settle(brittle, 600.0)
    assert (["basic-tiflash-0", "basic-tiflash-1"], None) == (pods(brittle), tiflash(brittle).get("failureStores"))


@pytest.mark.rule("F13")
def test_a_roll_continues_when_a_lost_store_is_empty_and_has_a_substitute(brittle: OperatorWorld) -> None:
    brittle.world.faults.pod_crash_loop(f"{NAMESPACE}/basic-tiflash-1")
    brittle.run_until(lambda: brittle.reason() == "TiFlashFailedOver", within=600.0)
    brittle.change(version="v8.5.3")

    def rolled() -> bool:
        images = {each["spec"]["containers"][0]["image"] for each in brittle.every(PODS) if "-tiflash-" in str(each)}
        return images >= {"pingcap/tiflash:v8.5.3"} and brittle.reason() == "TiFlashFailedOver"

    brittle.run_until(rolled, within=600.0)
    tikv = [each for each in brittle.every(PODS) if "-tikv-" in each["metadata"]["name"]]
    assert {"pingcap/tikv:v8.5.3"} == {each["spec"]["containers"][0]["image"] for each in tikv}


@pytest.mark.rule("F31")
def test_a_lost_tiflash_triggers_no_failover_of_other_components(brittle: OperatorWorld) -> None:
    brittle.world.faults.pod_crash_loop(f"{NAMESPACE}/basic-tiflash-1")
    brittle.run(300.0)
    status = brittle.cluster()["status"]
    assert [None, None, None] == [
        status["tikv"].get("failureStores"),
        status["pd"].get("failureMembers"),
        status["tidb"].get("failureMembers"),
    ]


@pytest.mark.rule("lifecycle-3.2")
def test_a_paused_or_invalid_cluster_still_reports_its_stores(flash: OperatorWorld) -> None:
    flash.change(tiflash={"storageClaims": [], "replicas": 3})
    flash.run_until(lambda: flash.reason() == "InvalidSpec")
    flash.world.faults.pod_crash_loop(f"{NAMESPACE}/basic-tiflash-1")
    flash.run_until(
        lambda: "Disconnected" in {each["state"] for each in tiflash(flash)["stores"].values()}, within=90.0
    )
    assert 2 == len(pods(flash))


@pytest.mark.rule("lifecycle-7.5", "F22")
def test_a_pod_whose_store_does_not_run_stops_the_roll(flash: OperatorWorld) -> None:
    held: Callable[[], str] = lambda: flash.condition("Progressing")["message"]  # noqa: E731
    flash.world.faults.pod_slow(f"{NAMESPACE}/basic-tiflash-*", 60.0)
    flash.change(tiflash={"version": "v8.5.3"})
    flash.run_until(lambda: "basic-tiflash-1" in held() and "store" in held(), within=60.0)
    images = {
        each["metadata"]["name"]: each["spec"]["containers"][0]["image"].rpartition(":")[2]
        for each in flash.every(PODS)
        if "-tiflash-" in each["metadata"]["name"]
    }
    assert {"basic-tiflash-0": "v8.5.2", "basic-tiflash-1": "v8.5.3"} == images


@pytest.mark.rule("lifecycle-9.1")
def test_tiflash_starts_and_rolls_with_tls(world: OperatorWorld) -> None:
    authority = Authority()
    cluster = with_tiflash()
    cluster["spec"]["tlsCluster"] = {"enabled": True}
    for component in ("pd", "tiflash", "tikv", "tidb", CLIENT):
        world.admin.create(SECRETS, authority.of(component).secret(secret_name(component)), NAMESPACE)
    world.apply(cluster)
    world.run_until_ready(within=120.0)
    world.change(tiflash={"version": "v8.5.3"})
    settle(world, 300.0)

    images = {each["spec"]["containers"][0]["image"] for each in world.every(PODS) if "-tiflash-" in str(each)}
    assert "pingcap/tiflash:v8.5.3" in images
    assert {"Up"} == set(stores(world).values())
