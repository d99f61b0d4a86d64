"""One sync of a TidbCluster: from the key to the patched status (lifecycle.md 2).

decode → default in memory → validate → observe and act (`stages`) → conditions → patch the status if it differs.
The user's spec is never written. What is wrong with a spec is told in a condition and in one event, and nothing else
is written until it is corrected.
"""

import hashlib
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from typing import Any

import msgspec
import structlog

from apis.accessor import workloads
from apis.decoding import decode
from apis.defaulting import with_defaults
from apis.predicates import status_of
from apis.problem import InvalidField, Problem
from apis.tidbcluster import TidbCluster, TidbClusterCondition
from apis.validation import immutability, validate
from controllers.controller import Result
from controllers.errors import RequeueError
from controllers.key_locks import RETRY_AFTER, KeyLocks
from controllers.metrics import ClusterMetrics
from controllers.tidbcluster import stages
from controllers.tidbcluster.conditions import (
    PROGRESSING,
    READY,
    component_ready,
    progressing,
    ready,
    with_condition,
    with_story,
)
from controllers.tidbcluster.own_writes import OwnWrites
from controllers.tidbcluster.status_write_limiter import StatusWriteLimiter
from kube.errors import Conflict, NotFound
from kube.events import WARNING
from kube.objects import Json, Object
from kube.reading import Lister
from kube.resources import TIDB_CLUSTERS
from member.context import Dependencies, Listers, ReconcileContext, Settings
from member.memory.accepted_settings import AcceptedSettings
from member.memory.failure_timers import FailureTimers
from member.observed.running_spec import running
from member.observed.status import with_component_condition
from member.outcome import Failed, Refused, Waiting
from ports.structs import convert

log = structlog.get_logger(__name__)

INVALID = "InvalidSpec"
"""The reason of the Progressing condition while the spec is not valid."""

_UNSEEN_WRITE_DELAY = 0.1
"""Seconds until the next try when the cache does not show our own last write yet (F6)."""


class TidbClusterSync:
    """Brings one TidbCluster a step closer to its spec. Safe for use by many workers, one per key."""

    def __init__(
        self,
        clusters: Lister,
        listers: Listers,
        *,
        settings: Settings,
        deps: Dependencies,
        has_status_subresource: Callable[[], bool],
        metrics: ClusterMetrics,
        key_locks: KeyLocks,
    ) -> None:
        """`key_locks` is shared with whoever else acts for the same clusters."""
        self._clusters = clusters
        self._listers = listers
        self._settings = settings
        self._deps = deps
        self._has_status_subresource = has_status_subresource
        self._metrics = metrics
        self._key_locks = key_locks
        self._own_writes = OwnWrites()
        self._status_writes = StatusWriteLimiter(deps.clock)
        self._reported_specs: dict[str, str] = {}
        self._silent: set[str] = set()
        self._failure_timers: dict[str, FailureTimers] = {}
        self._accepted_settings: dict[str, AcceptedSettings] = {}

    def is_slow(self, key: str) -> bool:
        """Whether the data plane of this cluster was silent when last asked, so that a sync of it may wait in vain."""
        return key in self._silent

    def __call__(self, key: str) -> Result | None:
        """Sync one key. Raises RequeueError for what is retried with back-off."""
        with self._key_locks.try_lock(key) as mine:
            if not mine:
                return Result(requeue_after=RETRY_AFTER)
            try:
                return self._sync(key)
            except Exception:
                self._status_writes.failed(key)
                raise

    def _sync(self, key: str) -> Result | None:
        namespace, _, name = key.rpartition("/")
        owner = self._clusters.get(namespace, name)
        if owner is None:
            log.info("TidbCluster has been deleted", cluster=key)
        if owner is None or owner.metadata.deletion_timestamp:
            self._forget(key, namespace, name)
            return None
        if self._own_writes.unseen(owner):
            return Result(requeue_after=_UNSEEN_WRITE_DELAY)
        if pause := self._status_writes.pause(key):
            return Result(requeue_after=pause)
        try:
            tc = with_defaults(decode(owner.decode(), TidbCluster))
        except InvalidField as error:
            self._refuse(owner, [error.problem])
            return None
        if problems := validate(tc) or immutability(tc, running(tc, self._listers)):
            self._refuse(owner, problems)
            return None
        self._reported_specs.pop(key, None)
        return self._reconcile(owner, tc)

    def _reconcile(self, owner: Object, tc: TidbCluster) -> Result | None:
        for part in workloads(tc):
            replicas = part.workload.replicas
            self._metrics.set_spec_replicas(owner.metadata.namespace, tc.metadata.name, part.name, replicas)
        dataplane = self._deps.dataplane.for_one_reconcile()
        deps = replace(self._deps, dataplane=dataplane)
        ctx = ReconcileContext(
            owner,
            tc,
            self._listers,
            self._settings,
            deps,
            failure_timers=self._failure_timers.setdefault(owner.key, FailureTimers()),
            accepted_settings=self._accepted_settings.setdefault(owner.key, AcceptedSettings()),
        )
        stages.run(ctx)
        self._note_silence(owner.key, dataplane.silent)
        if ctx.owner is not owner:
            self._own_writes.remember(ctx.owner)
        self._set_conditions(ctx)
        self._write_status(ctx.owner, msgspec.to_builtins(ctx.status))
        result = self._next(ctx)
        self._status_writes.worked(owner.key)
        return result

    def _note_silence(self, key: str, silent: Collection[str]) -> None:
        if silent:
            log.warning("the data plane of a cluster is silent", endpoints=sorted(silent))
            self._silent.add(key)
        else:
            self._silent.discard(key)

    def _set_conditions(self, ctx: ReconcileContext) -> None:
        now = self._deps.clock.wall()
        status, before = ctx.status, ctx.status.conditions
        for name in (each.name for each in workloads(ctx.tc)):
            outcome, part = ctx.outcomes.get(name), status_of(ctx.tc, name)
            if outcome is None or part is None:
                continue
            news = (isinstance(outcome, Waiting | Failed), outcome.reason, outcome.message)
            conditions = with_component_condition(part.conditions, PROGRESSING, news, now)
            part.conditions = with_component_condition(conditions, READY, component_ready(ctx.tc, name), now)
        _, reason, message = news = progressing(ctx.outcomes)
        status.conditions = with_condition(before, PROGRESSING, news, now)
        refused = any(isinstance(outcome, Refused) for outcome in ctx.outcomes.values())
        if refused and status.conditions != before:
            self._deps.recorder.event(ctx.owner, WARNING, reason, message)
        status.conditions = with_condition(status.conditions, READY, with_story(ready(ctx.tc), news), now)

    def _next(self, ctx: ReconcileContext) -> Result | None:
        failed = {name: outcome for name, outcome in ctx.outcomes.items() if isinstance(outcome, Failed)}
        for name in failed:
            self._metrics.count_update_error(ctx.namespace, ctx.name, name)
        if failed:
            raise RequeueError("; ".join(f"{name}: {outcome.message}" for name, outcome in failed.items()))
        delays = [o.retry_after for o in ctx.outcomes.values() if isinstance(o, Waiting | Refused) and o.retry_after]
        return Result(requeue_after=min(delays)) if delays else None

    def _refuse(self, owner: Object, problems: Sequence[Problem]) -> None:
        """Tell what is wrong with the spec: a condition, and one event for each distinct spec (I28)."""
        body = owner.decode()
        message = "; ".join(str(problem) for problem in problems)
        status: Json = dict(body.get("status") or {})
        conditions = [convert(c, TidbClusterCondition) for c in status.get("conditions") or ()]
        spec, last = _digest([body.get("spec"), message]), self._reported_specs.get(owner.key)
        # after a restart the condition tells whether the one before has told
        told = last == spec if last else any(c.reason == INVALID and c.message == message for c in conditions)
        if not told:
            log.error("TidbCluster is not valid", problems=[str(problem) for problem in problems])
            self._deps.recorder.event(owner, WARNING, "FailedValidation", message)
        self._reported_specs[owner.key] = spec
        refusal = (False, INVALID, message)
        conditions = with_condition(conditions, PROGRESSING, refusal, self._deps.clock.wall())
        self._write_status(owner, status | {"conditions": msgspec.to_builtins(conditions)})

    def _write_status(self, owner: Object, new: Json) -> None:
        meta = owner.metadata
        try:
            written = self._deps.applier.patch_status(
                TIDB_CLUSTERS,
                meta.name,
                meta.namespace,
                uid=meta.uid,
                resource_version=meta.resource_version,
                old=owner.decode().get("status") or {},
                new=new,
                subresource=self._has_status_subresource(),
            )
        except (Conflict, NotFound) as error:
            # F3: somebody was faster, or it is gone; an event brings it back when the cache shows that
            raise RequeueError(f"the status was not written: {error}") from error
        if written is not None:
            self._own_writes.remember(written)
            self._status_writes.wrote(owner.key)

    def _forget(self, key: str, namespace: str, name: str) -> None:
        self._own_writes.forget(key)
        self._status_writes.forget(key)
        self._silent.discard(key)
        self._failure_timers.pop(key, None)
        self._accepted_settings.pop(key, None)
        self._reported_specs.pop(key, None)
        self._metrics.forget(namespace, name)


def _digest(tree: Any) -> str:
    """What tells one spec from another; never `metadata.generation`, which v1.6's CRDs raise on status writes."""
    return hashlib.sha256(msgspec.json.encode(tree, order="sorted")).hexdigest()
