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

from apis.accessor import components
from apis.decoding import decode
from apis.defaulting import with_defaults
from apis.problem import InvalidField, Problem
from apis.tidbcluster import TidbCluster, TidbClusterCondition
from apis.validation import immutability, validate
from controllers.controller import Result
from controllers.errors import RequeueError
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
from controllers.tidbcluster.pace import Pace
from controllers.turns import COME_BACK, Turns
from kube.errors import Conflict, NotFound
from kube.events import WARNING
from kube.objects import Json, Object
from kube.reading import Lister
from kube.resources import TIDB_CLUSTERS
from member.outcome import Failed, Refused, Waiting
from member.round import Doors, Listers, Round, Settings
from member.running import running
from member.sightings import Sightings
from member.status import with_component_condition
from member.told import Told
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
        doors: Doors,
        has_status_subresource: Callable[[], bool],
        metrics: ClusterMetrics,
        turns: Turns,
    ) -> None:
        """`turns` is shared with whoever else acts for the same clusters."""
        self._clusters = clusters
        self._listers = listers
        self._settings = settings
        self._doors = doors
        self._has_status_subresource = has_status_subresource
        self._metrics = metrics
        self._turns = turns
        self._own_writes = OwnWrites()
        self._pace = Pace(doors.clock)
        self._told_specs: dict[str, str] = {}
        self._silent: set[str] = set()
        self._sightings: dict[str, Sightings] = {}
        self._told: dict[str, Told] = {}

    def is_slow(self, key: str) -> bool:
        """Whether the data plane of this cluster was silent when last asked, so that a sync of it may wait in vain."""
        return key in self._silent

    def __call__(self, key: str) -> Result | None:
        """Sync one key. Raises RequeueError for what is retried with back-off."""
        with self._turns.taking(key) as mine:
            if not mine:
                return Result(requeue_after=COME_BACK)
            try:
                return self._sync(key)
            except Exception:
                self._pace.failed(key)
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
        if pause := self._pace.pause(key):
            return Result(requeue_after=pause)
        try:
            tc = with_defaults(decode(owner.decode(), TidbCluster))
        except InvalidField as error:
            self._refuse(owner, [error.problem])
            return None
        if problems := validate(tc) or immutability(tc, running(tc, self._listers)):
            self._refuse(owner, problems)
            return None
        self._told_specs.pop(key, None)
        return self._reconcile(owner, tc)

    def _reconcile(self, owner: Object, tc: TidbCluster) -> Result | None:
        for part in components(tc):
            if part.name != "discovery":
                self._metrics.set_spec_replicas(
                    owner.metadata.namespace, tc.metadata.name, part.name, part.workload.replicas
                )
        dataplane = self._doors.dataplane.for_one_round()
        doors = replace(self._doors, dataplane=dataplane)
        sightings, told = self._sightings.setdefault(owner.key, Sightings()), self._told.setdefault(owner.key, Told())
        round_ = Round(owner, tc, self._listers, self._settings, doors, sightings=sightings, told=told)
        stages.run(round_)
        self._note_silence(owner.key, dataplane.silent)
        if round_.owner is not owner:
            self._own_writes.remember(round_.owner)
        self._set_conditions(round_)
        self._write_status(round_.owner, msgspec.to_builtins(round_.status))
        result = self._next(round_)
        self._pace.worked(owner.key)
        return result

    def _note_silence(self, key: str, silent: Collection[str]) -> None:
        if silent:
            log.warning("the data plane of a cluster is silent", endpoints=sorted(silent))
            self._silent.add(key)
        else:
            self._silent.discard(key)

    def _set_conditions(self, round_: Round) -> None:
        now = self._doors.clock.wall()
        status, before = round_.status, round_.status.conditions
        for name, part in (("pd", status.pd), ("tikv", status.tikv), ("tidb", status.tidb)):
            outcome = round_.outcomes.get(name)
            if outcome is None or getattr(round_.tc.spec, name) is None:
                continue
            news = (isinstance(outcome, Waiting | Failed), outcome.reason, outcome.message)
            conditions = with_component_condition(part.conditions, PROGRESSING, news, now)
            part.conditions = with_component_condition(conditions, READY, component_ready(round_.tc, name), now)
        _, reason, message = news = progressing(round_.outcomes)
        status.conditions = with_condition(before, PROGRESSING, news, now)
        refused = any(isinstance(outcome, Refused) for outcome in round_.outcomes.values())
        if refused and status.conditions != before:
            self._doors.recorder.event(round_.owner, WARNING, reason, message)
        status.conditions = with_condition(status.conditions, READY, with_story(ready(round_.tc), news), now)

    def _next(self, round_: Round) -> Result | None:
        failed = {name: outcome for name, outcome in round_.outcomes.items() if isinstance(outcome, Failed)}
        for name in failed:
            self._metrics.count_update_error(round_.namespace, round_.name, name)
        if failed:
            raise RequeueError("; ".join(f"{name}: {outcome.message}" for name, outcome in failed.items()))
        delays = [o.retry_after for o in round_.outcomes.values() if isinstance(o, Waiting | Refused) and o.retry_after]
        return Result(requeue_after=min(delays)) if delays else None

    def _refuse(self, owner: Object, problems: Sequence[Problem]) -> None:
        """Tell what is wrong with the spec: a condition, and one event for each distinct spec (I28)."""
        body = owner.decode()
        message = "; ".join(str(problem) for problem in problems)
        status: Json = dict(body.get("status") or {})
        conditions = [convert(c, TidbClusterCondition) for c in status.get("conditions") or ()]
        spec, last = _digest([body.get("spec"), message]), self._told_specs.get(owner.key)
        # after a restart the condition tells whether the one before has told
        told = last == spec if last else any(c.reason == INVALID and c.message == message for c in conditions)
        if not told:
            log.error("TidbCluster is not valid", problems=[str(problem) for problem in problems])
            self._doors.recorder.event(owner, WARNING, "FailedValidation", message)
        self._told_specs[owner.key] = spec
        refusal = (False, INVALID, message)
        conditions = with_condition(conditions, PROGRESSING, refusal, self._doors.clock.wall())
        self._write_status(owner, status | {"conditions": msgspec.to_builtins(conditions)})

    def _write_status(self, owner: Object, new: Json) -> None:
        meta = owner.metadata
        try:
            written = self._doors.applier.patch_status(
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
            self._pace.wrote(owner.key)

    def _forget(self, key: str, namespace: str, name: str) -> None:
        self._own_writes.forget(key)
        self._pace.forget(key)
        self._silent.discard(key)
        self._sightings.pop(key, None)
        self._told.pop(key, None)
        self._told_specs.pop(key, None)
        self._metrics.forget(namespace, name)


def _digest(tree: Any) -> str:
    """What tells one spec from another; never `metadata.generation`, which v1.6's CRDs raise on status writes."""
    return hashlib.sha256(msgspec.json.encode(tree, order="sorted")).hexdigest()
