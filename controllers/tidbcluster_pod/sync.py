"""One sync of a pod: from the key to one step of the pod's command (lifecycle.md 1.2, 13).

Of the cluster's status only `tikv.evictLeader` is written, which is this controller's alone (2.4). Clusters that are
paused, being deleted, or not valid are left alone (I26, I27, I28).
"""

import msgspec

from apis.tidbcluster import TidbCluster
from controllers.controller import Result
from controllers.enqueueing import Enqueue
from controllers.key_locks import RETRY_AFTER
from controllers.kind import InvalidSpec
from controllers.outcomes import result_of, sooner
from controllers.runtime import Runtime
from controllers.stages import Stage, attempt
from controllers.status_patch import patch_status
from controllers.tidbcluster.commands import Commands, note
from controllers.tidbcluster.events import clusters_of_pod
from controllers.tidbcluster.kind import TIDB_CLUSTER
from controllers.tidbcluster_pod import dispatch
from controllers.tidbcluster_pod.command_events import PodMemory, report, warn
from controllers.tidbcluster_pod.events import evicted_pods
from kube.objects import Object
from kube.reading import Lister
from kube.resources import TIDB_CLUSTERS
from member.commands.annotations import commands_of, is_commanded, seconds_left, unknown_values
from member.context import Dependencies, ReconcileContext
from member.outcome import Done, Outcome

_STAGE = "pod_command"


class TidbClusterPodSync:
    """Carries out the commands of pods. Safe for use by many workers, one per key."""

    def __init__(
        self, clusters: Lister, deps: Dependencies, runtime: Runtime, commands: Commands, enqueue_cluster: Enqueue
    ) -> None:
        """`runtime` is that of the controller of TidbClusters, whose key locks it shares.

        What becomes of `commands` is noted, and `enqueue_cluster` brings the cluster whose status says so.
        """
        self._clusters = clusters
        self._deps = deps
        self._runtime = runtime
        self._commands = commands
        self._enqueue_cluster = enqueue_cluster
        self._memory = runtime.memory(PodMemory, None)

    def is_slow(self, key: str) -> bool:
        """Whether the data plane was silent in the last sync of this pod."""
        memory = self._memory.find(key)
        return memory is not None and memory.is_slow

    def __call__(self, key: str) -> Result | None:
        """Sync one pod. Raises RequeueError for what is retried with back-off."""
        owner = self._owner(key)
        if owner is None:
            self._forget(key)
            return None
        with self._runtime.key_locks.try_lock(TIDB_CLUSTERS, owner.key) as mine:
            if not mine:
                return Result(requeue_after=RETRY_AFTER, tried=False)
            if not self._runtime.key_locks.owns(TIDB_CLUSTERS, owner.key):
                self._forget(key)
                return None
            with self._runtime.observed.sync_of(TIDB_CLUSTERS, owner.key, owner):
                return self._act(key, owner.key)

    def _act(self, key: str, locked: str) -> Result | None:
        # seen only now, the cache may show what the other controller has just done
        owner, pod = self._owner(key), self._pod(key)
        tc = self._in_charge_of(owner) if owner else None
        if owner is None or owner.key != locked or tc is None:
            self._forget(key)
            return None
        memory = self._memory.of(key)
        memory.owner = owner.key
        ctx = TIDB_CLUSTER.context(owner, tc, self._deps, memory.cluster)
        before = ctx.status.tikv.evict_leader
        uid, name = pod.metadata.uid if pod else "", key.rpartition("/")[2]
        stage = Stage[ReconcileContext](_STAGE, lambda ctx: dispatch.act(ctx, name, pod))
        outcome = attempt(stage, ctx, self._runtime.on_defect)
        memory.is_slow = bool(TIDB_CLUSTER.slow(ctx))
        if ctx.status.tikv.evict_leader != before:
            self._write_evictions(ctx)
        warn(self._deps.recorder, memory, owner, uid, unknown_values(pod) if pod else ())
        report(self._deps.recorder, memory, owner, uid, outcome)
        self._note(owner.key, name, outcome)
        paced = memory.cache_waits.paced({_STAGE: outcome}, self._deps.clock)
        return sooner(result_of(paced), self._until_one_expires(pod))

    def _forget(self, key: str) -> None:
        """The pod carries no command any more, or nothing may be done for its cluster."""
        memory = self._memory.find(key)
        self._memory.forget(key)
        if memory is not None:
            self._note(memory.owner, key.rpartition("/")[2], Done())

    def _note(self, cluster: str, pod: str, outcome: Outcome) -> None:
        if note(self._commands, cluster, pod, outcome):
            self._enqueue_cluster(cluster)

    def _until_one_expires(self, pod: Object | None) -> float:
        """Seconds, 0 when no command of the pod is going to expire."""
        now = self._deps.clock.wall()
        left = [seconds_left(pod, each, now) for each in commands_of(pod)] if pod else []
        return min(filter(None, left), default=0.0)

    def _pod(self, key: str) -> Object | None:
        namespace, _, name = key.rpartition("/")
        return self._deps.listers.pods.get(namespace, name)

    def _owner(self, key: str) -> Object | None:
        """The TidbCluster of a pod that has a command, or that has an eviction to end."""
        namespace, _, name = key.rpartition("/")
        pod = self._pod(key)
        candidates = self._clusters.list(namespace) if pod is None else clusters_of_pod(self._clusters, pod)
        commanded = pod is not None and is_commanded(pod)
        return next((each for each in candidates if commanded or name in evicted_pods(each)), None)

    def _in_charge_of(self, owner: Object) -> TidbCluster | None:
        """The cluster, decoded and defaulted, if anything may be done for it."""
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
