"""A log backup, and the restore and compaction that read it, as changes of the family *addition*.

`replication`: a log is saved, everything is lost, and a Restore brings it back in two steps, beside a CompactBackup of
two shards. `unreadable`: PD's keys cannot be read for longer than the grace period of a log backup.
"""

from controllers.backup.unreadable import GRACE
from kube.resources import COMPACT_BACKUPS
from simulate.engine import plan as plans
from simulate.engine.plan import Edit, Fault, World
from simulate.engine.worlds import KEY, NAMESPACE
from simulate.families import backups
from simulate.families.family import Change, Make

LOG, SNAPSHOT, SHARDS, RESTORE = "log", "demo", "shards", "point"
"""The names of the log backup, the snapshot, the CompactBackup and the Restore."""
_SHARDS = 2

_BEGINS, _SAVED, _WRITTEN, _STOPPED, _LOST, _RESTORED = 1.0, 12.0, 25.0, 35.0, 60.0, 65.0
_CUT_OFF, _READABLE, _ENDED = 20.0, 380.0, 530.0
"""Seconds between which PD's keys cannot be read, and at which the user stops the log."""
_STEP = 0.15
"""Seconds by which the trouble of the next number begins later, from the creation of the Restore on: TiKV restarts in
two steps, the snapshot is restored in the next six, the log in three more.
"""
_LASTS, _SILENCE = 20.0, 30.0
"""Seconds for which storage fails, and PD or the API server gives no answer; BR waits for a minute."""
_MINUTE = 60.0
_HOUR = 3600.0


def _log(grace: str = "") -> Edit:
    edit = backups.backup(_BEGINS, LOG, backupMode="log")
    if grace:
        edit.body["metadata"] = {"name": LOG, "annotations": {GRACE: grace}}
    return edit


def _compaction() -> Edit:
    """Two shards, each of which is tried twice."""
    part = {"mode": "sharded", "shardCount": _SHARDS, "startTs": "1", "maxRetryTimes": 1}
    return Edit(at=_RESTORED, target=f"{COMPACT_BACKUPS}/{SHARDS}", body={"spec": backups.to(LOG) | part})


def _restore() -> Edit:
    steps = {"compactBackupName": SHARDS}
    snapshot = {"s3": backups.to(SNAPSHOT)["s3"]}
    return backups.restore(
        _RESTORED, RESTORE, LOG, restoreMode="pitr", pitrFullBackupStorageProvider=snapshot, replicationConfig=steps
    )


def _at(number: int) -> float:
    return _RESTORED + number * _STEP


def _pod(verb: str, pod: str, seconds: float = 0.0) -> Make:
    arguments = {"pod": f"{NAMESPACE}/{pod}-*"}
    return lambda number: World(at=_at(number), verb=verb, arguments=arguments, seconds=seconds, if_there=True)


def _bucket(trouble: str) -> Make:
    arguments = {"bucket": backups.BUCKET, "trouble": trouble}
    return lambda number: World(at=_at(number), verb="bucket_trouble", arguments=arguments, seconds=_LASTS)


def _pd_silent(number: int) -> Fault:
    return World(at=_at(number), verb="network_cut", arguments={"target": f"{KEY}-pd-*"}, seconds=_SILENCE)


_OF = f"*{RESTORE}*"
"""The writes to the Restore and its Jobs."""

REPLICATION = Change(
    "tiny",
    (
        backups.account(),
        _log(),
        backups.backup(_SAVED, SNAPSHOT),
        backups.told(_STOPPED, LOG, logStop=True),
        _compaction(),
        _restore(),
    ),
    {
        "none": (None, (0,)),
        "crash": (lambda write: plans.Crash(write=write, of=_OF), range(1, 9)),
        "unanswered": (lambda write: plans.Lost(write=write, of=_OF), (2, 3, 6, 7)),
        "forbidden": (lambda write: plans.Denied(write=write, of=_OF, seconds=_SILENCE), (1, 3, 6, 7)),
        "pd-silent": (_pd_silent, (1, 9)),
        "ahead": (lambda number: plans.Jump(at=_at(number), seconds=_HOUR), (5, 9)),
        "back": (lambda number: plans.Jump(at=_at(number), seconds=-_HOUR), (5, 9)),
        "storage-slow": (_bucket("slow"), (1,)),
        "storage-fails": (_bucket("fail"), (1, 5, 9)),
        "killed": (_pod("pod_crash", RESTORE), (3, 5, 9)),
        "shard-killed": (_pod("pod_crash", f"{SHARDS}-0"), (2, 3)),
        "shard-hangs": (_pod("pod_hang", f"{SHARDS}-0", _LASTS), (2, 3)),
        "shard-dies": (_pod("pod_crash_loop", f"{SHARDS}-0", _HOUR), (0,)),
    },
    given=(
        backups.data(),
        backups.statements(_WRITTEN, "INSERT INTO shop.orders VALUES (3, 'a plum')"),
        backups.statements(_LOST, "DROP DATABASE IF EXISTS shop"),
    ),
    may_fail=("storage-fails", "killed"),
)
"""The log has a row that the snapshot lacks, and ends before the loss."""

UNREADABLE = Change(
    "tiny",
    (backups.account(), _log("2m"), backups.told(_ENDED, LOG, logStop=True)),
    {
        "none": (None, (0,)),
        "crash": (lambda number: plans.Crash(at=_CUT_OFF + number * _MINUTE), (1, 2, 3)),
        "ahead": (lambda number: plans.Jump(at=_CUT_OFF + number * _MINUTE, seconds=_HOUR), (1,)),
    },
    given=(World(at=_CUT_OFF, verb="etcd_down", arguments={"cluster": KEY}, seconds=_READABLE - _CUT_OFF),),
)
