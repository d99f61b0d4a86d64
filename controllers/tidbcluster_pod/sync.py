"""One sync of a pod: from the key to one step of what the pod is told (lifecycle.md 1.2, 13).

Of the cluster's status only `tikv.evictLeader` is written, which is this controller's alone (2.4). Clusters that are
paused, being deleted, or not valid are left alone (I26, I27, I28).
"""

from collections.abc import Callable
from dataclasses import replace

import msgspec

from apis.decoding import decode
from apis.defaulting import with_defaults
from apis.problem import InvalidField
from apis.tidbcluster import TidbCluster
from apis.validation import immutability, validate
from controllers.controller import Result
from controllers.errors import RequeueError
from controllers.key_locks import RETRY_AFTER, KeyLocks
from controllers.tidbcluster.events import clusters_of_instance
from controllers.tidbcluster.stages import Stage, attempt
from controllers.tidbcluster_pod import dispatch
from controllers.tidbcluster_pod.command_events import CommandEvents
from controllers.tidbcluster_pod.events import evicted_pods
from kube.errors import Conflict, NotFound
from kube.objects import Object
from kube.reading import Lister
from kube.resources import TIDB_CLUSTERS
from member.commands.annotations import is_commanded, unknown_values
from member.context import Dependencies, Listers, ReconcileContext, Settings
from member.observed.running_spec import running
from member.outcome import Failed, Outcome, Refused, Waiting


class TidbClusterPodSync:
    """Does what pods are told. Safe for use by many workers, one per key."""

    def __init__(
        self,
        clusters: Lister,
        listers: Listers,
        *,
        settings: Settings,
        deps: Dependencies,
        has_status_subresource: Callable[[], bool],
        key_locks: KeyLocks,
    ) -> None:
        """`key_locks` is shared with the controller of TidbClusters."""
        self._clusters = clusters
        self._listers = listers
        self._settings = settings
        self._deps = deps
        self._has_status_subresource = has_status_subresource
        self._key_locks = key_locks
        self._telling = CommandEvents(deps.recorder)
        self._silent: set[str] = set()

    def is_slow(self, key: str) -> bool:
        """Whether the data plane was silent in the last sync of this pod."""
        return key in self._silent

    def __call__(self, key: str) -> Result | None:
        """Sync one pod. Raises RequeueError for what is retried with back-off."""
        owner = self._owner(key)
        if owner is None:
            self._forget(key)
            return None
        with self._key_locks.try_lock(owner.key) as mine:
            return self._act(key) if mine else Result(requeue_after=RETRY_AFTER)

    def _act(self, key: str) -> Result | None:
        # seen only now, the cache may show what the other controller has just done
        owner, pod = self._owner(key), self._pod(key)
        tc = self._in_charge_of(owner) if owner else None
        if owner is None or tc is None:
            self._forget(key)
            return None
        dataplane = self._deps.dataplane.for_one_reconcile()
        ctx = ReconcileContext(owner, tc, self._listers, self._settings, replace(self._deps, dataplane=dataplane))
        before = tc.status.tikv.evict_leader
        uid, name = pod.metadata.uid if pod else "", key.rpartition("/")[2]
        outcome = attempt(Stage("pod_command", lambda ctx: dispatch.act(ctx, name, pod)), ctx)
        if dataplane.silent:
            self._silent.add(key)
        else:
            self._silent.discard(key)
        if ctx.status.tikv.evict_leader != before:
            self._write_evictions(ctx)
        self._telling.unknown(owner, key, uid, unknown_values(pod) if pod else ())
        self._telling.outcome(owner, key, uid, outcome)
        return _next(outcome)

    def _pod(self, key: str) -> Object | None:
        namespace, _, name = key.rpartition("/")
        return self._listers.pods.get(namespace, name)

    def _owner(self, key: str) -> Object | None:
        """The TidbCluster of a pod that is told something, or that has an eviction to end."""
        namespace, _, name = key.rpartition("/")
        pod = self._listers.pods.get(namespace, name)
        candidates = self._clusters.list(namespace) if pod is None else clusters_of_instance(self._clusters, pod)
        told = pod is not None and is_commanded(pod)
        return next((each for each in candidates if told or name in evicted_pods(each)), None)

    def _in_charge_of(self, owner: Object) -> TidbCluster | None:
        """The cluster, decoded and defaulted, if anything may be done for it."""
        if owner.metadata.deletion_timestamp:
            return None
        try:
            tc = with_defaults(decode(owner.decode(), TidbCluster))
        except InvalidField:
            return None
        if tc.spec.paused or validate(tc) or immutability(tc, running(tc, self._listers)):
            return None
        return tc

    def _write_evictions(self, ctx: ReconcileContext) -> None:
        old = ctx.owner.decode().get("status") or {}
        evictions = msgspec.to_builtins(ctx.status.tikv.evict_leader)
        tikv = (old.get("tikv") or {}) | {"evictLeader": evictions or None}
        meta = ctx.owner.metadata
        try:
            self._deps.applier.patch_status(
                TIDB_CLUSTERS,
                meta.name,
                meta.namespace,
                uid=meta.uid,
                resource_version=meta.resource_version,
                old=old,
                new=old | {"tikv": tikv},
                subresource=self._has_status_subresource(),
            )
        except (Conflict, NotFound) as error:
            raise RequeueError(f"the status was not written: {error}") from error

    def _forget(self, key: str) -> None:
        self._silent.discard(key)
        self._telling.forget(key)


def _next(outcome: Outcome) -> Result | None:
    if isinstance(outcome, Failed):
        raise RequeueError(outcome.message)
    if isinstance(outcome, Waiting | Refused) and outcome.retry_after:
        return Result(requeue_after=outcome.retry_after)
    return None
