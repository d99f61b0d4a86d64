"""Backups of a cluster with TLS among its members and with SQL clients (backup.md 3.11, 7.3, 7.6)."""

from collections.abc import Iterator

import pytest

from kube.objects import Json, condition_of
from kube.resources import BACKUP_SCHEDULES, BACKUPS, RESTORES, SECRETS
from ports.clock import FakeClock
from simulate.engine.certificates import secrets
from tests.certificates import Authority
from tests.operator_world import NAMESPACE, OperatorWorld, sample
from tests.sandbox.test_backups import create, delete_with_volumes, ended, on_volume, prepare, sql, tables

pytestmark = pytest.mark.slow

CLIENTS = ("basic-cluster-client-secret", "basic-tidb-client-secret")
ACCESS: Json = {"from": {"host": "basic-tidb", "secretName": "password"}}


def cluster() -> Json:
    made = sample("basic")
    made["spec"]["tlsCluster"] = {"enabled": True}
    made["spec"]["tidb"]["tlsClient"] = {"enabled": True}
    return made


@pytest.fixture
def world(clock: FakeClock) -> Iterator[OperatorWorld]:
    """The sample `basic` with TLS and a table."""
    made = OperatorWorld(clock=clock)
    for secret in secrets(cluster(), NAMESPACE):
        made.admin.create(SECRETS, secret, NAMESPACE)
    made.admin.create(SECRETS, {"metadata": {"name": "password"}, "data": {"password": ""}}, NAMESPACE)
    prepare(made, cluster())
    yield made
    made.stop()


def test_a_schedule_saves_snapshots_and_log_for_any_moment(world: OperatorWorld) -> None:
    templates = {"backupTemplate": on_volume("full") | ACCESS, "logBackupTemplate": on_volume("log", backupMode="log")}
    create(world, BACKUP_SCHEDULES, {"schedule": "* * * * *", "maxBackups": 3, **templates}, "often")
    world.run_until(lambda: bool(world.get(BACKUP_SCHEDULES, "often").get("status", {}).get("lastBackup")), 90)
    full = world.get(BACKUP_SCHEDULES, "often")["status"]["lastBackup"]
    assert "Complete" == ended(world, BACKUPS, full)["phase"]
    sql(world, "INSERT INTO shop.orders VALUES (3, 'after the snapshot')")
    moment, digest = tables(world).now(), tables(world).digest()
    sql(world, "DROP DATABASE shop")

    def log() -> Json:
        return world.get(BACKUPS, "log-often")

    world.run_until(lambda: int(log()["status"].get("logCheckpointTs") or 0) >= moment, 200)
    sources = log()["spec"]["local"], world.get(BACKUPS, full)["spec"]["local"]
    delete_with_volumes(world)
    world.apply(cluster())
    world.run_until_ready()
    point = {"restoreMode": "pitr", "pitrRestoredTs": str(moment), "local": sources[0]}
    create(world, RESTORES, on_volume(**point, pitrFullBackupStorageProvider={"local": sources[1]}))
    restored = ended(world, RESTORES, within=300)
    assert ("Complete", digest) == (restored["phase"], tables(world).digest()), restored


@pytest.mark.rule("backup-3.11")
def test_names_secrets_until_they_are_complete_and_trusted(world: OperatorWorld) -> None:
    """With a wrong authority, BR reports only that PD does not answer; a restore does not wait for a cluster."""
    whole = {name: world.get(SECRETS, name)["data"] for name in CLIENTS}
    for name in CLIENTS:
        world.admin.delete(SECRETS, name, NAMESPACE)
    create(world, BACKUPS, on_volume() | ACCESS)

    def said() -> str:
        conditions = (world.get(BACKUPS, "demo").get("status") or {}).get("conditions") or ()
        return str(condition_of(conditions, "RetryFailed").get("message"))

    for name in CLIENTS:
        world.run_until(lambda: f"Secret {name} does not exist" in said(), 120)  # noqa: B023
        world.admin.create(SECRETS, {"metadata": {"name": name}, "data": whole[name]}, NAMESPACE)
    assert "Complete" == ended(world, BACKUPS, within=300)["phase"]

    of_another = Authority().pair().secret(CLIENTS[0])["data"]
    world.admin.patch(SECRETS, CLIENTS[0], NAMESPACE, {"data": of_another})
    create(world, RESTORES, on_volume())
    failed = ended(world, RESTORES, within=300)
    assert "Failed" == failed["phase"]
    assert f"its certificates are in Secret {CLIENTS[0]}" in failed["conditions"][-1]["message"]
