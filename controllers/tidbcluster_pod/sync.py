"""One sync of a pod: from the key to one step of the pod's command (lifecycle.md 1.2, 13).

The controller writes only `tikv.evictLeader` of the cluster's status, which no other controller writes (2.4). It leaves
clusters alone that are paused, being deleted, or invalid (I26, I27, I28).
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial

import msgspec
import structlog

from apis.tidbcluster import TidbCluster
from controllers.cache_waits import CacheWaits
from controllers.controller import Result
from controllers.database_actions import executor_of
from controllers.enqueueing import Enqueue
from controllers.frame import BUSY, turn_of
from controllers.kind import InvalidSpec
from controllers.outcomes import result_of, sooner
from controllers.runtime import Runtime
from controllers.stages import Stage, attempt
from controllers.status_patch import patch_status
from controllers.tidbcluster.commands import Commands, note
from controllers.tidbcluster.events import clusters_of_pod
from controllers.tidbcluster.kind import TIDB_CLUSTER
from controllers.tidbcluster_pod.events import evicted_pods
from kube.events import NORMAL, WARNING, EventRecorder
from kube.objects import Object
from kube.reading import Lister
from kube.resources import TIDB_CLUSTERS
from member import labels
from member.components import workload
from member.context import Dependencies, ReconcileContext
from member.evidence import is_same_cluster
from member.lifecycle.component_sync import REMOVED
from member.memory import ClusterMemory
from member.observed.command_annotations import commands_of, is_commanded, seconds_left, unknown_values
from member.observed.instances import instance_taken
from member.outcome import DONE, Done, Failed, Outcome, Refused
from member.tikv import commands

_STAGE = "pod_command"
log = structlog.get_logger(__name__)


class TidbClusterPodSync:
    """Executes the commands of pods. Thread-safe, with one worker at a time per key."""

    def __init__(
        self, clusters: Lister, deps: Dependencies, runtime: Runtime, commands: Commands, enqueue_cluster: Enqueue
    ) -> None:
        """`runtime` is shared with the controller of TidbClusters, because of its key locks.

        The sync notes outcomes in `commands`, and calls `enqueue_cluster` if the status of the cluster must show them.
        """
        self._clusters = clusters
        self._deps = deps
        self._runtime = runtime
        self._executor = executor_of(deps)
        self._commands = commands
        self._enqueue_cluster = enqueue_cluster
        self._memory = runtime.memory(PodMemory, None)

    def is_slow(self, key: str) -> bool:
        """True if the data plane did not answer in time in the last sync of this pod."""
        memory = self._memory.find(key)
        return memory is not None and memory.is_slow

    def __call__(self, key: str) -> Result | None:
        """Sync one pod. Raises RequeueError if it must be retried with back-off."""
        owner = self._owner(key)
        if owner is None:
            self._forget(key)
            return None
        with turn_of(self._runtime, TIDB_CLUSTERS, owner.key, partial(self._still_owner, key)) as turn:
            return self._act(key, turn.owner) if turn else BUSY

    def _still_owner(self, key: str, cluster: str) -> Object | None:
        """The TidbCluster of a pod if it is still `cluster`; the other controller may just have acted for both."""
        owner = self._owner(key)
        return owner if owner is not None and owner.key == cluster else None

    def _act(self, key: str, owner: Object | None) -> Result | None:
        pod, tc = self._pod(key), self._in_charge_of(owner) if owner else None
        if owner is None or tc is None:
            self._forget(key)
            return None
        memory = self._memory.of(key)
        memory.owner = owner.key
        ctx = TIDB_CLUSTER.context(owner, tc, self._deps, memory.cluster)
        before = ctx.status.tikv.evict_leader
        uid, name = pod.metadata.uid if pod else "", key.rpartition("/")[2]
        stage = Stage[ReconcileContext](_STAGE, lambda ctx: take_step(ctx, name, pod))
        outcome = attempt(stage, ctx, self._executor, self._runtime.on_defect)
        memory.is_slow = bool(TIDB_CLUSTER.slow(ctx))
        if ctx.status.tikv.evict_leader != before:
            self._write_evictions(ctx)
        warn_once(self._deps.recorder, memory, owner, uid, unknown_values(pod) if pod else ())
        report_outcome(self._deps.recorder, memory, owner, uid, outcome)
        self._note(owner.key, name, outcome)
        paced = memory.cache_waits.paced({_STAGE: outcome}, self._deps.clock)
        return sooner(result_of(paced), self._until_one_expires(pod))

    def _forget(self, key: str) -> None:
        """Delete the memory of a pod without a command, or whose cluster must be left alone."""
        memory = self._memory.find(key)
        self._memory.forget(key)
        if memory is not None:
            self._note(memory.owner, key.rpartition("/")[2], Done())

    def _note(self, cluster: str, pod: str, outcome: Outcome) -> None:
        if note(self._commands, cluster, pod, outcome):
            self._enqueue_cluster(cluster)

    def _until_one_expires(self, pod: Object | None) -> float:
        """The seconds until the first command of the pod expires; 0 if none will."""
        now = self._deps.clock.wall()
        left = [seconds_left(pod, command, now) for command in commands_of(pod)] if pod else []
        return min(filter(None, left), default=0.0)

    def _pod(self, key: str) -> Object | None:
        namespace, _, name = key.rpartition("/")
        return self._deps.listers.pods.get(namespace, name)

    def _owner(self, key: str) -> Object | None:
        """The TidbCluster of a pod with a command or an eviction to end; else None."""
        namespace, _, name = key.rpartition("/")
        pod = self._pod(key)
        candidates = self._clusters.list(namespace) if pod is None else clusters_of_pod(self._clusters, pod)
        commanded = pod is not None and is_commanded(pod)
        return next((candidate for candidate in candidates if commanded or name in evicted_pods(candidate)), None)

    def _in_charge_of(self, owner: Object) -> TidbCluster | None:
        """The cluster with its defaults; None if it must be left alone."""
        if owner.metadata.deletion_timestamp:
            return None
        try:
            tc = TIDB_CLUSTER.read(owner, self._deps)
        except InvalidSpec:
            return None
        return None if tc.spec.paused else tc

    def _write_evictions(self, ctx: ReconcileContext) -> None:
        old = ctx.owner.decode().get("status") or {}
        evictions = msgspec.to_builtins(ctx.status.tikv.evict_leader)
        tikv = (old.get("tikv") or {}) | {"evictLeader": evictions or None}
        patch_status(self._deps.applier, TIDB_CLUSTERS, ctx.owner, old, old | {"tikv": tikv})


async def take_step(ctx: ReconcileContext, name: str, pod: Object | None) -> Outcome:
    """Take one step of the command of a pod (lifecycle.md 13); `pod` is None if the cache lacks it.

    Raises DataPlaneError, ApiError, TransportError, LeaseExpired.
    """
    command = next(iter(commands_of(pod)), None) if pod else None
    if command is None and name not in ctx.status.tikv.evict_leader:
        return Done()
    if taken := instance_taken(ctx):
        return taken
    if not is_same_cluster(ctx):
        return Refused("ForeignPD", "PD reports the id of another cluster; commands on pods are ignored")
    ended = Done() if command and commands.is_one(command) else await commands.end(ctx, name, pod)
    if pod is None or command is None or pod.metadata.deletion_timestamp:
        return ended
    component = pod.metadata.labels[labels.COMPONENT]
    if component in ctx.removed:
        return Refused(
            REMOVED, f"{component} was removed from the spec; commands on its pods wait until it is restored"
        )
    return await workload(component).commands[command.key](ctx, pod, command)


@dataclass(slots=True)
class PodMemory:
    """The memory of one pod.

    `owner` is the key of its cluster. `reported` is the UID of the pod and the last reported reason, `warned` its UID
    and the reported problems. `is_slow` is True if servers that its command needs did not answer in time. `cluster`
    holds measurements of its commands.
    """

    owner: str = ""
    reported: tuple[str, str] | None = None
    warned: tuple[str, ...] = ()
    is_slow: bool = False
    cluster: ClusterMemory = field(default_factory=ClusterMemory)
    cache_waits: CacheWaits = field(default_factory=CacheWaits)


def report_outcome(recorder: EventRecorder, memory: PodMemory, cluster: Object, uid: str, outcome: Outcome) -> None:
    """Report the outcome of the command of a pod with the UID `uid`, if its reason has changed."""
    news = None if outcome.reason == DONE else (uid, outcome.reason)
    if news is not None and news != memory.reported:
        log.info("pod command", reason=outcome.reason, message=outcome.message)
        kind = WARNING if isinstance(outcome, Refused | Failed) else NORMAL
        recorder.event(cluster, kind, outcome.reason, outcome.message)
    memory.reported = news


def warn_once(recorder: EventRecorder, memory: PodMemory, cluster: Object, uid: str, problems: Sequence[str]) -> None:
    """Warn once of annotations with unknown commands."""
    news = (uid, *problems) if problems else ()
    if news != memory.warned:
        for problem in problems:
            log.warning("unknown command", problem=problem)
            recorder.event(cluster, WARNING, "UnknownCommand", problem)
    memory.warned = news
