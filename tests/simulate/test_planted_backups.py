"""The checks of Backups and Restores can fail: each test plants one defect (backup.md 3.7, 3.9, 7.4, 7.7)."""

import msgspec
import pytest

import backup_manager.backup
import backup_manager.restore
from apis.backups import BackoffRetryPolicy
from backup_manager.backup_meta import BackupMeta
from backup_manager.jobs import Job
from controllers.backup import cleaning, retry
from kube.objects import Json
from member.backups import pods
from simulate.engine import plan as plans
from simulate.engine.plan import Edit, Plan
from simulate.families import backup_faults, backups
from tests.simulate.planting import rules

pytestmark = [pytest.mark.slow, pytest.mark.planted]

_SAVED = Plan(
    name="saved",
    cluster="tiny",
    budget=30.0,
    edits=(backups.account(), backups.backup(1.0)),
    given=(backups.data(),),
    reference=False,
)
_RESTORED = msgspec.structs.replace(
    _SAVED,
    budget=60.0,
    edits=(*_SAVED.edits, backups.restore(35.0)),
    given=(*_SAVED.given, backups.statements(30.0, "DROP DATABASE shop")),
)


def test_reports_nothing_without_a_defect() -> None:
    assert set() == rules(_RESTORED, lambda: None)


@pytest.mark.rule("backup-7.4")
def test_reports_a_complete_backup_without_files(monkeypatch: pytest.MonkeyPatch) -> None:
    def plant() -> None:
        monkeypatch.setattr(backup_manager.backup, "run_br", lambda *_: None)
        monkeypatch.setattr(Job, "meta", lambda *_: BackupMeta(1, 2, 3))

    assert "backup-files" in rules(_SAVED, plant)


@pytest.mark.rule("backup-7.7")
def test_reports_a_complete_restore_without_data(monkeypatch: pytest.MonkeyPatch) -> None:
    plant = lambda: monkeypatch.setattr(backup_manager.restore, "run_br", lambda *_: None)  # noqa: E731
    assert "restore-content" in rules(_RESTORED, plant)


@pytest.mark.rule("backup-3.9")
def test_reports_deleted_files_that_a_restore_reads(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = msgspec.structs.replace(
        _RESTORED,
        edits=(
            backups.account(),
            backups.backup(1.0, cleanPolicy="Delete"),
            backups.restore(35.0),
            Edit(at=35.2, delete="backups.pingcap.com/demo"),
        ),
        faults=(plans.World(at=35.2, verb="pod_hang", arguments={"pod": "default/restore-demo-*"}, seconds=10.0),),
    )
    plant = lambda: monkeypatch.setattr(cleaning, "user_of", lambda *_: "")  # noqa: E731
    assert "backup-in-use" in rules(plan, plant)


@pytest.mark.rule("backup-3.7")
def test_reports_two_pods_that_work_for_one_backup(monkeypatch: pytest.MonkeyPatch) -> None:
    honest = pods.job

    def two(*arguments: object, **options: object) -> Json:
        made = honest(*arguments, **options)  # type: ignore[arg-type]
        return made | {"spec": made["spec"] | {"parallelism": 2, "completions": 2}}

    assert "backup-twice" in rules(_SAVED, lambda: monkeypatch.setattr(pods, "job", two))


@pytest.mark.rule("backup-3.7")
def test_reports_more_jobs_than_the_retry_policy_allows(monkeypatch: pytest.MonkeyPatch) -> None:
    loop = plans.World(at=0.5, verb="pod_crash_loop", arguments={"pod": "default/backup-demo-*"}, seconds=300.0)
    plan = msgspec.structs.replace(_SAVED, budget=200.0, faults=(loop,))
    honest = retry.decided

    def generous(status: Json, policy: BackoffRetryPolicy, *arguments: object) -> object:
        return honest(status, msgspec.structs.replace(policy, max_retry_times=99), *arguments)  # type: ignore[arg-type]

    assert "backup-jobs" in rules(plan, lambda: monkeypatch.setattr(retry, "decided", generous))


@pytest.mark.rule("backup-3.3")
def test_reports_a_final_outcome_that_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    honest = Job.condition

    def both(self: Job, type_: str, *arguments: str, **fields: object) -> None:
        honest(self, type_, *arguments, **fields)  # type: ignore[arg-type]
        if type_ == "Complete":
            honest(self, "Failed")

    assert "backup-outcome" in rules(_SAVED, lambda: monkeypatch.setattr(Job, "condition", both))


@pytest.mark.rule("10")
def test_reports_a_backup_that_never_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    killed = backup_faults.FAMILY.plan("killed@1")
    plan = msgspec.structs.replace(killed, budget=8.0, edits=_SAVED.edits, given=_SAVED.given)
    assert "backup-end" in rules(plan, lambda: monkeypatch.setattr(retry, "is_recorded", lambda _: True))
