"""TiDB's GC life time is raised only while a tool reads (backup.md 7.3)."""

from typing import Any

import pytest

from backup_manager.backup import BackupOptions, run_backup
from backup_manager.gc_life_time import BEFORE
from backup_manager.outcomes import JobFailed, Stopped
from kube.objects import Json
from kube.resources import BACKUPS, RESTORES
from ports.stopping import Stop
from tests.backup_manager.worlds import NAME, NAMESPACE, World, printing, writing_meta

OPTIONS = BackupOptions(NAMESPACE, NAME, tikv_version="v8.5.0")
FROM: Json = {"host": "basic-tidb.db", "secretName": "s"}


def backup(world: World, **spec: Any) -> None:
    world.environ["BACKUP_MANAGER_PASSWORD"] = "password"
    world.backup(**({"from": FROM} | spec))
    writing = writing_meta(world)
    world.launcher.script = printing(then=writing)


def annotations(world: World) -> Json:
    found: Json = world.read(BACKUPS)["metadata"].get("annotations") or {}
    return found


def reason(world: World) -> str:
    with pytest.raises(JobFailed) as raised:
        run_backup(OPTIONS, world.outside())
    failed = world.status(BACKUPS)["conditions"][-1]
    assert ("Failed", raised.value.reason) == (failed["type"], failed["reason"])
    return raised.value.reason


@pytest.mark.rule("backup-7.3")
def test_raises_the_value_and_restores_it(world: World) -> None:
    backup(world)
    run_backup(OPTIONS, world.outside())
    assert ["72h", "10m0s"] == world.tidb.history
    assert BEFORE not in annotations(world)
    [login] = world.tidb.logins
    assert ("basic-tidb.db", 4000, "root", "password") == (login.host, login.port, login.user, login.password)
    assert "password" not in repr(login)


@pytest.mark.rule("backup-7.3")
def test_the_spec_sets_the_duration(world: World) -> None:
    backup(world, tikvGCLifeTime="100h")
    run_backup(OPTIONS, world.outside())
    assert ["100h", "10m0s"] == world.tidb.history


@pytest.mark.rule("backup-7.3")
def test_keeps_a_value_that_is_long_enough(world: World) -> None:
    backup(world)
    world.tidb.value = "100h"
    run_backup(OPTIONS, world.outside())
    assert [] == world.tidb.history


@pytest.mark.rule("backup-7.3")
def test_restores_the_value_after_a_failure_and_a_signal(world: World) -> None:
    backup(world)
    world.launcher.script = printing("[ERROR] x", code=1)
    assert "BackupDataToRemoteFailed" == reason(world)
    assert "10m0s" == world.tidb.value


@pytest.mark.rule("backup-7.3")
def test_restores_the_value_after_a_signal(world: World) -> None:
    backup(world)
    stop = Stop()
    world.launcher.script = printing(code=-15, then=stop.set)
    with pytest.raises(Stopped):
        run_backup(OPTIONS, world.outside(stop))
    assert "10m0s" == world.tidb.value


class Killed(BaseException):
    """Simulates kill -9: no code of the job runs after it."""


@pytest.mark.rule("backup-7.3")
def test_the_next_pod_restores_the_value_of_a_killed_one(world: World) -> None:
    backup(world)

    def killed() -> None:
        world.tidb.fail = {("set", 2)}
        raise Killed

    world.launcher.script = printing(then=killed)
    with pytest.raises((Killed, JobFailed)):
        run_backup(OPTIONS, world.outside())
    assert "72h" == world.tidb.value
    assert "10m0s" == annotations(world)[BEFORE]
    world.launcher.script = printing(then=writing_meta(world))
    run_backup(OPTIONS, world.outside())
    assert "10m0s" == world.tidb.value
    assert BEFORE not in annotations(world)


@pytest.mark.rule("backup-7.3")
def test_without_a_login_sends_no_query(world: World) -> None:
    backup(world, **{"from": None})
    run_backup(OPTIONS, world.outside())
    assert [] == world.tidb.logins


@pytest.mark.rule("backup-7.3")
def test_waits_half_an_hour_for_tidb(world: World) -> None:
    backup(world)
    world.tidb.fail = {("ping", number) for number in range(1, 300)}
    run_backup(OPTIONS, world.outside())
    assert 299 * 5 == world.clock.now()


@pytest.mark.rule("backup-7.3")
def test_waits_no_longer_than_half_an_hour(world: World) -> None:
    backup(world)
    world.tidb.fail = {("ping", number) for number in range(1, 1000)}
    assert "ConnectTidbFailed" == reason(world)
    assert 1800 == world.clock.now()
    assert [] == world.launcher.commands


@pytest.mark.parametrize(
    ("fail", "expected"),
    [
        (("variable", 1), "GetTikvGCLifeTimeFailed"),
        (("set", 1), "SetTikvGCLifeTimeFailed"),
        (("set", 2), "ResetTikvGCLifeTimeFailed"),
    ],
)
@pytest.mark.rule("backup-7.3")
def test_each_failure_has_its_reason(world: World, fail: tuple[str, int], expected: str) -> None:
    backup(world)
    world.tidb.fail = {fail}
    assert expected == reason(world)


@pytest.mark.rule("backup-7.3")
def test_an_invalid_duration_has_its_reason(world: World) -> None:
    backup(world, tikvGCLifeTime="long")
    assert "ParseConfiguredTikvGCLifeTimeFailed" == reason(world)


@pytest.mark.rule("backup-7.3")
def test_the_answer_of_tidb_must_be_a_duration(world: World) -> None:
    backup(world)
    world.tidb.value = "soon"
    assert "ParseOldTikvGCLifeTimeFailed" == reason(world)


@pytest.mark.rule("backup-7.3")
def test_reports_an_unrestored_value_with_the_way_out(world: World) -> None:
    backup(world)
    world.tidb.fail = {("set", 2)}
    reason(world)
    message = world.status(BACKUPS)["conditions"][-1]["message"]
    assert "set tikv_gc_life_time to 10m0s in mysql.tidb" in message
    assert "10m0s" == annotations(world)[BEFORE]


def test_the_restores_are_not_touched(world: World) -> None:
    backup(world)
    world.restore()
    run_backup(OPTIONS, world.outside())
    assert {"phase": "Scheduled"} == world.status(RESTORES)
