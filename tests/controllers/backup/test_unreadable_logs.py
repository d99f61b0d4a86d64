"""A log backup whose task cannot be read: reported after ten minutes, Failed after the grace period (LOG-1 … LOG-7)."""

import pytest

from kube.resources import BACKUPS
from tests.controllers.backup.backups_world import NAMESPACE
from tests.controllers.backup.log_backups_world import TSO, LogBackupsWorld

GRACE = "tidb.pingcap.com/log-backup-state-query-failure-grace-period"
FAILED = "LogBackupStateQueryFailed"


def _begun(logs: LogBackupsWorld, grace: str = "") -> None:
    logs.begin()
    if grace:
        logs.admin.patch(BACKUPS, "demo", NAMESPACE, {"metadata": {"annotations": {GRACE: grace}}})
    logs.run(70)


def _unreadable(logs: LogBackupsWorld) -> tuple[str, str, str]:
    return logs.condition("LogStateUnreadable")


def _run_until_read(logs: LogBackupsWorld) -> None:
    before = logs.pd.requests
    for _ in range(70):
        logs.run(1)
        if logs.pd.requests > before:
            return
    pytest.fail("the task is not read")


@pytest.mark.rule("LOG-2", "LOG-3")
def test_an_unreadable_state_is_reported_with_cause_and_deadline_before_the_backup_fails(logs: LogBackupsWorld) -> None:
    _begun(logs)
    logs.pd.answers = False
    logs.run(720)
    status, reason, message = _unreadable(logs)
    assert ("True", FAILED, "Running") == (status, reason, logs.phase())
    since = next(each for each in logs.status()["conditions"] if each["type"] == "LogStateUnreadable")
    assert f"since {since['lastTransitionTime']} the state of the log backup could not be read: POST" in message
    assert "becomes Failed at " in message
    assert (FAILED, message) in logs.events()


@pytest.mark.rule("LOG-2")
@pytest.mark.parametrize("restarts", [0, 5])
def test_a_log_backup_fails_after_the_grace_period_whether_the_operator_restarts_or_not(
    logs: LogBackupsWorld, restarts: int
) -> None:
    _begun(logs, grace="2h")
    logs.pd.answers = False
    for _ in range(restarts):
        logs.run(1320, step=30)
        logs.restart()
    logs.run(7080 - restarts * 1320, step=30)
    assert "Running" == logs.phase()
    logs.run(360, step=30)
    _, reason, message = logs.condition("Failed")
    assert ("Failed", FAILED) == (logs.phase(), reason)
    assert "for longer than 2h0m0s; whether TiKV still saves the log is unknown" in message
    version = logs.backup()["metadata"]["resourceVersion"]
    logs.run(3600, step=30)
    assert version == logs.backup()["metadata"]["resourceVersion"], "the failure is written once"


@pytest.mark.rule("LOG-2")
def test_the_first_failed_read_of_a_new_process_fails_no_log_backup(logs: LogBackupsWorld) -> None:
    """The operator may have been away for most of the grace period."""
    _begun(logs, grace="2h")
    logs.pd.answers = False
    logs.run(900, step=30)
    logs.world.advance(7200)
    logs.restart()
    logs.run(1)
    assert ("True", "Running") == (_unreadable(logs)[0], logs.phase())
    logs.run(70)
    assert "Failed" == logs.phase()


@pytest.mark.rule("LOG-4", "LOG-7")
@pytest.mark.parametrize("until", [900, 7400])
def test_an_answer_ends_the_series_and_a_failed_log_backup_runs_again(logs: LogBackupsWorld, until: int) -> None:
    """v1.7 keeps Failed."""
    _begun(logs, grace="2h")
    logs.pd.answers = False
    logs.run(until, step=30)
    logs.pd.answers = True
    logs.run(70)
    assert ("False", "Readable", "Running") == (*_unreadable(logs)[:2], logs.phase())
    assert ["backup-demo-log-start"] == logs.jobs()
    logs.pd.answers = False
    logs.run(7000, step=30)
    assert "Running" == logs.phase(), "a new series has begun"


@pytest.mark.rule("LOG-7")
def test_a_paused_log_backup_fails_and_recovers_without_another_pause(logs: LogBackupsWorld) -> None:
    _begun(logs, grace="20m")
    logs.change(logSubcommand="log-pause")
    logs.run(5)
    logs.carry_out("log-pause")
    logs.run(70)
    logs.pd.answers = False
    logs.run(1300, step=30)
    assert ("Paused", FAILED) == (logs.phase(), logs.said("log-pause", "Failed")[0])
    logs.pd.answers = True
    logs.run(90)
    assert ("Paused", "Complete") == (logs.phase(), logs.entry("log-pause")["phase"])
    assert ["backup-demo-log-pause", "backup-demo-log-start"] == sorted(logs.jobs())


@pytest.mark.rule("LOG-3")
@pytest.mark.parametrize("text", ["a week", "-1h", "0s"])
def test_a_grace_period_that_is_no_positive_duration_is_named_and_not_used(logs: LogBackupsWorld, text: str) -> None:
    _begun(logs, grace=text)
    logs.pd.answers = False
    logs.run(720)
    assert f"{text!r} is no positive duration such as 24h, so 168h apply" in _unreadable(logs)[2]


def test_a_changing_cause_costs_one_write_in_ten_minutes(logs: LogBackupsWorld) -> None:
    _begun(logs)
    logs.pd.answers = False
    logs.run(720)
    before = int(logs.backup()["metadata"]["resourceVersion"])
    for at in range(20):
        logs.pd.refusal = b'{"error": "cause %d"}' % at
        logs.run(60, step=5)
    assert "cause" in _unreadable(logs)[2]
    assert int(logs.backup()["metadata"]["resourceVersion"]) - before <= 3


@pytest.mark.rule("LOG-5")
def test_an_unreadable_pause_neither_confirms_nor_clears_a_difference(logs: LogBackupsWorld) -> None:
    _begun(logs)
    logs.task.pause()
    _run_until_read(logs)
    logs.pd.unreadable = "/tidb/br-stream/pause/"
    logs.run(1300, step=10)
    assert ("Running", "") == (logs.phase(), _unreadable(logs)[0])
    logs.pd.unreadable = None
    _run_until_read(logs)
    assert "Paused" == logs.phase(), "one more read confirms it"


@pytest.mark.rule("LOG-6")
def test_an_unreadable_checkpoint_is_no_unreadable_state(logs: LogBackupsWorld) -> None:
    _begun(logs)
    logs.pd.unreadable = "/tidb/br-stream/checkpoint/"
    logs.task.advance(TSO + 9)
    logs.run(1300, step=10)
    assert (str(TSO), "") == (logs.status().get("logCheckpointTs"), _unreadable(logs)[0])
