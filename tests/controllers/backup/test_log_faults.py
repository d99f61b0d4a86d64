"""The whole life of a log backup, with one write of the operator going wrong, or caches that are behind (3.8, 3.9)."""

import pytest

from kube.resources import BACKUPS, JOBS
from tests.controllers.backup.backups_world import NAMESPACE
from tests.controllers.backup.log_backups_world import TSO, LogBackupsWorld
from tests.controllers.backup.write_faults import Kind

pytestmark = pytest.mark.slow

MADE = ("log-start", "log-pause", "log-resume", "log-truncate", "stop-demo", "clean-demo")
"""The Jobs of a life."""
WRITES = 25
"""The number of writes in a life, among them the conditions about pods that do not start, as there are no nodes."""
STEPS = (
    ("log-pause", {"logSubcommand": "log-pause"}, "Paused"),
    ("log-resume", {"logSubcommand": "log-start"}, "Running"),
    ("log-truncate", {"logTruncateUntil": str(TSO + 5)}, "Running"),
)
SETTLED = 130.0
"""Seconds within which every retry has happened."""


def live(world: LogBackupsWorld) -> None:
    """The whole life of a log backup; one pod runs each sub-command."""
    world.run(SETTLED, step=10.0)
    world.begin()
    world.run(SETTLED, step=10.0)
    for command, spec, phase in STEPS:
        world.change(**spec)
        world.run(SETTLED, step=10.0)
        fields = {"logSuccessTruncateUntil": str(TSO + 5)} if command == "log-truncate" else {}
        world.carry_out(command, **fields)
        world.run(SETTLED, step=10.0)
        assert phase == world.phase()
    world.delete()
    world.run(SETTLED, step=10.0)
    assert "clean-demo" not in world.jobs()
    world.task.stop()
    world.end("stop-demo", "Complete", "CompletionsReached")
    world.run(SETTLED, step=10.0)
    world.say("Clean")
    world.run(SETTLED, step=10.0)
    assert not world.exists()


def made(world: LogBackupsWorld) -> list[str]:
    """The Jobs whose creation was requested."""
    return [each for each in world.faults.made if each.startswith("POST") and each.endswith("/jobs")]


def test_a_log_backup_without_faults_completes_its_life() -> None:
    world = LogBackupsWorld(cleanPolicy="Delete")
    try:
        live(world)
        assert (WRITES, len(MADE)) == (len(world.faults.made), len(made(world)))
    finally:
        world.stop()


@pytest.mark.parametrize("kind", ["crash after", "lost"])
@pytest.mark.parametrize("number", range(1, WRITES + 1))
def test_one_failed_write_does_not_change_the_result(number: int, kind: Kind) -> None:
    world = LogBackupsWorld(cleanPolicy="Delete", faults=(number, kind))
    try:
        live(world)
        # an attempt that was not sent, or whose answer was lost, may be made once more
        assert len(MADE) <= len(made(world)) <= len(MADE) + 1
    finally:
        world.stop()


@pytest.mark.parametrize("resource", [BACKUPS, JOBS])
def test_caches_that_are_behind_make_nothing_twice(resource: object) -> None:
    world = LogBackupsWorld(cleanPolicy="Delete")
    try:
        world.begin()
        first = world.job("backup-demo-log-start")["metadata"]["uid"]
        for command, spec, phase in STEPS:
            cache = next(each for of, each in world.operator.caches.items() if of == resource)
            world.admin.patch(BACKUPS, "demo", NAMESPACE, {"spec": spec})
            world.operator.look()
            cache.blind = True
            world.run(20)
            cache.blind = False
            world.operator.look_again()
            world.run(20)
            fields = {"logSuccessTruncateUntil": str(TSO + 5)} if command == "log-truncate" else {}
            world.carry_out(command, **fields)
            world.run(20)
            assert phase == world.phase()
        assert len(STEPS) + 1 == len(made(world))
        assert first == world.job("backup-demo-log-start")["metadata"]["uid"]
    finally:
        world.stop()
