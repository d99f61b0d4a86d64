"""One sync of a Backup or Restore: from the key to its next step (backup.md 3.4, 3.5, 4.3, 4.4)."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Generic

from apis.decoding import decode
from apis.problem import InvalidField
from controllers.controller import Result
from controllers.errors import RequeueError
from controllers.job_owners import status
from controllers.job_owners.job_owner import JobCaches, JobOwner, M, Merge
from controllers.job_owners.phase_log import PhaseLog
from controllers.key_locks import RETRY_AFTER
from controllers.own_write import OwnWrite
from controllers.runtime import Runtime
from controllers.stages import EXPECTED
from controllers.status_patch import patch_status
from kube.events import WARNING
from kube.objects import Object
from kube.resources import Resource
from member.backups.pods import ManagerSettings


@dataclass(frozen=True, kw_only=True)
class JobOwnerKind(Generic[M]):
    """A kind whose objects Jobs carry out: its model, its defaults, and the next step of one, deleted or not.

    `merge` writes conditions into its status, `forget` is told the key of one that is gone, or another
    process's.
    """

    resource: Resource
    model: type[M]
    defaults: Callable[[M], M]
    step: Callable[[JobOwner[M]], Result | None]
    merge: Merge = status.with_condition
    forget: Callable[[str], None] = lambda _key: None


class JobOwnerSync(Generic[M]):
    """Carries the objects of a kind out. Safe for use by many workers, one per key."""

    def __init__(self, kind: JobOwnerKind[M], caches: JobCaches, runtime: Runtime, settings: ManagerSettings) -> None:
        self._kind = kind
        self._caches = caches
        self._runtime = runtime
        self._settings = settings
        self._writes = runtime.memory(OwnWrite, kind.resource)
        self._phases = runtime.memory(PhaseLog, kind.resource)

    def __call__(self, key: str) -> Result | None:
        """Sync one object. Raises RequeueError for what is retried with back-off."""
        with self._runtime.key_locks.try_lock(self._kind.resource, key) as mine:
            if not mine:
                return Result(requeue_after=RETRY_AFTER, tried=False)
            namespace, _, name = key.rpartition("/")
            is_ours = self._runtime.key_locks.owns(self._kind.resource, key)
            owner = self._caches.owners.get(namespace, name) if is_ours else None
            with self._runtime.observed.sync_of(self._kind.resource, key, owner):
                return self._sync_cached(key, owner)

    def _sync_cached(self, key: str, owner: Object | None) -> Result | None:
        if owner is None:
            self._writes.forget(key)
            self._phases.forget(key)
            self._kind.forget(key)
            return None
        look = partial(self._runtime.client.find, self._kind.resource, owner.metadata.name, owner.metadata.namespace)
        if wait := self._writes.of(key).wait(owner, self._runtime.clock, look):
            return Result(requeue_after=wait, tried=False)
        try:
            return self._sync(key, owner)
        except EXPECTED as error:
            raise RequeueError(str(error), untold=True) from error

    def _sync(self, key: str, owner: Object) -> Result | None:
        kind, phases, clock = self._kind, self._phases.of(key), self._runtime.clock
        phases.look(owner, clock.now())
        try:
            model = kind.defaults(decode(owner.decode(), kind.model))
        except InvalidField as error:
            before = self._runtime.applier.status_of(kind.resource, owner)
            after = kind.merge(before, status.INVALID, clock.wall(), "InvalidSpec", str(error))
            if after != before:
                self._runtime.recorder.event(owner, WARNING, "InvalidSpec", str(error))
            patch_status(self._runtime.applier, kind.resource, owner, before, after)
            return None
        writes = self._writes.of(key)
        ctx = JobOwner(kind.resource, owner, model, self._caches, self._runtime, self._settings, writes, kind.merge)
        try:
            return kind.step(ctx)
        finally:
            if ctx.is_in_trouble:
                phases.look(ctx.owner, clock.now(), is_told=True)
