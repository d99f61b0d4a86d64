"""`backup` and `restore`: the objects that they create, and what the operator makes of them."""

from collections.abc import Iterator
from typing import Any

import pytest

from cli.failures import Failure
from kube.client import Client
from kube.objects import Json
from kube.resources import BACKUP_SCHEDULES, BACKUPS, RESTORES, Resource
from ports.clock import FakeClock
from sandbox.waiting_clock import WaitingClock
from tests.cli.tidb.typing_commands import Terminal
from tests.operator_world import NAMESPACE, OperatorWorld, sample
from tests.sandbox.test_backups import create, ended, on_volume, phase, prepare, sql, tables

_S3 = {"provider": "aws", "bucket": "b", "secretName": "s3"}
_COMPLETE = {"phase": "Complete", "conditions": [{"type": "Complete", "status": "True"}]}


@pytest.fixture(scope="module")
def world() -> OperatorWorld:
    """An API server with a cluster `basic`; the operator does nothing, since no time passes."""
    world = OperatorWorld()
    world.apply(sample("basic"))
    return world


@pytest.fixture
def admin(world: OperatorWorld) -> Iterator[Client]:
    """The API server without Backups and schedules of other tests."""
    yield world.admin
    for resource in (BACKUPS, BACKUP_SCHEDULES, RESTORES):
        for each in world.admin.list_page(resource, NAMESPACE).items:
            world.admin.delete(resource, each.metadata.name, NAMESPACE)


def _put(admin: Client, resource: Resource, name: str, spec: Json, status: Json | None = None) -> None:
    meta = {"name": name, "namespace": NAMESPACE}
    tree = {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": meta, "spec": spec}
    admin.create(resource, tree | {"status": status or {}}, NAMESPACE)


def _snapshot(prefix: str = "p", **spec: Any) -> Json:
    return {"br": {"cluster": "basic"}, "s3": _S3 | {"prefix": prefix}} | spec


def _schedule(**template: Any) -> Json:
    return {"schedule": "0 0 * * *", "maxBackups": 3, "backupTemplate": _snapshot(**template)}


def _ts(status: Json, commit: int, **more: int) -> Json:
    return status | {"commitTs": str(commit << 18)} | {name: str(ts << 18) for name, ts in more.items()}


def test_a_backup_is_made_like_the_only_schedule_and_is_not_one_of_its(admin: Client, terminal: Terminal) -> None:
    _put(admin, BACKUP_SCHEDULES, "nightly", _schedule(serviceAccount="s"))
    made = terminal.document("backup", "basic", "--name=mine")
    assert {"name": "mine", "namespace": NAMESPACE} == made["metadata"]
    stored = admin.get(BACKUPS, "mine", NAMESPACE).decode()
    assert "ownerReferences" not in stored["metadata"]
    assert ("s", {"cluster": "basic"}) == (stored["spec"]["serviceAccount"], stored["spec"]["br"])
    prefix = stored["spec"]["s3"]["prefix"]
    assert prefix.startswith("p/basic-pd.default-2379-")


@pytest.mark.parametrize("prefix", ["full", "full/", "full-2026-01-02t03-04-05"])
def test_a_backup_like_another_one_has_a_place_beside_it(admin: Client, terminal: Terminal, prefix: str) -> None:
    _put(admin, BACKUPS, "full", _snapshot(prefix, cleanPolicy="Delete"), _COMPLETE)
    spec = terminal.document("backup", "basic", "--like=full", "--dry-run")["spec"]
    # a deletion of the other one removes all that is below its prefix
    assert spec["s3"]["prefix"].startswith("full-")
    assert spec["s3"]["prefix"] != prefix
    assert ({"cluster": "basic"}, "Delete") == (spec["br"], spec["cleanPolicy"])
    assert {"full"} == {each.metadata.name for each in admin.list_page(BACKUPS, NAMESPACE).items}


@pytest.mark.parametrize(
    ("spec", "arguments", "why"),
    [
        (None, ["backup", "basic"], "neither a BackupSchedule nor a Backup whose storage could be used"),
        (_snapshot(), ["backup", "basic"], "name with --like what the backup is like: there is full"),
        (_snapshot(), ["backup", "basic", "--like=other"], "there is no Backup other; there is full"),
        (_snapshot(""), ["backup", "basic", "--like=full"], "at the root of its storage"),
        (_snapshot(backupMode="log"), ["backup", "basic", "--like=full"], "is no full snapshot by BR"),
        (_snapshot(br={"cluster": "other"}), ["backup", "basic", "--like=full"], "does not back tidbcluster/basic up"),
        (_snapshot(), ["backup", "basic", "--like=full", f"--name={'x' * 60}"], "is too long for the Job"),
        (_snapshot(), ["restore", "basic"], "name what to restore with --from or --until"),
        (_snapshot(), ["restore", "basic", "--from=full"], "is no Complete full snapshot by BR"),
        (_snapshot(backupMode="log"), ["restore", "basic", "--from=full"], "is a log; name the moment"),
        (_snapshot(), ["restore", "basic", "--until=soon"], "--until 'soon' is no timestamp"),
        (_snapshot(), ["restore", "basic", "--until=1"], "no log of tidbcluster/basic reaches --until: there is none"),
    ],
)
def test_what_cannot_be_done_is_refused_before_anything_is_created(
    admin: Client, terminal: Terminal, spec: Json | None, arguments: list[str], why: str
) -> None:
    if spec:
        _put(admin, BACKUPS, "full", spec)
    with pytest.raises(Failure, match=why):
        terminal.type(*arguments)
    assert len(admin.list_page(BACKUPS, NAMESPACE).items) == bool(spec)
    assert not admin.list_page(RESTORES, NAMESPACE).items


def test_a_snapshot_is_restored_with_the_access_of_its_backup(admin: Client, terminal: Terminal) -> None:
    own = {"cluster": "other", "sendCredToTikv": False, "options": ["--ratelimit=1"]}
    given: Json = {"br": own, "serviceAccount": "s", "toolImage": "br:v8", "cleanPolicy": "Delete"}
    _put(admin, BACKUPS, "full", _snapshot(**given), _ts(_COMPLETE, 1000))
    made = terminal.document("restore", "basic", "--from=full", "--name=r")
    assert made["spec"]["s3"] == admin.get(RESTORES, "r", NAMESPACE).decode()["spec"]["s3"]
    assert {
        "backupType": "full",
        "br": {"cluster": "basic", "sendCredToTikv": False},
        "s3": _S3 | {"prefix": "p"},
        "serviceAccount": "s",
        "toolImage": "br:v8",
    } == {name: value for name, value in made["spec"].items() if value}


def _log_and_snapshots(admin: Client) -> None:
    """A log from 1 s to 9 s after 1970 with a snapshot before it and two within."""
    for name, at in (("early", 500), ("one", 2000), ("two", 5000)):
        _put(admin, BACKUPS, name, _snapshot(name), _ts(_COMPLETE, at))
    _put(admin, BACKUPS, "log", _snapshot("log", backupMode="log"), _ts({}, 1000, logCheckpointTs=9000))


def test_lists_what_can_be_restored(admin: Client, terminal: Terminal) -> None:
    assert "There is no backup that could be restored.\n" == terminal.type("restore", "basic", "--list")
    _log_and_snapshots(admin)
    _put(admin, BACKUPS, "running", _snapshot("running"))
    assert [
        "--from early: basic at 1970-01-01T00:00:00Z",
        "--from one: basic at 1970-01-01T00:00:02Z",
        "--from two: basic at 1970-01-01T00:00:05Z",
        "--from log --until TIME: basic at any time from 1970-01-01T00:00:02Z to 1970-01-01T00:00:09Z",
    ] == terminal.type("restore", "basic", "--list", width=120).splitlines()


def test_names_what_cannot_be_read(admin: Client, terminal: Terminal) -> None:
    for resource, name, spec in (
        (BACKUPS, "odd", _snapshot(affinity={"nodeAffinity": "x"})),
        (BACKUP_SCHEDULES, "nightly", _schedule(affinity={"nodeAffinity": "x"})),
    ):
        _put(admin, resource, name, spec)
        command = ["restore", "basic", "--from"] if resource == BACKUPS else ["backup", "basic", "--like"]
        with pytest.raises(Failure, match=f"{resource.kind} {name} cannot be read: .*affinity"):
            terminal.type(*command, name)
    shown = terminal.type("restore", "basic", "--list", width=200)
    assert "Backup odd cannot be read: " in shown
    assert "BackupSchedule nightly cannot be read: " in shown


@pytest.mark.parametrize(
    ("until", "source", "base"),
    [("4", [], "one"), ("6", [], "two"), ("6", ["--from=log"], "two"), ("6", ["--from=one"], "one")],
)
def test_a_moment_is_restored_from_the_last_snapshot_before_it_and_the_log(
    admin: Client, terminal: Terminal, until: str, source: list[str], base: str
) -> None:
    _log_and_snapshots(admin)
    time = f"1970-01-01T00:00:0{until}Z"
    spec = terminal.document("restore", "basic", f"--until={time}", *source)["spec"]
    full = spec["pitrFullBackupStorageProvider"]["s3"]["prefix"]
    assert ("pitr", time, "log", base) == (spec["restoreMode"], spec["pitrRestoredTs"], spec["s3"]["prefix"], full)


@pytest.mark.parametrize("until", ["1970-01-01T00:00:01Z", "1970-01-01T00:00:10Z"])
def test_a_moment_out_of_reach_is_refused_with_the_reach(admin: Client, terminal: Terminal, until: str) -> None:
    _log_and_snapshots(admin)
    reach = "log reaches from 1970-01-01T00:00:02Z to 1970-01-01T00:00:09Z"
    with pytest.raises(Failure, match=f"no log of tidbcluster/basic reaches --until: {reach}"):
        terminal.type("restore", "basic", f"--until={until}")


@pytest.mark.slow
def test_a_mistake_is_undone_with_backup_and_restore(clock: FakeClock, capsys: pytest.CaptureFixture[str]) -> None:
    world = OperatorWorld(clock=clock)
    try:
        prepare(world)
        terminal = Terminal(world.admin, capsys, WaitingClock(world.clock, world.run))
        create(world, BACKUPS, on_volume("log", backupMode="log"), name="log")
        world.run_until(lambda: phase(world, BACKUPS, "log") == "Running")
        create(world, BACKUPS, on_volume("first"), name="first")
        ended(world, BACKUPS, "first")
        shown = terminal.type("backup", "basic", "--like=first", "--name=second", "--wait").splitlines()
        assert "backup/second created" in shown
        assert any("Backup    1/1 ready   Complete" in line for line in shown)
        sql(world, "INSERT INTO shop.orders VALUES (3, 'before the mistake')")
        moment, digest = tables(world).now(), tables(world).digest()
        sql(world, "DROP DATABASE shop")
        world.run(120)
        assert "Restore   1/1 ready   Complete" in terminal.type("restore", "basic", f"--until={moment}", "--wait")
        assert digest == tables(world).digest()
    finally:
        world.stop()


@pytest.mark.parametrize("end", ["Failed", "Invalid"])
def test_a_backup_that_fails_ends_the_wait(
    world: OperatorWorld, admin: Client, capsys: pytest.CaptureFixture[str], end: str
) -> None:
    def fail(seconds: float) -> None:
        world.clock.step(seconds)
        said = {"type": end, "status": "True", "message": "the storage is full"}
        admin.patch(BACKUPS, "second", NAMESPACE, {"status": {"phase": end, "conditions": [said]}})

    _put(admin, BACKUPS, "first", _snapshot())
    terminal = Terminal(admin, capsys, WaitingClock(world.clock, fail))
    with pytest.raises(Failure, match=f"Backup second: {end}: the storage is full"):
        terminal.type("backup", "basic", "--like=first", "--name=second", "--wait")
