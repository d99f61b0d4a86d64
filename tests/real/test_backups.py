"""Backups of a real cluster by the real BR to a volume, and restores from it."""

from collections.abc import Mapping

import pytest

from cli import manifests
from kube.objects import Json
from kube.resources import (
    BACKUPS,
    PERSISTENT_VOLUME_CLAIMS,
    RESTORES,
    ROLE_BINDINGS,
    ROLES,
    SERVICE_ACCOUNTS,
    Resource,
)
from tests.e2e.waiting import eventually
from tests.e2e.worlds import SAMPLES
from tests.real.clusters import NAME, NAMESPACE, Place, RealCluster
from tests.real.test_pd import OLD, PD
from tests.real.test_tidb import TIDB, TIKV
from tests.real.workload import connected

pytestmark = [
    pytest.mark.slow,
    pytest.mark.needs("pd-server", "tikv-server", "tidb-server", "br"),
    pytest.mark.timeout(1800),
]

_VOLUME: Json = {"name": "backups", "persistentVolumeClaim": {"claimName": "backups"}}
_MOUNT = {"name": "backups", "mountPath": "/mnt/backup"}
_NEEDED = (PERSISTENT_VOLUME_CLAIMS, SERVICE_ACCOUNTS, ROLES, ROLE_BINDINGS)


def local(prefix: str) -> Json:
    """A place on the volume that all pods of TiKV mount."""
    return {"prefix": prefix, "volume": _VOLUME, "volumeMount": _MOUNT}


def with_volume(place: Place) -> RealCluster:
    """A cluster whose TiKV can write to the volume of backups, and what the pods of Jobs need."""
    kinds = [resource.kind for resource in _NEEDED]
    sample = manifests.read(SAMPLES / "backup.yaml")
    manifests.apply(place.world.client(), [each for each in sample if each.kind in kinds])
    tikv = TIKV | {"additionalVolumes": [_VOLUME], "additionalVolumeMounts": [_MOUNT]}
    cluster = place.create(OLD, pd=PD, tikv=tikv, tidb=TIDB)
    cluster.waits(within=600.0)
    return cluster


def begin(cluster: RealCluster, resource: Resource, name: str, **spec: object) -> None:
    body: Json = {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": {"name": name}}
    cluster.world.client().create(resource, body | {"spec": {"br": {"cluster": NAME}, **spec}}, NAMESPACE)


def status(cluster: RealCluster, resource: Resource, name: str) -> Json:
    found: Json = cluster.world.client().get(resource, name, NAMESPACE).decode().get("status") or {}
    return found


def reaches(cluster: RealCluster, resource: Resource, name: str, phase: str = "Complete") -> Json:
    """The status once the object is in a phase. Raises AssertionError if it fails instead."""
    phases = (phase, "Failed")
    eventually(
        lambda: status(cluster, resource, name).get("phase") in phases, 600.0, lambda: status(cluster, resource, name)
    )
    assert phase == status(cluster, resource, name)["phase"], status(cluster, resource, name)
    return status(cluster, resource, name)


def execute(cluster: RealCluster, *statements: str) -> list[tuple[object, ...]]:
    """The rows of the last statement."""
    with connected(cluster) as client, client.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)
        rows = list(cursor.fetchall())
        client.commit()
        return rows


def orders(cluster: RealCluster) -> Mapping[object, object]:
    return dict(execute(cluster, "SELECT id, what FROM shop.orders"))  # type: ignore[arg-type]


def create_orders(cluster: RealCluster) -> None:
    table = "CREATE TABLE shop.orders (id INT PRIMARY KEY, what VARCHAR(100))"
    execute(cluster, "CREATE DATABASE shop", table, "INSERT INTO shop.orders VALUES (1, 'apples'), (2, 'a pear')")


def test_a_restore_returns_what_a_backup_has_saved(place: Place) -> None:
    cluster = with_volume(place)
    create_orders(cluster)
    begin(cluster, BACKUPS, "whole", local=local("whole"))
    assert int(reaches(cluster, BACKUPS, "whole")["commitTs"]) > 0
    execute(cluster, "DROP DATABASE shop")
    begin(cluster, RESTORES, "whole", local=local("whole"))
    reaches(cluster, RESTORES, "whole")
    assert {1: "apples", 2: "a pear"} == orders(cluster)


def test_a_restore_goes_to_a_moment_between_two_backups(place: Place) -> None:
    cluster = with_volume(place)
    begin(cluster, BACKUPS, "log", local=local("log"), backupMode="log")
    reaches(cluster, BACKUPS, "log", "Running")
    create_orders(cluster)
    begin(cluster, BACKUPS, "base", local=local("base"))
    reaches(cluster, BACKUPS, "base")
    execute(cluster, "INSERT INTO shop.orders VALUES (3, 'after the backup')")
    ((moment,),) = execute(cluster, "BEGIN", "SELECT @@tidb_current_ts")
    execute(cluster, "INSERT INTO shop.orders VALUES (4, 'after the moment')")
    eventually(lambda: int(status(cluster, BACKUPS, "log").get("logCheckpointTs") or 0) > int(str(moment)), 600.0)
    cluster.world.client().patch(BACKUPS, "log", NAMESPACE, {"spec": {"logStop": True}})
    reaches(cluster, BACKUPS, "log", "Stopped")
    execute(cluster, "DROP DATABASE shop")
    base = {"local": local("base")}
    pitr = {"restoreMode": "pitr", "pitrRestoredTs": str(moment), "pitrFullBackupStorageProvider": base}
    begin(cluster, RESTORES, "point", local=local("log"), **pitr)
    reaches(cluster, RESTORES, "point")
    assert {1: "apples", 2: "a pear", 3: "after the backup"} == orders(cluster)
