"""Backups and Restores in the sandbox, end to end: the controllers, `backup-manager`, a BR that reads regions."""

from collections.abc import Iterator
from typing import Any

import pytest

from kube.objects import Json
from kube.resources import (
    BACKUPS,
    JOBS,
    PERSISTENT_VOLUME_CLAIMS,
    PODS,
    RESTORES,
    SECRETS,
    SERVICE_ACCOUNTS,
    TIDB_CLUSTERS,
    Resource,
)
from ports.clock import FakeClock
from ports.sql import SqlLogin
from rehearsal.backup_storage import SANDBOX_S3
from sandbox.conditions import holds
from sandbox.dataplane.processes import Disk, DiskTrouble
from sandbox.dataplane.tables import Tables
from tests.backup_manager.storage.conftest import Place, place, server, servers
from tests.backup_manager.storage.specs import SECRET, storage_of_spec
from tests.operator_world import NAMESPACE, OperatorWorld, sample

__all__ = ["place", "server", "servers"]

CLAIM = "backups"
ROWS = "INSERT INTO shop.orders VALUES (1, 'three apples'), (2, 'it''s a pear')"


@pytest.fixture
def basic(clock: FakeClock) -> Iterator[OperatorWorld]:
    """The sample `basic`, Ready, with a table in it, and a claim for backups."""
    world = OperatorWorld(clock=clock)
    prepare(world)
    yield world
    world.stop()


def prepare(world: OperatorWorld, cluster: Json | None = None) -> None:
    """Create a Ready cluster `basic` with a table and a claim for backups."""
    world.apply(cluster or sample("basic"))
    world.run_until_ready()
    claim = {"accessModes": ["ReadWriteMany"], "resources": {"requests": {"storage": "1Gi"}}}
    world.admin.create(PERSISTENT_VOLUME_CLAIMS, {"metadata": {"name": CLAIM}, "spec": claim}, NAMESPACE)
    world.admin.create(SERVICE_ACCOUNTS, {"metadata": {"name": "tidb-backup-manager"}}, NAMESPACE)
    sql(world, "CREATE DATABASE shop", "CREATE TABLE shop.orders (id INT PRIMARY KEY, what VARCHAR(99))", ROWS)


def sql(world: OperatorWorld, *statements: str) -> None:
    world.world.data_plane.sql().execute(SqlLogin("basic-tidb.default", 4000, "root"), statements)


def tables(world: OperatorWorld) -> Tables:
    pd = world.world.data_plane.pd_cluster(NAMESPACE, "basic")
    assert pd is not None
    return pd.tables


def on_volume(prefix: str = "demo", **spec: Any) -> Json:
    volume = {"name": "v", "persistentVolumeClaim": {"claimName": CLAIM}}
    local = {"volume": volume, "volumeMount": {"name": "v", "mountPath": "/mnt/backup"}, "prefix": prefix}
    found = {"br": {"cluster": "basic"}, "local": local} | spec
    return {name: value for name, value in found.items() if value is not None}


def create(world: OperatorWorld, resource: Resource, spec: Json, name: str = "demo") -> None:
    body = {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": {"name": name}, "spec": spec}
    world.admin.create(resource, body, NAMESPACE)


def phase(world: OperatorWorld, resource: Resource, name: str = "demo") -> str:
    return str((world.get(resource, name).get("status") or {}).get("phase", ""))


def ended(world: OperatorWorld, resource: Resource, name: str = "demo", within: float = 120.0) -> Json:
    world.run_until(lambda: phase(world, resource, name) in ("Complete", "Failed", "Invalid"), within)
    status: Json = world.get(resource, name)["status"]
    return status


def delete_with_volumes(world: OperatorWorld) -> None:
    world.admin.delete(TIDB_CLUSTERS, "basic", NAMESPACE)
    for claim in world.every(PERSISTENT_VOLUME_CLAIMS):
        if claim["metadata"]["name"] != CLAIM:
            world.admin.delete(PERSISTENT_VOLUME_CLAIMS, claim["metadata"]["name"], NAMESPACE)
    world.run_until(lambda: not world.exists(PERSISTENT_VOLUME_CLAIMS, "tikv-basic-tikv-0"))


def volume(world: OperatorWorld) -> Disk:
    """The volume of the backups."""
    return world.world.data_plane.disk(world.get(PERSISTENT_VOLUME_CLAIMS, CLAIM)["metadata"]["uid"])


def job_pod(world: OperatorWorld, job: str) -> str:
    """The pod of a Job that has not ended, or empty."""
    there = [each["metadata"]["name"] for each in world.every(PODS) if each["status"].get("phase") == "Running"]
    return next((each for each in there if each.startswith(f"{job}-")), "")


def percent(world: OperatorWorld, resource: Resource) -> float:
    progresses = (world.get(resource, "demo").get("status") or {}).get("progresses") or [{"progress": 0}]
    return float(progresses[-1]["progress"])


STRANGE = "100% größe?/no#1 a+b/"
IN_A_BUCKET = {"local": None, "s3": {"provider": "ceph", "endpoint": SANDBOX_S3, "bucket": "b", "prefix": STRANGE}}


@pytest.mark.slow
@pytest.mark.parametrize("storage", [{"prefix": STRANGE}, IN_A_BUCKET], ids=["volume", "bucket"])
def test_restores_a_backup_into_a_new_cluster(basic: OperatorWorld, storage: Json) -> None:
    before = tables(basic)
    create(basic, BACKUPS, on_volume(**storage))
    status = ended(basic, BACKUPS)
    assert ("Complete", [100]) == (status["phase"], [each["progress"] for each in status["progresses"]]), status
    basic.run_until(lambda: holds(basic.get(BACKUPS, "demo"), "Verified"))
    sql(basic, "INSERT INTO shop.orders VALUES (3, 'too late')", "DROP TABLE shop.orders")
    delete_with_volumes(basic)
    basic.apply(sample("basic"))
    basic.run_until_ready()
    assert tables(basic) is not before
    assert [] == tables(basic).schemas()
    create(basic, RESTORES, on_volume(**storage))
    restored = ended(basic, RESTORES)
    assert ("Complete", status["commitTs"]) == (restored["phase"], restored["commitTs"]), restored
    (orders,) = tables(basic).tables()
    assert [["1", "three apples"], ["2", "it's a pear"]] == tables(basic).rows(orders)


@pytest.mark.slow
@pytest.mark.parametrize("server", ["s3", "gcs", "azure"], indirect=True)
def test_object_storage_outside_of_the_sandbox_is_real(basic: OperatorWorld, place: Place) -> None:
    """A server holds the objects, over HTTP; the cluster is deleted with its volumes."""
    before, told = tables(basic).digest(), storage_of_spec(place)
    basic.admin.create(SECRETS, {"metadata": {"name": SECRET}, "stringData": told.keys}, NAMESPACE)
    spec = on_volume(local=None, env=told.env, **told.storage)
    create(basic, BACKUPS, spec | {"cleanPolicy": "Delete"})
    status = ended(basic, BACKUPS)
    assert "Complete" == status["phase"], status
    assert "backupmeta" in {each.key for page in place.storage().pages() for each in page}
    delete_with_volumes(basic)
    basic.apply(sample("basic"))
    basic.run_until_ready()
    assert [] == tables(basic).schemas()
    create(basic, RESTORES, spec)
    restored = ended(basic, RESTORES)
    assert ("Complete", status["commitTs"]) == (restored["phase"], restored["commitTs"]), restored
    assert before == tables(basic).digest()
    basic.admin.delete(BACKUPS, "demo", NAMESPACE)
    basic.run_until(lambda: not basic.exists(BACKUPS, "demo"))
    assert [] == list(place.storage().pages())


@pytest.mark.slow
@pytest.mark.parametrize("at", [0, 30, 60, 100])
def test_a_backup_continues_after_its_pod_was_killed(basic: OperatorWorld, at: float) -> None:
    create(basic, BACKUPS, on_volume(backoffRetryPolicy={"minRetryDuration": "10s"}))
    basic.run_until(lambda: bool(job_pod(basic, "backup-demo")) and percent(basic, BACKUPS) >= at)
    if at == 60:
        sql(basic, "INSERT INTO shop.orders VALUES (3, 'after the beginning')")
    basic.world.data_plane.crash(NAMESPACE, job_pod(basic, "backup-demo"))
    status = ended(basic, BACKUPS)
    assert "Complete" == status["phase"], status
    assert 1 == len(status.get("backoffRetryStatus") or ())
    sql(basic, "DROP DATABASE shop")
    create(basic, RESTORES, on_volume())
    assert "Complete" == ended(basic, RESTORES)["phase"]
    (orders,) = tables(basic).tables()
    assert 2 == len(tables(basic).rows(orders))


@pytest.mark.slow
def test_a_restore_continues_after_its_pod_was_killed(basic: OperatorWorld) -> None:
    sql(basic, "CREATE TABLE shop.more (id INT PRIMARY KEY)", "INSERT INTO shop.more VALUES (1)")
    digest = tables(basic).digest()
    create(basic, BACKUPS, on_volume())
    ended(basic, BACKUPS)
    sql(basic, "DROP DATABASE shop")
    create(basic, RESTORES, on_volume(backoffLimit=1))
    basic.run_until(lambda: percent(basic, RESTORES) >= 50)
    assert digest != tables(basic).digest()
    basic.world.data_plane.crash(NAMESPACE, job_pod(basic, "restore-demo"))
    status = ended(basic, RESTORES)
    assert "Complete" == status["phase"], status
    assert digest == tables(basic).digest()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("trouble", "why"),
    [(DiskTrouble.DENY, "AccessDenied"), (DiskTrouble.FULL, "no space left"), (DiskTrouble.FAIL, "InternalError")],
)
def test_a_backup_to_a_failing_storage_fails_and_names_it(basic: OperatorWorld, trouble: DiskTrouble, why: str) -> None:
    volume(basic).trouble = trouble
    create(basic, BACKUPS, on_volume())
    status = ended(basic, BACKUPS, within=600.0)
    assert "Failed" == status["phase"]
    assert why in status["conditions"][-1]["message"]
    assert "local:///mnt/backup/demo" in status["conditions"][-1]["message"]
    assert "backupmeta" not in "".join(volume(basic).objects)


@pytest.mark.slow
def test_a_restore_of_damaged_or_missing_files_fails(basic: OperatorWorld) -> None:
    create(basic, BACKUPS, on_volume())
    ended(basic, BACKUPS)
    sql(basic, "DROP DATABASE shop")
    (data,) = (path for path in volume(basic).objects if path.endswith(".sst"))
    whole = volume(basic).objects[data]
    volume(basic).objects[data] = whole[:-1] + b"?"
    create(basic, RESTORES, on_volume())
    assert (
        f"{data.removeprefix('demo/')} is not what backupmeta says"
        in ended(basic, RESTORES)["conditions"][-1]["message"]
    )
    del volume(basic).objects[data]
    create(basic, RESTORES, on_volume(), "again")
    assert "is not there" in ended(basic, RESTORES, "again")["conditions"][-1]["message"]


@pytest.mark.slow
def test_a_restore_does_not_overwrite_existing_tables(basic: OperatorWorld) -> None:
    create(basic, BACKUPS, on_volume())
    ended(basic, BACKUPS)
    digest = tables(basic).digest()
    create(basic, RESTORES, on_volume())
    assert "cluster is not fresh" in ended(basic, RESTORES)["conditions"][-1]["message"]
    assert digest == tables(basic).digest()


@pytest.mark.slow
def test_deleting_a_backup_deletes_only_its_files(basic: OperatorWorld) -> None:
    for name in ("demo", "other"):
        create(basic, BACKUPS, on_volume(name, cleanPolicy="Delete"), name)
        ended(basic, BACKUPS, name)
    basic.admin.delete(BACKUPS, "demo", NAMESPACE)
    basic.run_until(lambda: not basic.exists(BACKUPS, "demo"))
    assert {"other"} == {path.partition("/")[0] for path in volume(basic).objects}


@pytest.mark.slow
def test_a_single_table_is_saved_and_restored(basic: OperatorWorld) -> None:
    sql(basic, "CREATE TABLE shop.more (id INT PRIMARY KEY)", "INSERT INTO shop.more VALUES (1)")
    br = {"cluster": "basic", "db": "shop", "table": "more"}
    create(basic, BACKUPS, on_volume(backupType="table", br=br))
    assert "Complete" == ended(basic, BACKUPS)["phase"]
    sql(basic, "DROP TABLE shop.more")
    create(basic, RESTORES, on_volume(backupType="table", br=br))
    assert "Complete" == ended(basic, RESTORES)["phase"]
    assert ["more", "orders"] == [each.name for each in tables(basic).tables()]


@pytest.mark.slow
def test_the_gc_life_time_is_raised_while_br_runs_and_restored(basic: OperatorWorld) -> None:
    seen: set[str] = set()

    def look() -> bool:
        seen.update(row[0] for row in (tables(basic).execute(_LIFE_TIME) or ())[1:])
        return phase(basic, BACKUPS) == "Complete"

    basic.admin.create(SECRETS, {"metadata": {"name": "password"}, "data": {"password": ""}}, NAMESPACE)
    create(basic, BACKUPS, on_volume() | {"from": {"host": "basic-tidb", "secretName": "password"}})
    basic.run_until(look)
    assert {"10m0s", "72h"} == seen
    assert ["10m0s"] == [row[0] for row in (tables(basic).execute(_LIFE_TIME) or ())[1:]]


_LIFE_TIME = "SELECT variable_value FROM mysql.tidb WHERE variable_name = 'tikv_gc_life_time'"


@pytest.mark.slow
def test_a_job_may_use_sql_and_logs_the_answer(basic: OperatorWorld) -> None:
    container = {"name": "sql", "image": "mysql:8", "command": ["mysql", "-h", "basic-tidb", "-P", "4000", "-e"]}
    container["args"] = ["SELECT * FROM shop.orders; SELECT COUNT(*) FROM shop.orders"]
    template = {"spec": {"restartPolicy": "Never", "containers": [container]}}
    basic.admin.create(JOBS, {"metadata": {"name": "look"}, "spec": {"template": template}}, NAMESPACE)
    basic.run_until(lambda: basic.get(JOBS, "look").get("status", {}).get("succeeded") == 1)
    (pod,) = (each["metadata"] for each in basic.every(PODS) if each["metadata"]["name"].startswith("look-"))
    output = basic.world.kubelet.output(pod["uid"], "sql", False)
    assert output is not None
    told = [line.text for line in output.after(0)]
    assert ["id\twhat", "1\tthree apples", "2\tit's a pear", "COUNT(*)", "2"] == told
