"""The metrics of Backups, read from the cache at the scrape."""

from datetime import timedelta

import pytest

from apis import tso
from ports.fencing import LeaseExpired
from tests.controllers.backup.backups_world import BackupsWorld
from tests.controllers.backup.log_backups_world import LogBackupsWorld

LAG = "tidb_operator_log_backup_checkpoint_lag_seconds"
CLEAN_FAILED = "tidb_operator_backup_clean_failed"


def value(world: BackupsWorld, metric: str, name: str = "demo") -> float | None:
    return world.operator.registry.get_sample_value(metric, {"namespace": "lab", "name": name})


def test_a_running_log_backup_reports_its_lag() -> None:
    world = LogBackupsWorld()
    try:
        assert value(world, LAG) is None
        world.begin()
        world.task.advance(tso.of_time(world.clock.wall() - timedelta(seconds=30)))
        world.run(61)
        before = value(world, LAG)
        assert before is not None
        assert 30 <= before < 100
        world.run(600)
        assert before + 600 == pytest.approx(value(world, LAG), abs=1)
        world.change(logSubcommand="log-pause")
        assert value(world, LAG) is None, "the user has asked for it"
    finally:
        world.stop()


def test_files_that_cannot_be_removed_are_reported(backups: BackupsWorld) -> None:
    backups.add(cleanPolicy="Delete")
    backups.say("Complete", backupPath="s3://lab/full")
    backups.end(kind="Complete", reason="CompletionsReached")
    assert value(backups, CLEAN_FAILED) is None
    backups.delete()
    assert 0 == value(backups, CLEAN_FAILED)
    backups.end("clean-demo")
    assert 1 == value(backups, CLEAN_FAILED)


@pytest.mark.slow
def test_only_the_leader_serves_the_metrics(backups: BackupsWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    backups.add(cleanPolicy="Delete")
    backups.write(phase="CleanFailed", backupPath="s3://lab/full")

    def lost(_self: object) -> None:
        raise LeaseExpired

    monkeypatch.setattr("ports.fencing.OpenFence.check", lost)
    backups.delete()
    assert value(backups, CLEAN_FAILED) is None
