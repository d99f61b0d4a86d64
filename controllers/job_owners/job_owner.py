"""The context of one sync of a Backup or Restore, and the writes that all steps share."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Generic, Protocol, TypeVar

import structlog

from apis.consent import BY_CONSENT, LOOK_AGAIN, Permission, ReferencePolicy, how_to_consent
from apis.shared import Model
from controllers.job_deletion import JOB_TERMINATING, delete_job, lingering_pod, pod_at_work
from controllers.job_owners.status import (
    COMPLETE,
    FAILED,
    INVALID,
    PRUNE_FAILED,
    RETRY_FAILED,
    with_condition,
    with_words,
)
from controllers.own_write import OwnWrite
from controllers.runtime import Runtime
from kube.actions import Create, Emit, PatchStatus
from kube.errors import ApiError, Forbidden
from kube.events import NORMAL, WARNING
from kube.objects import Json, Object, condition_of, secret_data
from kube.reading import Lister
from kube.resources import JOBS, TIDB_CLUSTERS, Resource
from member.backups.environment import Secrets
from member.backups.pods import ManagerSettings, condition_of_job
from member.outcome import Waiting
from member.polling import time_left

log = structlog.get_logger(__name__)

M = TypeVar("M", bound=Model)

NODE_LOST = "NodeLost"
_WORD_FROM_POD = 60.0
"""Seconds after the end of a Job for which the operator waits for its pod's result to appear in the status."""

_TROUBLE = (FAILED, INVALID, RETRY_FAILED, PRUNE_FAILED)
"""Conditions that are also recorded as a warning event."""


@dataclass(frozen=True, slots=True)
class JobCaches:
    """The caches that a sync reads: `owners` has the custom resources, `jobs` their Jobs."""

    owners: Lister
    jobs: Lister
    tidb_clusters: Lister


class WithCondition(Protocol):
    """Adds a condition to a status: `status.with_condition`, or for a log backup into the status of a sub-command."""

    def __call__(
        self, status: Json, kind: str, now: datetime, reason: str = "", message: str = "", *, is_true: bool = True
    ) -> Json:
        """The status with the condition."""


@dataclass(slots=True)
class JobOwner(Generic[M]):
    """One sync of one object.

    `owner` is the cached object, or what this sync has written since; `model` is the object with its defaults.
    `with_condition` adds the conditions of `say` to its status. `references` is the policy for references into other
    namespaces.
    """

    resource: Resource
    owner: Object
    model: M
    caches: JobCaches
    runtime: Runtime
    settings: ManagerSettings
    own_write: OwnWrite
    with_condition: WithCondition = with_condition
    references: ReferencePolicy = BY_CONSENT
    decided_on: Object = field(init=False)

    def __post_init__(self) -> None:
        """Keep the object that `model` was decoded from: a write may return a newer spec."""
        self.decided_on = self.owner

    @property
    def namespace(self) -> str:
        """The namespace of the object and of all objects created for it."""
        return self.owner.metadata.namespace

    @property
    def name(self) -> str:
        """The name of the object."""
        return self.owner.metadata.name

    @property
    def now(self) -> datetime:
        """The time of the wall clock."""
        return self.runtime.clock.wall()

    @property
    def status(self) -> Json:
        """The status as last written (`Applier.status_of`), as a new tree."""
        return self.runtime.applier.status_of(self.resource, self.owner)

    async def write(self, status: Json) -> None:
        """Write the status if it differs. Raises RequeueError if another client has written since, ApiError, …"""
        written = await PatchStatus(self.resource, self.owner, self.status, status)
        if written is not None:
            self.became(written)

    def became(self, written: Object) -> None:
        """Continue with the object that a write returned."""
        self.owner = written
        self.own_write.remember(written)

    async def say(self, kind: str, reason: str = "", message: str = "", *, is_true: bool = True) -> None:
        """Write a condition. A new condition that reports trouble is also logged and recorded as an event."""
        before = self.status
        after = self.with_condition(before, kind, self.now, reason, message, is_true=is_true)
        if kind in _TROUBLE and is_true and after != before:
            await self.warn(kind, reason, message)
        await self.write(after)

    async def report_trouble(self, before: Json, after: Json) -> None:
        """Log the condition of the phase and record an event, if it is new and reports trouble."""
        kind = after.get("phase")
        if kind not in _TROUBLE or before.get("conditions") == after.get("conditions"):
            return
        condition = condition_of(after["conditions"], kind)
        await self.warn(kind, condition.get("reason") or "", condition.get("message") or "")

    @property
    def is_in_trouble(self) -> bool:
        """True if its phase reports trouble."""
        return self.status.get("phase") in _TROUBLE

    async def warn(self, kind: str, reason: str, message: str) -> None:
        """Log trouble and record a warning event."""
        log.warning("condition", kind=self.resource.kind, phase=kind, reason=reason or kind, message=message)
        await Emit(self.owner, WARNING, reason or kind, message)

    async def note(self, reason: str, message: str) -> None:
        """Log a normal wait and record an event."""
        log.info("waiting", kind=self.resource.kind, reason=reason, message=message)
        await Emit(self.owner, NORMAL, reason, message)

    def cached_job(self, name: str) -> Object | None:
        """The cached Job of this object; None if it does not exist or has another owner."""
        job = self.caches.jobs.get(self.namespace, name)
        return job if job is not None and self.controls(job) else None

    def tidb_cluster(self, namespace: str, name: str) -> Object | Waiting | None:
        """A TidbCluster from the cache, else read live, since a selector may hide it (F1).

        None if it does not exist, or is in another namespace that the operator may not read. A wait if a cluster in
        another namespace does not consent. Raises ApiError, TransportError.
        """
        found = self.caches.tidb_clusters.get(namespace, name) or self._live_cluster(namespace, name)
        if not self.may_refer(found, namespace):
            what = how_to_consent(self.namespace, TIDB_CLUSTERS.kind, namespace, name)
            return Waiting("ReferenceNotAllowed", what, LOOK_AGAIN)
        return found

    def may_refer(self, cluster: Object | None, namespace: str) -> bool:
        """True if this object may refer to a TidbCluster of a namespace; a missing cluster does not consent."""
        return self.references.judge(self.namespace, namespace, cluster) is not Permission.NONE

    def _live_cluster(self, namespace: str, name: str) -> Object | None:
        try:
            return self.runtime.client.find(TIDB_CLUSTERS, name, namespace)
        except Forbidden:
            if namespace == self.namespace:
                raise
            return None

    def live_job(self, name: str) -> Object | None:
        """The Job `name` of any owner, read live. Raises ApiError, TransportError."""
        return self.runtime.client.find(JOBS, name, self.namespace)

    def is_confirmed(self) -> bool:
        """True if the object, read live, still asks for what this sync decides on, so that it may destroy something.

        Raises ApiError, TransportError.
        """
        live = self.runtime.client.find(self.resource, self.name, self.namespace)
        if live is not None and _uid_and_spec(live) == _uid_and_spec(self.decided_on):
            return True
        log.info("nothing is destroyed before the cache shows the current object", kind=self.resource.kind)
        return False

    def outdated(self) -> Waiting | None:
        """The wait for the cache to show what the object asks for now; None if it does. Raises as `is_confirmed`."""
        if self.is_confirmed():
            return None
        message = f"waiting for the operator's cache to show the current {self.resource.kind}"
        return Waiting("CacheOutdated", message, JOB_TERMINATING)

    def has_lost(self, name: str) -> bool:
        """True if a Job of this object is gone, read live if the cache lacks it. Raises ApiError, TransportError."""
        if self.cached_job(name) is not None:
            return False
        live = self.live_job(name)
        return live is None or not self.controls(live)

    def complete_job(self, name: str) -> Json | None:
        """The cached Job of this object if it is Complete, else None."""
        job = self.cached_job(name)
        body: Json | None = job.decode() if job is not None else None
        return body if body is not None and condition_of_job(body, COMPLETE) else None

    def await_result(self, job: Json) -> Waiting | None:
        """The wait for the result of an ended Job to appear in the status; None if it is no longer expected.

        A pod writes its result before it ends. If the status still lacks it, another client has replaced the status.
        """
        ended = condition_of_job(job, COMPLETE) or condition_of_job(job, FAILED)
        rest = time_left(str(ended.get("lastTransitionTime") or ""), _WORD_FROM_POD, self.now)
        message = f"Job {job['metadata']['name']} has ended; waiting for its pod's result to show up in the status"
        return Waiting("ResultPending", message, rest) if rest else None

    async def await_pods(self, name: str) -> Waiting | None:
        """The wait while a pod of a deleted Job still runs. Raises ApiError, TransportError."""
        pod = pod_at_work(self.runtime, self.namespace, name)
        if not pod:
            return None
        await self.report_lost_pod(name)
        return Waiting("JobTerminating", f"waiting for pod {pod} to end, whose Job {name} was deleted", JOB_TERMINATING)

    async def report_lost_pod(self, name: str) -> None:
        """Report in the condition of the phase that a pod of a Job does not end, because its machine may be lost.

        Until the pod has ended, it may still write. Raises ApiError, TransportError.
        """
        now = self.status
        phase = str(now.get("phase") or "")
        condition = condition_of(now.get("conditions") or (), phase)
        if (
            not condition
            or condition.get("reason") == NODE_LOST
            or not (pod := lingering_pod(self.runtime, self.namespace, name))
        ):
            return
        way_out = "if its machine is gone for good, delete the Node object"
        message = f"{pod} does not end, and may still write; {way_out}"
        await self.write(with_words(now, phase, NODE_LOST, message))
        await self.warn(phase, NODE_LOST, message)

    async def look_for(self, name: str) -> Waiting | None:
        """Write Failed if a Job was deleted before it ended, because no result will arrive. v1.6 waits forever.

        A wait while one of its pods may still write a result. Raises ApiError, TransportError.
        """
        if not self.has_lost(name):
            return None
        if wait := await self.await_pods(name):
            return wait
        message = f"Job {name} was deleted before it ended; create another {self.resource.kind} to try again"
        await self.say(FAILED, "JobDeleted", message)
        return None

    def controls(self, child: Object) -> bool:
        """True if this object controls `child`."""
        owner = child.metadata.controller
        return owner is not None and owner.uid == self.owner.metadata.uid

    async def create(self, resource: Resource, desired: Json) -> Object:
        """Create an object, and record an event on success and on refusal. Raises ApiError, TransportError."""
        name = desired["metadata"]["name"]
        what = f"create {resource.kind.lower()} {self.namespace}/{name} for cluster {self.name} {self.resource.kind}"
        try:
            created = await Create(resource, desired)
        except ApiError as error:
            await Emit(self.owner, WARNING, "FailedCreate", f"{what} failed error: {error.message}")
            raise
        await Emit(self.owner, NORMAL, "SuccessfulCreate", f"{what} successful")
        return created

    async def delete_job(self, name: str) -> bool:
        """Delete a Job of this object, pods first; return True if the Job and its pods are gone.

        The Job is read live; a Job of another owner is kept. Raises Conflict, other ApiErrors, TransportError.
        """
        is_gone = await delete_job(self.runtime, self.owner, self.resource, name)
        if not is_gone:
            await self.report_lost_pod(name)
        return is_gone

    def secrets(self, names: list[str]) -> Secrets:
        """Secrets of this namespace, read live; the next change of one enqueues this object.

        Raises ApiError, TransportError.
        """
        return {name: self._secret(name) for name in names}

    def _secret(self, name: str) -> Mapping[str, str] | None:
        found = self.runtime.secrets.find((self.resource, self.owner.key), name, self.namespace)
        if found is None:
            return None
        return {key: value.decode("utf-8", "replace") for key, value in secret_data(found, keeps_empty=True).items()}


def _uid_and_spec(found: Object) -> tuple[str, object]:
    return found.metadata.uid, found.decode().get("spec")
