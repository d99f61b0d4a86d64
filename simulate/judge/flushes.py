"""Checks of flushes: a TiKV that an operator restarts saves its log backup first, or an event says why not (7.4.1).

What the servers have done counts, whatever the operator reports. A pod that is not Ready holds nothing that it could
save in time, and a user may skip flushes, or force all restarts at once.
"""

from collections.abc import Iterator
from urllib.parse import urlsplit

from kube.resources import EVENTS
from sandbox.dataplane.log_backup import LogTask, task_names
from sandbox.dataplane.pd.cluster import PdCluster
from simulate.engine.calls import Call
from simulate.engine.state import State, is_ready
from simulate.invariants.facts import annotations
from simulate.invariants.operator_write import OperatorWrite

_FLUSH = "/logbackup.LogBackup/FlushNow"
_SKIPPED = ("tidb.pingcap.com/tikv-restart-without-flush-log-backup", "tidb.pingcap.com/force-upgrade")
_FRESH = 660.0
"""Seconds after which a flush no longer counts for a restart."""
_REASON = "LogBackupNotFlushed"


class FlushJudge:
    """Checks one cluster. `tells`: no event of the operator can get lost, as with a process that ends."""

    def __init__(self, state: State, *, tells: bool) -> None:
        self._state = state
        self._tells = tells
        self._requested: dict[str, float] = {}
        """When each pod was last asked for a flush."""
        self._untold: dict[str, str] = {}
        """The restarts after a flush that did not succeed, by pod, until the end."""

    def before(self, write: OperatorWrite) -> Iterator[str]:
        """What is wrong with a write that restarts TiKV pods."""
        self._note(write.call)
        component, ordinals = write.restarts
        pd = write.before.pd
        if component != "tikv" or pd is None or not _runs(pd, write.before.now):
            return
        if any(each in annotations(write.seen) for each in _SKIPPED):
            return
        pods = write.before.pods("tikv")
        for ordinal in (each for each in ordinals if each in pods and is_ready(pods[each])):
            pod = write.before.pod_name("tikv", ordinal)
            if self._has_flushed(pd, pod):
                continue
            if not self._is_fresh(self._requested.get(pod)):
                yield f"{write.call} restarts {pod}, which was not asked to flush its log backup"
            self._untold[pod] = f"{write.call} restarts {pod} without a flush, and no event says why"

    def end(self) -> Iterator[str]:
        """The restarts without a flush that no event explains."""
        told = [str(event["message"]) for event in self._state.all(EVENTS) if event["reason"] == _REASON]
        for pod, what in self._untold.items() if self._tells else ():
            if not any(f"pod {pod} restarts" in each for each in told):
                yield what

    def _note(self, call: Call) -> None:
        parts = urlsplit(call.request.url)
        if parts.path == _FLUSH:
            self._requested[(parts.hostname or "").partition(".")[0]] = self._state.now

    def _has_flushed(self, pd: PdCluster, pod: str) -> bool:
        return any(self._is_fresh(pd.flushed_at.get(store.id)) for store in self._state.stores_of(pod))

    def _is_fresh(self, at: float | None) -> bool:
        return at is not None and self._state.now - at <= _FRESH


def _runs(pd: PdCluster, now: float) -> bool:
    """True if a log backup runs and is not paused."""
    tasks = [LogTask(pd.etcd, name, lambda: now) for name in task_names(pd.etcd, now)]
    return any(not task.is_paused for task in tasks)
