"""Full-text search in a cluster that works (TICI-2 to TICI-39)."""

import base64
import re
from collections.abc import Iterator
from typing import Any

import pytest

from kube.objects import Json
from kube.resources import CONFIG_MAPS, PODS, SECRETS, SERVICES, STATEFUL_SETS
from ports.clock import FakeClock
from sandbox.dataplane.ticdc.book import Book
from tests.operator_world import NAMESPACE, OperatorWorld, sample

FEED = "tici-replication-task"
SERVERS: Json = {"baseImage": "pingcap/tici", "version": "v9.0.0", "replicas": 2}
S3: Json = {"endpoint": "http://minio:9000", "bucket": "fts", "accessKey": "minio", "secretKey": "a+b&c/d"}
TICI: Json = {"meta": SERVERS, "worker": SERVERS, "s3": S3}


def with_tici(**fields: Any) -> Json:
    cluster = sample("basic")
    cluster["spec"]["ticdc"] = {"baseImage": "pingcap/ticdc", "replicas": 1, "version": "v8.5.2"}
    claims = [{"resources": {"requests": {"storage": "10Gi"}}}]
    cluster["spec"]["tiflash"] = {"replicas": 1, "storageClaims": claims, "version": "v8.5.2"}
    cluster["spec"]["tici"] = TICI | fields
    return cluster


@pytest.fixture(name="world")
def _world(clock: FakeClock) -> Iterator[OperatorWorld]:
    world = OperatorWorld(clock=clock)
    yield world
    world.stop()


@pytest.fixture(name="basic")
def _basic(world: OperatorWorld) -> OperatorWorld:
    world.apply(with_tici())
    world.run_until_ready()
    world.run_until(lambda: tici(world).get("changefeedSynced") is True, within=30.0)
    world.forget()
    return world


def tici(world: OperatorWorld) -> Json:
    found: Json = world.cluster()["status"].get("tici", {})
    return found


def book(world: OperatorWorld) -> Book:
    pd = world.world.data_plane.pd_cluster(NAMESPACE, "basic")
    assert pd is not None
    return Book(pd.etcd, world.clock.now())


def feed(world: OperatorWorld) -> Json:
    found = book(world).feed(FEED)
    assert found is not None
    return found


def pods(world: OperatorWorld, component: str) -> dict[str, str]:
    """The UIDs of a component's pods, by name."""
    found = (each["metadata"] for each in world.every(PODS))
    return {each["name"]: each["uid"] for each in found if each["name"].startswith(f"basic-{component}-")}


def progress(world: OperatorWorld, part: str = "ticiMeta") -> str:
    """Reason and message of a component's condition Progressing."""
    conditions = world.cluster()["status"].get(part, {}).get("conditions") or ()
    return next((f"{each['reason']}: {each['message']}" for each in conditions if each["type"] == "Progressing"), "")


@pytest.mark.slow
def test_nothing_changes_for_a_cluster_without_full_text_search(world: OperatorWorld) -> None:
    cluster = with_tici()
    del cluster["spec"]["tici"]
    world.apply(cluster)
    world.run_until_ready()
    world.run(30.0)
    world.forget()
    before = pods(world, "")
    world.restart()
    world.run(30.0)
    assert ([], before) == (world.writes(), pods(world, ""))
    everything = [world.cluster(), *world.every(CONFIG_MAPS), *world.every(STATEFUL_SETS), *world.every(SERVICES)]
    assert [] == re.findall(r"\btici\b|\bticiMeta\b|\bticiWorker\b|newarch", str(everything))


@pytest.mark.slow
@pytest.mark.rule("TICI-6", "TICI-8", "TICI-33")
def test_tiflash_starts_after_tici_which_starts_after_tidb(world: OperatorWorld) -> None:
    world.apply(with_tici())
    order: list[str] = []

    def ready() -> bool:
        names = {each["metadata"]["name"].rpartition("-")[0] for each in world.every(PODS)}
        order.extend(sorted(names - set(order)))
        return world.is_ready()

    world.run_until(ready, within=300.0)
    first = [order.index(f"basic-{name}") for name in ("tidb", "tici-meta", "tiflash")]
    assert sorted(first) == first
    status = world.cluster()["status"]
    for part in ("ticiMeta", "ticiWorker"):
        assert (True, "Normal", 2) == (
            status[part]["synced"],
            status[part]["phase"],
            status[part]["statefulSet"]["readyReplicas"],
        )
    assert world.exists(SERVICES, "basic-tici-worker-peer")


@pytest.mark.slow
@pytest.mark.rule("TICI-25", "TICI-26", "TICI-28")
def test_the_operator_creates_the_changefeed_and_reports_it(basic: OperatorWorld) -> None:
    assert ("normal", "none") == (feed(basic)["state"], feed(basic)["separator"])
    assert "a%2Bb%26c" in feed(basic)["sink"]
    found = tici(basic)
    assert (True, "normal") == (found["changefeedSynced"], found["changefeedState"])
    assert found["changefeedCheckpoint"].startswith("20")
    (ticdc,) = [each for each in basic.every(PODS) if "-ticdc-" in each["metadata"]["name"]]
    assert "--newarch=true" in ticdc["spec"]["containers"][0]["command"][2]
    shown = str(basic.cluster()["status"])
    assert "a+b" not in shown
    assert "a%2Bb" not in shown


@pytest.mark.slow
@pytest.mark.rule("TICI-28")
def test_a_changed_sink_is_sent_to_a_paused_changefeed_which_continues(basic: OperatorWorld) -> None:
    before = feed(basic)["begin"]
    basic.change(tici={"s3": {"secretKey": "new"}})
    basic.run_until(lambda: "new" in feed(basic)["sink"] and feed(basic)["state"] == "normal", within=60.0)
    basic.run_until(lambda: tici(basic).get("changefeedChanging") is None, within=60.0)
    assert before == feed(basic)["begin"]
    assert tici(basic)["changefeedSynced"]
    uri = "s3://other/cdc?protocol=canal-json"
    basic.change(tici={"changefeed": {"sinkURI": uri, "changefeedID": "second"}})
    basic.run_until(lambda: (book(basic).feed("second") or {}).get("sink") == uri, within=60.0)
    assert "normal" == feed(basic)["state"]


@pytest.mark.slow
@pytest.mark.rule("TICI-28")
def test_a_changefeed_that_a_user_has_paused_stays_paused(basic: OperatorWorld) -> None:
    book(basic).record_feed(FEED, feed(basic) | {"state": "stopped"})
    basic.change(tici={"s3": {"secretKey": "new"}})
    basic.run(120.0)
    assert ("stopped", False) == (feed(basic)["state"], "new" in feed(basic)["sink"])
    assert "a user of TiCDC has paused the changefeed" in progress(basic)


@pytest.mark.slow
@pytest.mark.rule("TICI-28")
def test_a_failed_changefeed_is_reported_without_keys(basic: OperatorWorld) -> None:
    message = "cannot reach s3://fts/cdc?access-key=minio&secret-access-key=a%2Bb: denied"
    trouble = {"state": "failed", "error": {"addr": "", "code": "CDC:ErrStorageSinkInvalidConfig", "message": message}}
    book(basic).record_feed(FEED, feed(basic) | trouble)
    basic.run_until(lambda: tici(basic).get("changefeedState") == "failed", within=60.0)
    said = tici(basic)["changefeedLastError"]
    assert "denied" in said
    assert "a%2Bb" not in said
    assert "minio" not in said
    basic.run_until(lambda: "is failed" in progress(basic), within=60.0)


@pytest.mark.slow
@pytest.mark.rule("TICI-28")
def test_a_removed_changefeed_continues_where_it_was(basic: OperatorWorld) -> None:
    basic.run(60.0)
    pd = basic.world.data_plane.pd_cluster(NAMESPACE, "basic")
    assert pd is not None
    pd.etcd.delete(b"/tidb/cdc/default/default/changefeed/info/" + FEED.encode(), b"", basic.clock.now())
    gone_at = basic.clock.wall()
    basic.run(400.0)
    assert feed(basic)["begin"] >> 18 < gone_at.timestamp() * 1000


@pytest.mark.slow
@pytest.mark.rule("TICI-28")
def test_without_the_changefeed_the_operator_asks_ticdc_for_nothing(world: OperatorWorld) -> None:
    world.apply(with_tici(changefeed={"enable": False}))
    world.run_until_ready()
    world.run(60.0)
    assert book(world).feed(FEED) is None


@pytest.mark.slow
def test_keys_come_from_a_secret_and_a_new_one_reaches_the_sink(world: OperatorWorld) -> None:
    world.apply(with_tici(s3={"endpoint": "http://minio:9000", "bucket": "fts", "secretName": "keys"}))
    world.run_until(lambda: progress(world).startswith("WaitingForBucketKeys"), within=120.0)
    world.admin.create(SECRETS, secret("first"), NAMESPACE)
    world.run_until_ready()
    world.run_until(lambda: "first" in (book(world).feed(FEED) or {"sink": ""})["sink"], within=60.0)
    texts = str([each["data"] for each in world.every(CONFIG_MAPS) if "data" in each])
    assert "first" not in texts
    assert "first" not in str(world.cluster())
    world.admin.patch(SECRETS, "keys", NAMESPACE, {"data": secret("second")["data"]})
    world.run_until(lambda: "second" in feed(world)["sink"] and feed(world)["state"] == "normal", within=60.0)


def secret(key: str) -> Json:
    data = {"access_key": "minio", "secret_key": key}
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "keys", "namespace": NAMESPACE},
        "data": {name: base64.b64encode(text.encode()).decode() for name, text in data.items()},
    }


@pytest.mark.slow
@pytest.mark.rule("TICI-34", "TICI-35")
def test_servers_are_rolled_one_by_one_and_scaled(basic: OperatorWorld) -> None:
    before = pods(basic, "tici-worker")
    basic.change(tici={"worker": {"version": "v9.0.1", "replicas": 3}})
    basic.run_until(lambda: len(pods(basic, "tici-worker")) == 3 and basic.is_ready(), within=300.0)
    basic.run_until_ready(within=300.0)
    after = pods(basic, "tici-worker")
    assert not set(before.values()) & set(after.values())
    basic.change(tici={"worker": {"replicas": 1}})
    basic.run_until_ready(within=120.0)
    assert ["basic-tici-worker-0"] == list(pods(basic, "tici-worker"))


@pytest.mark.slow
@pytest.mark.rule("TICI-7", "TICI-8")
def test_workers_that_crash_hold_up_nothing_but_themselves(basic: OperatorWorld) -> None:
    basic.change(tici={"worker": {"config": '[s3]\nbucket = ""\n'}}, tiflash={"replicas": 2})
    basic.run_until(lambda: len(pods(basic, "tiflash")) == 2, within=300.0)
    basic.run(60.0)
    worker = basic.cluster()["status"]["ticiWorker"]
    assert (None, 1) == (worker.get("synced"), worker["statefulSet"]["readyReplicas"])
    assert progress(basic, "ticiWorker").startswith("RollingUpdate")


@pytest.mark.slow
@pytest.mark.rule("TICI-37")
def test_the_whole_cluster_is_suspended_and_resumed(basic: OperatorWorld) -> None:
    basic.change(suspendAction={"suspendStatefulSet": True})
    basic.run_until(lambda: not basic.every(PODS) or not pods(basic, "pd"), within=600.0)
    assert {} == pods(basic, "tici-meta") == pods(basic, "tici-worker")
    basic.change(suspendAction=None)
    basic.run_until_ready(within=600.0)
    assert 2 == len(pods(basic, "tici-meta"))


@pytest.mark.slow
@pytest.mark.rule("TICI-39")
def test_tici_is_removed_after_it_was_scaled_to_nothing(basic: OperatorWorld) -> None:
    basic.change(tici=None)
    basic.run(60.0)
    assert 2 == len(pods(basic, "tici-meta"))
    assert progress(basic).startswith("ComponentRemoved")
    nothing = SERVERS | {"replicas": 0}
    basic.change(tici=TICI | {"meta": nothing, "worker": nothing})
    basic.run_until(lambda: not pods(basic, "tici-meta") and not pods(basic, "tici-worker"), within=120.0)
    basic.change(tici=None)
    basic.run_until_ready(within=300.0)
    template = basic.get(STATEFUL_SETS, "basic-tiflash")["spec"]["template"]["spec"]
    (used,) = [each["configMap"]["name"] for each in template["volumes"] if "configMap" in each]
    assert "tici" not in str(basic.get(CONFIG_MAPS, used)["data"])
    assert basic.exists(STATEFUL_SETS, "basic-tici-meta")
