"""The family *addition*, and the judge's notice of what its users would not get."""

from collections.abc import Sequence

import pytest

import backup_manager.compact
import controllers.restore.replication
import discovery.masters
from apis.compact_backups import CompactSpec
from apis.dmcluster import DMCluster
from apis.restores import Restore
from controllers.job_owners.job_owner import JobOwner
from controllers.runtime import Runtime
from dataplane.dm import LiveMaster
from discovery.masters import Asker, DMDiscovery
from member.outcome import Outcome, Waiting
from simulate.engine.plan import InvalidPlan, Newer
from simulate.families.additions import FAMILY
from simulate.families.generate import generated
from tests.simulate.planting import rules

_PLANS = list(FAMILY.plans())


def test_each_change_meets_a_silence_a_loss_and_a_crash() -> None:
    rests = {plan.name.partition("/")[2].partition("@")[0] for plan in _PLANS}
    for change in ("new-keys", "other-class", "overlay", "newer"):
        assert {
            f"{change}.{trouble}" for trouble in ("pd-silent", "tikv-silent", "lost", "crash", "unanswered")
        } <= rests
    assert "new-keys.ticdc-silent" in rests
    for plan in _PLANS[::20]:
        assert plan == generated(plan.name)


def test_a_restore_in_two_steps_meets_failing_pods_a_refusing_api_server_and_jumping_clocks() -> None:
    troubles = {plan.name.partition(".")[2].partition("@")[0] for plan in _PLANS if "/replication." in plan.name}
    assert {"killed", "shard-dies", "crash", "unanswered", "forbidden", "ahead", "back", "storage-fails"} <= troubles


def test_new_changes_follow_the_older_ones() -> None:
    """The numbers of the plans in a sweep stay."""
    of_v16_clusters = [plan.name.partition("/")[2].partition(".")[0] for plan in _PLANS[:81]]
    assert {"new-keys", "other-class", "overlay", "newer"} == set(of_v16_clusters)


def test_a_newer_operator_comes_before_the_user() -> None:
    plan = generated("addition/newer.none@0")
    (installed,) = plan.given
    assert isinstance(installed, Newer)
    assert (installed.at or 0.0) < (plan.edits[0].at or 0.0)


@pytest.mark.parametrize(
    "rest", ["", "newer", "newer.pd-silent", "newer.rain@0", "older.pd-silent@0", "newer.crash@soon"]
)
def test_refuses_a_name_that_is_no_plan(rest: str) -> None:
    with pytest.raises(InvalidPlan, match=r"is no `CHANGE\.TROUBLE@NUMBER`"):
        FAMILY.plan(rest)


async def _no_wait(_: JobOwner[Restore]) -> Waiting | None:
    return None


def _in_one_process() -> object:
    """A restore that continues only in the process that began it."""
    honest = controllers.restore.replication._go_on
    first: list[Runtime] = []

    async def go_on(ctx: JobOwner[Restore], compaction: Waiting | None) -> Outcome | None:
        first.append(ctx.runtime)
        return await honest(ctx, compaction) if ctx.runtime is first[0] else None

    return go_on


def _first_shard() -> object:
    """Every pod compacts the first shard."""
    honest = backup_manager.compact._of_shard

    def of_shard(spec: CompactSpec, _: str) -> list[str]:
        return honest(spec, "0")

    return of_shard


def _without_records() -> object:
    """A Discovery that does not look for failover."""
    honest = discovery.masters.DMDiscovery._join

    def join(self: DMDiscovery, dc: DMCluster, pod: Asker, found: Sequence[LiveMaster]) -> str:
        dc.status.master.failure_members.clear()
        return honest(self, dc, pod, found)

    return join


@pytest.mark.slow
@pytest.mark.planted
@pytest.mark.parametrize(
    ("name", "part", "defect", "rule"),
    [
        ("new-keys.ticdc-silent@0", "member.tici.changefeed._is_recorded", lambda *_: True, "fulfilled"),
        ("other-class.none@0", "member.volumes.changes._moves", lambda *_: iter(()), "fulfilled"),
        ("overlay.none@0", "member.objects.stateful_set.overlay_of", lambda _: None, "fulfilled"),
        ("newer.none@0", "member.lifecycle.wanted_state.own_change", lambda *_, **__: None, "I42"),
        ("newer.none@0", "controllers.tidbcluster.conditions.pending_changes", lambda _: {}, "fulfilled"),
        ("replication.crash@4", "controllers.restore.replication._go_on", _in_one_process(), "backup-end"),
        ("replication.shard-hangs@3", "controllers.restore.replication._await_compaction", _no_wait, "restore-order"),
        ("replication.none@0", "backup_manager.restore.run_br", lambda *_: None, "restore-content"),
        ("replication.none@0", "backup_manager.compact._of_shard", _first_shard(), "compact-shards"),
        ("unreadable.none@0", "controllers.backup.unreadable.grace_period", lambda _: (6e5, ""), "log-unreadable"),
        ("lost-master.crash@1", "discovery.masters.DMDiscovery._join", _without_records(), "O10"),
    ],
)
def test_reports_a_planted_defect(
    monkeypatch: pytest.MonkeyPatch, name: str, part: str, defect: object, rule: str
) -> None:
    found = rules(generated(f"addition/{name}"), lambda: monkeypatch.setattr(part, defect))
    assert rule in found, found
