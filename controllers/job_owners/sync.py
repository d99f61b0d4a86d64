"""One sync of a Backup or Restore: from the key to its next step (backup.md 3.4, 3.5, 4.3, 4.4).

A step returns an outcome. Only this frame turns outcomes into retries, so that each retry has a reason in the status.
"""

import contextlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Generic

import structlog

from apis.consent import BY_CONSENT, ReferencePolicy
from apis.decoding import decode
from apis.problem import InvalidField
from controllers.controller import Result
from controllers.database_actions import executor_of
from controllers.errors import RequeueError
from controllers.frame import BUSY, turn_of, wait_for_cache
from controllers.job_owners import status
from controllers.job_owners.job_owner import JobCaches, JobOwner, M, WithCondition
from controllers.outcomes import result_of, sooner
from controllers.own_write import OwnWrite
from controllers.runtime import Runtime
from controllers.stages import EXPECTED, Stage, attempt
from controllers.status_patch import patch_status
from controllers.unheeded import with_ignored_fields
from controllers.unknown_fields import UnknownFields
from controllers.wait_log import WaitLog
from kube.actions import Decision, Emit
from kube.events import NORMAL, WARNING
from kube.objects import Json, Object, condition_of
from kube.resources import Resource
from member.backups.pods import ManagerSettings
from member.outcome import Done, Failed, NotDone, Outcome

_BRIEF = 5.0
"""Seconds after which a wait is written into the status: most end before that and cost no write."""

_STEP = "step"
"""The name of the only stage, in the log and in the metrics of defects."""
_log = structlog.get_logger(__name__)


@dataclass(frozen=True, kw_only=True)
class JobOwnerKind(Generic[M]):
    """A kind whose work Jobs do.

    `step` takes the next step of an object, deleted or not, and returns its outcome; None if nothing is left to do
    until an event. `with_condition` adds conditions to the status, `with_wait` adds a wait. `forget` is called with the
    key of an object that is gone or belongs to another process.
    """

    resource: Resource
    model: type[M]
    defaults: Callable[[M], M]
    step: Callable[[JobOwner[M]], Decision[Outcome | None]]
    with_condition: WithCondition = status.with_condition
    with_wait: Callable[[Json, NotDone | None, datetime], Json] = status.with_wait
    forget: Callable[[str], None] = lambda _key: None


class JobOwnerSync(Generic[M]):
    """Syncs the objects of a kind. Thread-safe, with one worker at a time per key."""

    def __init__(
        self,
        kind: JobOwnerKind[M],
        caches: JobCaches,
        runtime: Runtime,
        settings: ManagerSettings,
        references: ReferencePolicy = BY_CONSENT,
    ) -> None:
        """`references`: see `JobOwner`."""
        self._kind = kind
        self._references = references
        self._caches = caches
        self._runtime = runtime
        self._settings = settings
        self._executor = executor_of(runtime)
        self._memory = runtime.memory(lambda: JobOwnerMemory(Waits(WaitLog(runtime.clock))), kind.resource)

    def __call__(self, key: str) -> Result | None:
        """Sync one object. Raises RequeueError if it must be retried with back-off."""
        with turn_of(self._runtime, self._kind.resource, key, self._cached) as turn:
            return self._sync_cached(key, turn.owner) if turn else BUSY

    def _cached(self, key: str) -> Object | None:
        namespace, _, name = key.rpartition("/")
        return self._caches.owners.get(namespace, name)

    def _sync_cached(self, key: str, owner: Object | None) -> Result | None:
        if owner is None:
            self._memory.forget(key)
            self._runtime.secrets.forget((self._kind.resource, key))
            self._kind.forget(key)
            return None
        memory = self._memory.of(key)
        return wait_for_cache(self._runtime, self._kind.resource, owner, memory.own_write) or self._sync(owner, memory)

    def _sync(self, owner: Object, memory: "JobOwnerMemory") -> Result | None:
        kind, clock = self._kind, self._runtime.clock
        memory.phases.look(owner, clock.now())
        try:
            model = kind.defaults(decode(owner.decode(), kind.model))
        except InvalidField as error:
            self._refuse(owner, str(error))
            return None
        ctx = JobOwner(
            kind.resource,
            owner,
            model,
            self._caches,
            self._runtime,
            self._settings,
            memory.own_write,
            kind.with_condition,
            self._references,
        )
        self._report_unheeded_fields(ctx, memory.unknown_fields)
        try:
            outcome = attempt(Stage(_STEP, self._step), ctx, self._executor, self._runtime.on_defect)
        finally:
            if ctx.is_in_trouble:
                memory.phases.look(ctx.owner, clock.now(), is_logged=True)
        return self._retry(ctx, outcome, memory.waits)

    async def _step(self, ctx: JobOwner[M]) -> Outcome:
        return await self._kind.step(ctx) or Done()

    def _refuse(self, owner: Object, message: str) -> None:
        """Write the condition Invalid for a spec that cannot be decoded, and record an event if it is new."""
        before = self._runtime.applier.status_of(self._kind.resource, owner)
        after = self._kind.with_condition(before, status.INVALID, self._runtime.clock.wall(), "InvalidSpec", message)
        if after != before:
            self._runtime.recorder.event(owner, WARNING, "InvalidSpec", message)
        patch_status(self._runtime.applier, self._kind.resource, owner, before, after)

    def _report_unheeded_fields(self, ctx: JobOwner[M], unknown: UnknownFields) -> None:
        """Write the unknown fields of the spec, and those without effect, into the status, if they have changed."""
        if ctx.owner.metadata.deletion_timestamp:
            return
        unknown.judge(ctx.owner, self._kind.model)
        status = ctx.status
        before: Sequence[Json] = status.get("conditions") or []
        recorder = self._runtime.recorder
        after = unknown.reported(ctx.owner, before, ctx.now, recorder)
        after = with_ignored_fields(ctx.owner, after, ctx.now, recorder)
        if after != before:
            with contextlib.suppress(*EXPECTED, RequeueError):  # the next sync writes it
                self._executor.conclude(ctx.write(status | {"conditions": list(after)}))

    def _retry(self, ctx: JobOwner[M], outcome: Outcome, waits: "Waits") -> Result | None:
        """Record a wait, and return the time of the next sync. Raises RequeueError for a failure."""
        unfinished = None if isinstance(outcome, Done) else outcome
        left = waits.look(unfinished, self._runtime.clock.now())
        if not left:
            wait = None if unfinished is None or status.is_reported(ctx.status, unfinished) else unfinished
            waits.log.note({_STEP: wait or Done()})
            with contextlib.suppress(*EXPECTED, RequeueError):  # the next try records it
                self._executor.conclude(self._record(ctx, wait))
        return sooner(result_of({_STEP: outcome}), left)

    async def _record(self, ctx: JobOwner[M], wait: NotDone | None) -> None:
        """Write the wait into the status if it has changed, with an event for each new reason."""
        if ctx.owner.metadata.deletion_timestamp and not ctx.owner.metadata.finalizers:
            return  # its finalizers are gone, so Kubernetes deletes it
        before = ctx.status
        after = self._kind.with_wait(before, wait, ctx.now)
        if after == before:
            return
        await ctx.write(after)
        recorded = condition_of(before.get("conditions") or (), status.WAITING)
        if wait is not None and (recorded.get("status"), recorded.get("reason")) != ("True", wait.reason):
            kind = WARNING if isinstance(wait, Failed) else NORMAL
            await Emit(ctx.owner, kind, wait.reason, wait.message)


@dataclass(slots=True)
class Waits:
    """The wait of one object: its reason, its beginning in monotonic seconds, and its log."""

    log: WaitLog
    reason: str = ""
    since: float = 0.0

    def look(self, wait: NotDone | None, now: float) -> float:
        """Note the present wait; return the seconds until it must be recorded, 0 for now or if there is none."""
        reason = wait.reason if wait else ""
        if reason and not self.reason:
            self.since = now
        self.reason = reason
        return max(self.since + _BRIEF - now, 0.0) if reason else 0.0


@dataclass(slots=True)
class PhaseLog:
    """Log lines about the phases of one object: each phase once, with the duration of the phase before.

    Pods write phases as well, so each sync reads the phase. The phase at the start of the process and the first phase
    of a Job are not logged. Trouble that the operator finds is logged elsewhere, with its cause.
    """

    phase: str | None = None
    since: float = 0.0

    def look(self, owner: Object, now: float, *, is_logged: bool = False) -> None:
        """Note the phase; log it if it has changed, unless it `is_logged` elsewhere."""
        phase = (owner.decode().get("status") or {}).get("phase") or ""
        if phase == self.phase:
            return
        if self.phase and not is_logged:
            seconds = round(now - self.since, 1)
            _log.info("phase changed", kind=owner.kind, phase=phase, before=self.phase, seconds=seconds)
        self.phase, self.since = phase, now


@dataclass(slots=True)
class JobOwnerMemory:
    """The memory of one object. After a restart of the process, at most a log line or a live read is repeated."""

    waits: Waits
    phases: PhaseLog = field(default_factory=PhaseLog)
    own_write: OwnWrite = field(default_factory=OwnWrite)
    unknown_fields: UnknownFields = field(default_factory=UnknownFields)
