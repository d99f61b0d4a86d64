"""One reconcile of one object of any kind: from the key to the patched status (lifecycle.md 2).

    cached object ─┬─ deleted, or of another process  → its memory is deleted
                   ├─ older than the own last write   → retry soon
                   ├─ its spec is invalid             → report it by a condition and one event. Continue with the last
                   │                                    valid spec: observe, and recreate missing objects. If none is
                   │                                    known, only observe what runs, by the invalid spec
                   └─ stages → conditions → patch the status if it differs → time of the next reconcile

The operator never writes the user's spec.
"""

import contextlib
from collections.abc import Mapping, Sequence
from typing import Generic

import msgspec
import structlog

from apis.problem import Problem
from apis.unknown_fields import UNKNOWN_FIELDS
from controllers.conditions import INVALID, PROGRESSING, READY, with_condition
from controllers.controller import Result
from controllers.errors import RequeueError
from controllers.frame import BUSY, turn_of, wait_for_cache
from controllers.kind import C, D, InvalidSpec, Kind, M, R
from controllers.memory import KeyMemory
from controllers.metrics import NO_OBJECT_METRICS, ObjectMetrics
from controllers.outcomes import result_of, sooner
from controllers.runtime import Runtime
from controllers.stages import EXPECTED, run_stages
from controllers.status_pacing import StatusPacing, tells_reconciles
from controllers.status_patch import patch_status
from controllers.wait_log import WaitLog
from kube import contests
from kube.errors import NotFound
from kube.events import NORMAL, WARNING
from kube.failure_log import FailureLog
from kube.objects import Json, Object, condition_of, digest
from kube.reading import Lister
from member.outcome import CONTESTED, Done, Outcome, Refused
from ports.observation import is_observing

log = structlog.get_logger(__name__)

CLEANUP_FAILED = "CleanUpFailed"
"""The reason of Progressing of a deleted object that stays because its cleanup failed."""

_ALTERNATING = 1.0
"""Seconds between the write of a status that alternates and the next reconcile.

Each write otherwise causes one at once, to which servers that contradict each other give the other answer.
"""

_OBJECTS = "objects"
"""The name in `outcomes` that reports objects which other clients keep changing, whichever stage writes them."""


class Reconciler(Generic[M, C, D, R]):
    """Brings an object of a kind one step closer to its spec. Thread-safe, with one worker at a time per key."""

    def __init__(
        self,
        kind: Kind[M, C, D, R],
        objects: Lister,
        deps: D,
        runtime: Runtime,
        metrics: ObjectMetrics = NO_OBJECT_METRICS,
    ) -> None:
        """`objects` lists the objects of the kind; `deps` are the dependencies of its contexts."""
        self._kind = kind
        self._objects = objects
        self._deps = deps
        self._runtime = runtime
        self._executor = kind.executor(deps) if kind.executor else runtime.executor
        self._metrics = metrics
        self._memory, self._tried = (runtime.memory(self._new_memory, kind.resource) for _ in range(2))

    def _new_memory(self) -> KeyMemory[R]:
        """An empty memory; normal syncs and syncs that write nothing have separate ones."""
        clock, kind = self._runtime.clock, self._kind
        pacing, slowness = StatusPacing(clock, kind.status_fields), FailureLog(log, clock)
        return KeyMemory(kind.memory(), pacing, WaitLog(clock), slowness)

    def is_slow(self, key: str) -> bool:
        """True if servers of this object were slow or silent in its last reconcile, so that the next may take long."""
        memory = self._memory.find(key)
        return memory is not None and memory.is_slow

    def is_echo(self, obj: Object) -> bool:
        """True if an object is unchanged since its last reconcile, whose own write is no news to the next."""
        memory = self._memory.find(obj.key)
        return memory is not None and memory.own_write.is_echo(obj)

    def __call__(self, key: str) -> Result | None:
        """Reconcile one key. Raises RequeueError if it must be retried with back-off."""
        with turn_of(self._runtime, self._kind.resource, key, self._cached) as turn:
            return self._sync(key, turn.owner) if turn else BUSY

    def _cached(self, key: str) -> Object | None:
        namespace, _, name = key.rpartition("/")
        owner = self._objects.get(namespace, name)
        if owner is None:
            log.info(f"{self._kind.resource.kind} has been deleted", key=key)
        return self._runtime.observed.planned_for(self._kind.resource, owner)

    def _sync(self, key: str, owner: Object | None) -> Result | None:
        if owner is None or owner.metadata.deletion_timestamp:
            self._forget(key)
            if owner:
                self._finalize(owner)
            return None
        memory = (self._tried if is_observing() else self._memory).of(key)
        if wait := wait_for_cache(self._runtime, self._kind.resource, owner, memory.own_write):
            return wait
        return self._reconcile(owner, memory)

    def _forget(self, key: str) -> None:
        namespace, _, name = key.rpartition("/")
        self._memory.forget(key)
        self._tried.forget(key)
        self._runtime.secrets.forget((self._kind.resource, key))
        self._metrics.forget(namespace, name)

    def _finalize(self, owner: Object) -> None:
        """Run the cleanup that a deleted object waits for. Raises RequeueError if it fails."""
        if self._kind.finalize is None:
            return
        try:
            self._kind.finalize(owner, self._deps)
        except NotFound:
            return  # the object is gone
        except EXPECTED as error:
            message = f"waiting to be deleted: what this object has made could not be removed: {error}"
            self._record_cleanup(owner, message)
            raise RequeueError(CLEANUP_FAILED, message) from error

    def _record_cleanup(self, owner: Object, message: str) -> None:
        """Record once why a deleted object stays, by an event and, if the API server accepts it, a condition."""
        stored = self._runtime.applier.status_of(self._kind.resource, owner)
        before: list[Json] = stored.get("conditions") or []
        value, now = (True, CLEANUP_FAILED, message), self._runtime.clock.wall()
        after = with_condition(before, PROGRESSING, value, now, update_time=self._kind.update_times)
        if after == before:
            return
        log.warning("clean-up failed", message=message)
        self._runtime.recorder.event(owner, WARNING, CLEANUP_FAILED, message)
        with contextlib.suppress(*EXPECTED, RequeueError):
            patch_status(self._runtime.applier, self._kind.resource, owner, stored, stored | {"conditions": after})

    def _reconcile(self, owner: Object, memory: KeyMemory[R]) -> Result | None:
        try:
            model = self._kind.read(owner, self._deps, memory.validity)
        except InvalidSpec as error:
            return self._go_on(owner, memory, self._refuse(owner, memory, error.problems))
        memory.reported_spec, memory.accepted = b"", owner
        return self._run(owner, self._kind.context(owner, model, self._deps, memory.kind), memory)

    def _go_on(self, owner: Object, memory: KeyMemory[R], refusal: Refused) -> Result | None:
        """Hold the object at its last valid spec; if none is known, observe it by the invalid one."""
        if self._kind.hold is None:
            return sooner(None, self._write_refusal(owner, memory, refusal))
        seen = memory.accepted if memory.accepted and memory.accepted.metadata.uid == owner.metadata.uid else None
        before = seen.decode() if seen else self._kind.last_written(owner, self._deps)
        for held in (*([_as_before(owner, before)] if before else []), owner):
            if (model := self._kind.read_unchecked(held)) is not None:
                ctx = self._kind.context(held, model, self._deps, memory.kind)
                self._kind.hold(ctx, owner, refusal, seen is not None)
                return self._run(owner, ctx, memory)
        return sooner(None, self._write_refusal(owner, memory, refusal))

    def _run(self, cached: Object, ctx: C, memory: KeyMemory[R]) -> Result | None:
        """Run the stages and report. While `cached` is not valid, the context has its last valid spec."""
        owner = ctx.owner
        with contests.collecting() as contested:
            run_stages(self._kind.run(ctx), ctx, self._executor, self._runtime.on_defect)
        if contested:
            ctx.outcomes[_OBJECTS] = Done(contests.sentence(contested), CONTESTED)
        # after the stages, so that no write waits for it
        memory.unknown_fields.judge(cached, self._kind.model)
        memory.waits.note(ctx.outcomes)
        self._note_slowness(ctx, memory)
        if ctx.owner is not owner:
            memory.own_write.remember(ctx.owner)
        stored = self._runtime.applier.status_of(self._kind.resource, ctx.owner)
        pause = self._write_status(ctx.owner, memory, stored, self._status(ctx, memory, stored))
        self._metrics.note_sync(owner.metadata.namespace, owner.metadata.name, ctx.outcomes)
        result = result_of(memory.cache_waits.paced(ctx.outcomes, self._runtime.clock))
        return sooner(sooner(result, pause), min((each.look_again for each in contested), default=0.0))

    def _note_slowness(self, ctx: C, memory: KeyMemory[R]) -> None:
        slow = self._kind.slow(ctx)
        if slow:
            memory.slowness.failed("servers of the object answer slowly", endpoints=sorted(slow))
        else:
            memory.slowness.worked("servers of the object answer promptly again")
        memory.is_slow = bool(slow)

    def _status(self, ctx: C, memory: KeyMemory[R], stored: Json) -> Json:
        """The new status with its conditions. Records an event for a new refusal."""
        now = self._runtime.clock.wall()
        values = self._kind.conditions(ctx, now)
        status: Json = msgspec.to_builtins(self._kind.status(ctx))
        conditions: list[Json] = stored.get("conditions") or []
        if (others := self._kind.others_conditions(ctx)) is not None:
            conditions = [
                *others,
                *(condition for condition in conditions if condition.get("type") in (*values, UNKNOWN_FIELDS)),
            ]
        for kind, value in values.items():
            before = conditions
            conditions = with_condition(before, kind, value, now, update_time=self._kind.update_times)
            # an outage was already recorded as an event when Ready first named it
            known = (INVALID, condition_of(stored.get("conditions") or [], READY).get("reason"))
            is_news = conditions != before and kind == PROGRESSING and value[1] not in known
            if is_news and _is_refused(ctx.outcomes):
                self._runtime.recorder.event(ctx.owner, WARNING, value[1], value[2])
        return status | {"conditions": self._with_unknown_fields(ctx.owner, memory, conditions)}

    def _with_unknown_fields(self, owner: Object, memory: KeyMemory[R], conditions: Sequence[Json]) -> Sequence[Json]:
        now, record = self._runtime.clock.wall(), self._runtime.recorder
        return memory.unknown_fields.reported(owner, conditions, now, record, update_time=self._kind.update_times)

    def _refuse(self, owner: Object, memory: KeyMemory[R], problems: Sequence[Problem]) -> Refused:
        """Report the problems of the spec, by one event per distinct spec (I28), and return the refusal."""
        message = "; ".join(str(problem) for problem in problems)
        conditions = self._runtime.applier.status_of(self._kind.resource, owner).get("conditions") or []
        # with v1.6's CRDs `metadata.generation` also grows when the status changes
        spec, last = digest([owner.decode().get("spec"), message]), memory.reported_spec
        # after a restart the condition shows if the process before has reported it
        reported = last == spec if last else any(_refuses(condition, message) for condition in conditions)
        if not reported:
            log.error(f"{self._kind.resource.kind} is not valid", problems=[str(problem) for problem in problems])
            self._runtime.recorder.event(owner, WARNING, "FailedValidation", message)
        memory.reported_spec = spec
        return Refused(INVALID, message)

    def _write_refusal(self, owner: Object, memory: KeyMemory[R], refusal: Refused) -> float:
        self._metrics.note_sync(owner.metadata.namespace, owner.metadata.name, {"spec": refusal})
        memory.unknown_fields.judge(owner, self._kind.model)
        stored = self._runtime.applier.status_of(self._kind.resource, owner)
        now, value = self._runtime.clock.wall(), (False, refusal.reason, refusal.message)
        conditions: list[Json] = stored.get("conditions") or []
        # the operator cannot observe the object, so it does not call it Ready
        for kind in [PROGRESSING, READY]:
            conditions = with_condition(conditions, kind, value, now, update_time=self._kind.update_times)
        status = stored | {"conditions": self._with_unknown_fields(owner, memory, conditions)}
        return self._write_status(owner, memory, stored, status)

    def _write_status(self, owner: Object, memory: KeyMemory[R], old: Json, new: Json) -> float:
        """Write the status if it differs; return the seconds until the next reconcile, 0 if there is no wait.

        The write, or after it a reaction to it, may have to wait.
        """
        if old != new and (pause := memory.status_pacing.pause(old, new)):
            return pause
        written = patch_status(self._runtime.applier, self._kind.resource, owner, old, new)
        if written is not None:
            self._emit_wait(written, old, new)
            self._kind.log_news(old, new)
            is_news = tells_reconciles(old, new, self._kind.status_fields)
            alternates = memory.status_pacing.wrote(old, new)
            memory.own_write.remember(written, is_news=is_news and not alternates)
            return _ALTERNATING if is_news and alternates else 0.0
        return 0.0

    def _emit_wait(self, written: Object, old: Json, new: Json) -> None:
        """Record an event about the wait if the stored status has no conditions, as with v1.6's definitions."""
        before, now = (_wait_of(each.get("conditions") or ()) for each in (old, new))
        has_conditions = "conditions" in (written.decode().get("status") or {})
        if now and not has_conditions and before.get("message") != now["message"]:
            self._runtime.recorder.event(written, NORMAL, now["reason"], now["message"])


def _wait_of(conditions: Sequence[Json]) -> Json:
    """The condition Progressing while it is True; else empty."""
    condition = condition_of(conditions, PROGRESSING)
    return condition if condition.get("status") == "True" else {}


def _as_before(owner: Object, before: Json) -> Object:
    """The object with its earlier spec, labels and annotations: any of these may be invalid now."""
    body = owner.decode()
    theirs = {key: before["metadata"].get(key) or {} for key in ("labels", "annotations")}
    return Object(msgspec.json.encode(body | {"metadata": body["metadata"] | theirs, "spec": before["spec"]}))


def _is_refused(outcomes: Mapping[str, Outcome]) -> bool:
    return Refused in map(type, outcomes.values())


def _refuses(condition: Json, message: str) -> bool:
    return condition.get("reason") == INVALID and str(condition.get("message")).startswith(message)
