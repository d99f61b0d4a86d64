"""The object is written whole, with the version that was read (backup.md 1, 8)."""

from collections.abc import Callable

import pytest

from backup_manager.records import Record, RecordGone
from kube.client import Client
from kube.errors import Conflict, Forbidden, Status
from kube.objects import Json, Object
from kube.resources import BACKUPS, Resource
from tests.backup_manager.worlds import NAME, NAMESPACE, World


class Failing(Client):
    """Raises the given errors at successive PUTs."""

    def __init__(self, client: Client, *errors: Exception) -> None:
        self._inner = client
        self.errors = list(errors)
        self.puts = 0

    def get(self, resource: Resource, name: str, namespace: str = "") -> Object:
        return self._inner.get(resource, name, namespace)

    def replace(self, resource: Resource, name: str, namespace: str, body: Json, *, subresource: str = "") -> Object:
        self.puts += 1
        if self.errors:
            raise self.errors.pop(0)
        return self._inner.replace(resource, name, namespace, body, subresource=subresource)


def record(world: World, *errors: Exception) -> tuple[Record, Failing]:
    client = Failing(world.client, *errors)
    return Record(client, world.clock, BACKUPS, NAMESPACE, NAME), client


def phase(name: str) -> Callable[[Json], Json]:
    return lambda status: status | {"phase": name}


def conflict() -> Conflict:
    return Conflict(Status(code=409, reason="Conflict"))


def test_a_conflict_is_decided_again_on_the_current_object(world: World) -> None:
    world.backup()
    found, client = record(world, conflict(), conflict())
    assert {"phase": "Running"} == found.change_status(phase("Running"))
    assert 3 == client.puts


def test_keeps_a_concurrent_write(world: World) -> None:
    world.backup()
    found, _ = record(world)
    seen: list[str] = []

    def change(status: Json) -> Json:
        if not seen:
            world.client.patch(BACKUPS, NAME, NAMESPACE, {"status": {"commitTs": "5"}})
        seen.append(status.get("commitTs", ""))
        return status | {"phase": "Running"}

    assert {"phase": "Running", "commitTs": "5"} == found.change_status(change)
    assert ["", "5"] == seen


def test_sends_no_request_without_a_difference(world: World) -> None:
    world.backup()
    found, client = record(world)
    found.change_status(phase("Scheduled"))
    assert 0 == client.puts


def test_retries_temporary_errors_for_five_minutes(world: World) -> None:
    world.backup()
    found, _ = record(world, *(conflict() for _ in range(10_000)))
    with pytest.raises(Conflict):
        found.change_status(phase("Running"))
    assert 280 <= world.clock.now() <= 300


def test_reports_a_refusal_by_rbac_immediately(world: World) -> None:
    world.backup()
    found, client = record(world, Forbidden(Status(code=403, message="cannot update backups")))
    with pytest.raises(Forbidden, match="cannot update backups"):
        found.change_status(phase("Running"))
    assert 1 == client.puts


def test_progress_is_tried_once(world: World) -> None:
    world.backup()
    found, client = record(world, conflict())
    found.try_status(phase("Running"))
    assert 1 == client.puts
    assert "Scheduled" == world.status(BACKUPS)["phase"]


def test_does_not_write_a_recreated_object(world: World) -> None:
    world.backup()
    found, _ = record(world)
    found.read()
    world.client.delete(BACKUPS, NAME, NAMESPACE)
    with pytest.raises(RecordGone, match="it does not exist"):
        found.change_status(phase("Running"))
    world.backup()
    with pytest.raises(RecordGone, match="it was deleted, and another one has its name"):
        found.change_status(phase("Running"))


def test_an_annotation_is_set_and_removed(world: World) -> None:
    world.backup()
    found, _ = record(world)
    found.annotate("a", "1")
    found.annotate("b", "2")
    found.annotate("a", None)
    assert {"b": "2"} == world.read(BACKUPS)["metadata"]["annotations"]


def test_a_message_is_written_in_printable_characters(world: World) -> None:
    world.backup()
    said = {"type": "Failed", "status": "True", "reason": "BackupFailed", "message": "two\nlines \x1b[2J\u202e\x9b31m"}
    found, _ = record(world)
    status = found.change_status(lambda status: status | {"conditions": [said]})
    assert "two\nlines \ufffd[2J\ufffd\ufffd31m" == status["conditions"][0]["message"]
