"""A log backup and a restore to a point in time, end to end: controllers, `backup-manager`, BR, TiKV."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from kube.objects import Json, condition_of
from kube.resources import BACKUPS, COMPACT_BACKUPS, PODS, RESTORES
from ports.clock import FakeClock
from sandbox.dataplane.br.compaction import result_of
from sandbox.dataplane.log_backup import LogTask
from sandbox.dataplane.processes import DiskTrouble
from tests.operator_world import NAMESPACE, OperatorWorld, sample
from tests.sandbox.test_backups import (
    create,
    delete_with_volumes,
    ended,
    on_volume,
    phase,
    prepare,
    sql,
    tables,
    volume,
)

pytestmark = pytest.mark.slow

LOG: Json = {"backupMode": "log"}


@pytest.fixture
def world(clock: FakeClock) -> Iterator[OperatorWorld]:
    """The sample `basic` with a table, under a log backup."""
    made = OperatorWorld(clock=clock)
    prepare(made)
    create(made, BACKUPS, on_volume("log", **LOG), name="log")
    made.run_until(lambda: phase(made, BACKUPS, "log") == "Running" and bool(log(made).get("commitTs")))
    yield made
    made.stop()


def log(world: OperatorWorld) -> Json:
    found: Json = world.get(BACKUPS, "log").get("status") or {}
    return found


def task(world: OperatorWorld) -> LogTask:
    cluster = world.world.data_plane.pd_cluster(NAMESPACE, "basic")
    assert cluster is not None
    return LogTask(cluster.etcd, "log", world.clock.now)


def snapshot(world: OperatorWorld) -> None:
    create(world, BACKUPS, on_volume("full"), name="full")
    assert "Complete" == ended(world, BACKUPS, "full")["phase"]


def into_a_new_cluster(world: OperatorWorld, until: str = "", **spec: object) -> Json:
    """Lose everything, restore to a moment, and return the final status of the Restore."""
    begin_in_a_new_cluster(world, until, **spec)
    return ended(world, RESTORES, within=300)


def begin_in_a_new_cluster(world: OperatorWorld, until: str = "", **spec: object) -> None:
    delete_with_volumes(world)
    world.apply(sample("basic"))
    world.run_until_ready()
    full = {"pitrFullBackupStorageProvider": {"local": on_volume("full")["local"]}}
    point = {"pitrRestoredTs": until} if until else {}
    create(world, RESTORES, on_volume("log", restoreMode="pitr", **full, **point, **spec))


def edit(world: OperatorWorld, **spec: object) -> None:
    world.admin.patch(BACKUPS, "log", NAMESPACE, {"spec": spec})


def saved(world: OperatorWorld, what: int) -> None:
    """Wait until the checkpoint in the status has passed a moment."""
    world.run_until(lambda: int(log(world).get("logCheckpointTs") or 0) >= what, 200)


def test_restores_a_moment_between_two_mistakes(world: OperatorWorld) -> None:
    snapshot(world)
    sql(world, "INSERT INTO shop.orders VALUES (3, 'after the snapshot')")
    sql(world, "CREATE TABLE shop.late (id INT PRIMARY KEY)")
    sql(world, "INSERT INTO shop.late VALUES (1)", "DELETE FROM shop.orders WHERE id = 1")
    moment, digest = tables(world).now(), tables(world).digest()
    world.run(1)
    sql(world, "DROP DATABASE shop")
    saved(world, moment)
    restored = into_a_new_cluster(world, str(moment))
    assert ("Complete", str(moment)) == (restored["phase"], restored["commitTs"]), restored
    assert digest == tables(world).digest()


def test_without_a_moment_the_whole_log_is_restored(world: OperatorWorld) -> None:
    snapshot(world)
    sql(world, "INSERT INTO shop.orders VALUES (3, 'after the snapshot')")
    digest = tables(world).digest()
    saved(world, tables(world).now())
    assert "Complete" == into_a_new_cluster(world)["phase"]
    assert digest == tables(world).digest()


def test_a_replication_restore_replays_the_log_after_the_snapshot(world: OperatorWorld) -> None:
    snapshot(world)
    at_snapshot = tables(world).digest()
    sql(world, "INSERT INTO shop.orders VALUES (3, 'after the snapshot')")
    digest = tables(world).digest()
    saved(world, tables(world).now())
    begin_in_a_new_cluster(world, replicationConfig={"compactBackupName": "none", "waitTimeout": "10m"})

    def is_restored() -> bool:
        (restore,) = world.every(RESTORES)
        conditions = (restore.get("status") or {}).get("conditions") or ()
        return condition_of(conditions, "SnapshotRestored").get("status") == "True"

    world.run_until(is_restored, 300)
    world.run(30)
    assert at_snapshot == tables(world).digest()
    done = ended(world, RESTORES, within=700)
    assert ("Complete", "log-restore", digest) == (done["phase"], done["replicationStep"], tables(world).digest()), done


def test_the_shards_of_a_compaction_share_the_files_of_the_log(world: OperatorWorld) -> None:
    for number in (3, 4):
        sql(world, f"INSERT INTO shop.orders VALUES ({number}, 'a plum')")
        saved(world, tables(world).now())
    create(world, COMPACT_BACKUPS, on_volume("log", mode="sharded", shardCount=2, startTs="1"), name="shards")
    world.run_until(lambda: (world.get(COMPACT_BACKUPS, "shards").get("status") or {}).get("state") == "Complete", 120)
    there = volume(world).objects
    shards = [json.loads(there[f"log/{result_of(shard, 2)}"]) for shard in (1, 2)]
    files = [name.removeprefix("log/") for name in sorted(there) if name.endswith(".log")]
    assert files == sorted(shards[0] + shards[1])
    assert all(shards)


def test_a_restore_to_a_future_moment_waits_and_leaves_nothing(world: OperatorWorld) -> None:
    snapshot(world)
    begin_in_a_new_cluster(world, "2099-01-01T00:00:00Z")
    world.run(60)
    (restore,) = world.every(RESTORES)
    waiting = condition_of(restore["status"]["conditions"], "Waiting")
    assert ("True", "WaitingForLog") == (waiting["status"], waiting["reason"])
    assert "to reach spec.pitrRestoredTs 2099-01-01T00:00:00Z" in waiting["message"]
    assert [] == tables(world).schemas()


def test_pause_resume_truncate_stop_and_delete(world: OperatorWorld) -> None:
    edit(world, logSubcommand="log-pause")
    world.run_until(lambda: phase(world, BACKUPS, "log") == "Paused")
    assert task(world).is_paused
    edit(world, logSubcommand="log-start")
    world.run_until(lambda: phase(world, BACKUPS, "log") == "Running")
    assert not task(world).is_paused
    sql(world, "INSERT INTO shop.orders VALUES (3, 'x')")
    until = tables(world).now()
    saved(world, until)
    logs = {name for name in volume(world).objects if name.endswith(".log")}
    edit(world, logTruncateUntil=log(world)["logCheckpointTs"])
    world.run_until(lambda: "logSuccessTruncateUntil" in log(world))
    assert logs
    assert logs.isdisjoint(volume(world).objects)
    edit(world, logSubcommand="log-stop")
    world.run_until(lambda: phase(world, BACKUPS, "log") == "Stopped")
    assert not task(world).exists


def test_a_deleted_log_backup_is_stopped_and_its_files_are_deleted(world: OperatorWorld) -> None:
    edit(world, cleanPolicy="Delete")
    sql(world, "INSERT INTO shop.orders VALUES (3, 'x')")
    world.run(30)
    assert any(name.startswith("log/") for name in volume(world).objects)
    world.admin.delete(BACKUPS, "log", NAMESPACE)
    world.run_until(lambda: not world.exists(BACKUPS, "log"), 120)
    assert not task(world).exists
    assert not [name for name in volume(world).objects if name.startswith("log/")]


def test_a_refusing_storage_pauses_the_log_backup_with_a_reason(world: OperatorWorld) -> None:
    volume(world).trouble = DiskTrouble.FULL
    world.run_until(lambda: phase(world, BACKUPS, "log") == "RetryFailed", 200)
    said = next(each for each in log(world)["conditions"] if each["type"] == "RetryFailed")
    assert ("LogBackupErrorPaused", True) == (said["reason"], "external storage: full" in said["message"])
    volume(world).trouble = None
    task(world).resume()
    world.run_until(lambda: phase(world, BACKUPS, "log") == "Running", 200)


def guide(name: str) -> Json:
    """The spec in a file of docs/backup.md."""
    text = (Path(__file__).parents[2] / "docs" / "backup.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```yaml\n# (\S+)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    (body,) = (yaml.safe_load(block) for named, block in blocks if named == name)
    found: Json = body["spec"]
    return found


def test_the_objects_of_the_guide_restore_a_point_in_time(clock: FakeClock) -> None:
    world = OperatorWorld(clock=clock)
    try:
        prepare(world)
        create(world, BACKUPS, guide("log.yaml"), name="log")
        world.run_until(lambda: bool(log(world).get("commitTs")))
        create(world, BACKUPS, guide("backup.yaml"), name="monday")
        assert "Complete" == ended(world, BACKUPS, "monday")["phase"]
        sql(world, "INSERT INTO shop.orders VALUES (3, 'before the mistake')")
        moment, digest = tables(world).now(), tables(world).digest()
        sql(world, "DROP DATABASE shop")
        saved(world, moment)
        create(world, RESTORES, guide("point.yaml") | {"pitrRestoredTs": str(moment)}, name="point")
        restored = ended(world, RESTORES, "point", within=300)
        assert ("Complete", digest) == (restored["phase"], tables(world).digest()), restored
    finally:
        world.stop()


@pytest.mark.parametrize("command", ["log-pause", "log-stop"])
def test_a_killed_pod_is_replaced(world: OperatorWorld, command: str) -> None:
    edit(world, logSubcommand=command)

    def pod() -> str:
        there = [each["metadata"]["name"] for each in world.every(PODS) if each["status"].get("phase") == "Running"]
        return next((each for each in there if each.startswith(f"backup-log-{command}-")), "")

    world.run_until(lambda: bool(pod()))
    world.world.data_plane.crash(NAMESPACE, pod())
    done = {"log-pause": "Paused", "log-stop": "Stopped"}[command]
    world.run_until(lambda: phase(world, BACKUPS, "log") == done, 600)
