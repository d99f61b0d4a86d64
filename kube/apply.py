"""The one place that writes objects (design.md 3.5, objects.md 11, informers-workqueue.md EXP-1).

A write sends only the difference, with the version and the UID that it was computed from: if the object has changed or
been recreated, the server answers Conflict, and the caller decides again on fresh state (F3). Without a difference
there is no request.

This module logs each write once: the object, and the first field that changed. Labels and annotations, which serve as
the operator's memory, appear with -v=4; a change of status is logged where it is decided.
"""

from collections.abc import Callable, Mapping
from typing import Any

from kube.admitted import Admitted
from kube.api_resources import ApiResources
from kube.client import Client
from kube.contests import Contests
from kube.errors import AlreadyExists, BadRequest, NotFound
from kube.field_change import first_patched
from kube.objects import Json, Object, OwnerReference
from kube.pruned import Pruned
from kube.resources import DEPLOYMENTS, JOBS, STATEFUL_SETS, Resource
from kube.semantic import merge_patch
from ports.clock import Clock
from ports.lazy_log import get_logger
from ports.observation import is_observing

_log = get_logger(__name__)

_NAMES = ("namespace", "name")
_ROLLING_UPDATE = "RollingUpdate"
_AT_ONCE_EACH_TIME = (STATEFUL_SETS, JOBS)
"""Resources that are created without the pause of a contest: pods depend on them, or each attempt has one
of its own.
"""
_WITH_PODS = (DEPLOYMENTS, STATEFUL_SETS)
"""Resources with a pod template."""
_IDENTITY = "app.kubernetes.io/"
"""The prefix of the labels that identify an object without an owner."""
_NO_DRY_RUN = "does not support dry run"
"""The API server's message about a webhook with side effects."""


class ForeignOwner(Exception):
    """Raised when the object to write belongs to another owner. `owner` is None if it has no controller.

    `wanted_by` is the kind that creates objects with this name. `is_former`: its owner had the same kind and name but
    has been deleted, and Kubernetes will delete the object.
    """

    def __init__(
        self, resource: Resource, key: str, owner: OwnerReference | None, wanted_by: str, *, is_former: bool = False
    ) -> None:
        whose = f"is controlled by {owner.kind} {owner.name} (uid {owner.uid})" if owner else "is not labelled as ours"
        way_out = f"delete or rename it, or rename the {wanted_by}"
        if is_former:
            way_out = "that one was deleted; waiting for Kubernetes to delete what it has left"
        super().__init__(f"{resource} {key} exists and {whose}; {way_out}")
        self.resource = resource
        self.key = key
        self.owner = owner
        self.is_former = is_former


class OwnerGone(Exception):
    """Raised instead of acting for an owner that, read live, has been deleted or recreated (F4)."""


class OwnerChanged(Exception):
    """Raised instead of creating an object for an owner whose spec, read live, is newer (F4, F5)."""


class Applier:
    """Brings objects to their desired state with as few writes as possible."""

    def __init__(self, client: Client, clock: Clock, observes: Callable[[], bool] = is_observing) -> None:
        """`clock` measures the pauses between contested writes (`kube.contests`); `observes` returns True if writes are
        not sent.
        """
        self._client = client
        self._contests = Contests(clock, observes)
        self._admitted = Admitted()
        self._pruned = Pruned(clock)
        self._api_resources = ApiResources(client)

    def apply(
        self,
        resource: Resource,
        desired: Json,
        cached: Object | None,
        *,
        applied: Json | None = None,
        replaces: bool = False,
    ) -> Object:
        """Create `desired`, or patch the difference to the `cached` object; return the current object.

        `applied` is what was last written, in the shape of `desired`: its fields that are no longer desired are
        removed. Fields of other clients survive. An object without a controller is adopted if it has the desired
        `app.kubernetes.io/` labels. An object missing from the cache may exist: if the name is taken, it is read live
        (F1).

        A difference that another client undoes each time is not written for a while, and `cached` is returned; except
        for a StatefulSet, whose pods the undone change might restart. Admission's changes to a pod template stay.
        `replaces` means that `applied` is the live object with the server's defaults, so its answer says nothing about
        admission.

        Raises ForeignOwner, DeletedEachTime, Conflict (decide again) and other ApiErrors, TransportError, LeaseExpired.
        """
        meta = desired["metadata"]
        if cached is None:
            try:
                return self.create(resource, desired)
            except AlreadyExists:
                cached = self._client.get(resource, meta["name"], meta.get("namespace", ""))
        require_ours(resource, desired, cached)
        live = cached.decode()
        patch = _difference_from(live, desired, applied)
        if patch is None:
            self._contests.agreed(cached)
            return cached
        if resource in _WITH_PODS and self._admitted.holds(cached, patch):
            return cached
        if resource != STATEFUL_SETS and not self._contests.allows(resource, cached, patch):
            return cached
        written = self._patch(resource, cached, live, patch)
        self._contests.wrote(cached, patch)
        if resource in _WITH_PODS and not replaces:
            self._admitted.note(written, _difference_from(written.decode(), desired, applied))
        return written

    def is_contested(self, cached: Object) -> bool:
        """True if other clients undo writes to an object: it may differ from the desired state, now or soon."""
        return self._contests.involves(cached)

    def merge(self, resource: Resource, desired: Json) -> Object:
        """Set fields of an object that nothing has read; for names that identify the object, e.g. by a UID.

        The fields must be right whatever the object contains. Raises NotFound, other ApiErrors, TransportError,
        LeaseExpired.
        """
        meta = desired["metadata"]
        patch = desired | {"metadata": {key: value for key, value in meta.items() if key not in _NAMES}}
        written = self._client.patch(resource, meta["name"], meta.get("namespace", ""), patch)
        _tell(resource, meta["name"], {field: {} for field in patch}, patch)
        return written

    def annotate(self, resource: Resource, cached: Object, annotations: Mapping[str, str | None]) -> Object:
        """Set annotations (None removes one). Always sends a request, which fails if `cached` is outdated.

        Raises Conflict, other ApiErrors, TransportError, LeaseExpired.
        """
        return self._patch(resource, cached, cached.decode(), {"metadata": {"annotations": dict(annotations)}})

    def annotate_alone(self, resource: Resource, cached: Object, annotations: Mapping[str, str | None]) -> bool:
        """Set annotations unless admission might change the spec on the way; True if they were set.

        A webhook acts on each write, and a changed pod template restarts pods. Raises like `annotate`.
        """
        tried = self.try_out(resource, cached, {"metadata": {"annotations": dict(annotations)}})
        if tried is None or tried.decode().get("spec") != cached.decode().get("spec"):
            return False
        self.annotate(resource, cached, annotations)
        return True

    def try_out(self, resource: Resource, cached: Object, patch: Json) -> Object | None:
        """The object that a patch would produce, according to the API server; changes nothing. Raises like `annotate`.

        None if a webhook does not support dry runs, e.g. one from Kubernetes 1.21 that declares no side effects.
        """
        meta = cached.metadata
        try:
            return self._client.try_patch(resource, meta.name, meta.namespace, _guarded(patch, cached))
        except BadRequest as error:
            if _NO_DRY_RUN not in error.message:
                raise
            return None

    def add_finalizer(self, resource: Resource, cached: Object, finalizer: str) -> Object:
        """Add a finalizer, which keeps a deleted object until `remove_finalizer`. Idempotent.

        Raises Conflict, other ApiErrors, TransportError, LeaseExpired.
        """
        there = cached.metadata.finalizers
        if finalizer in there:
            return cached
        return self._patch(resource, cached, cached.decode(), {"metadata": {"finalizers": [*there, finalizer]}})

    def remove_finalizer(self, resource: Resource, cached: Object, finalizer: str) -> Object:
        """Remove the operator's finalizer from a deleted object; other finalizers stay. Raises like `add_finalizer`."""
        left = [each for each in cached.metadata.finalizers if each != finalizer]
        if len(left) == len(cached.metadata.finalizers):
            return cached
        return self._patch(resource, cached, cached.decode(), {"metadata": {"finalizers": left}})

    def _patch(self, resource: Resource, cached: Object, live: Json, patch: Json) -> Object:
        meta = cached.metadata
        written = self._client.patch(resource, meta.name, meta.namespace, _guarded(patch, cached))
        _tell(resource, meta.name, live, patch)
        return written

    def create(self, resource: Resource, desired: Json) -> Object:
        """Create `desired`, for callers that must know that it is new. Raises AlreadyExists, and as `apply`."""
        if resource not in _AT_ONCE_EACH_TIME:
            self._contests.require_creation(resource, desired)
        created = self._client.create(resource, desired, desired["metadata"].get("namespace", ""))
        self._contests.created(resource, desired)
        _log.info("object created", kind=resource.kind, name=desired["metadata"]["name"])
        return created

    def patch_status(
        self,
        resource: Resource,
        name: str,
        namespace: str,
        *,
        uid: str,
        resource_version: str,
        old: Json,
        new: Json,
        subresource: bool,
    ) -> Object | None:
        """Send exactly the difference between two statuses; None if there is none. Fields that vanished are removed.

        `subresource` is True if the status has an endpoint of its own (`has_status_subresource`). Fields that the
        server prunes are sent when they change, and periodically; `old` should include them (`status_of`). Raises
        Conflict if the object is no longer at `resource_version`, other ApiErrors, TransportError.
        """
        difference = _difference(old, new) or self._pruned.due(resource, uid)
        if not difference:
            return None
        patch = {"metadata": {"uid": uid, "resourceVersion": resource_version}, "status": difference}
        try:
            answer = self._client.patch(resource, name, namespace, patch, subresource="status" if subresource else "")
        except NotFound:
            # either the object is gone or the subresource is
            self._api_resources.forget(resource)
            raise
        if not subresource and _difference(answer.decode().get("status") or {}, new):
            # a server that now has the subresource ignores a status in a plain patch
            self._api_resources.forget(resource)
            if self.has_status_subresource(resource):
                return answer
        self._pruned.note(resource, answer, new)
        return answer

    def status_of(self, resource: Resource, there: Object) -> Json:
        """The status as it was written, including fields that the server prunes; a fresh tree."""
        return self._pruned.status_of(resource, there)

    def serves(self, resource: Resource, now: float) -> bool:
        """True if the server has a resource; `now` is in monotonic seconds. Raises ApiError, TransportError."""
        return self._api_resources.serves(resource, now)

    def ever_serves(self, resource: Resource) -> bool:
        """Like `serves`, for what a cluster has from its start or never, e.g. OpenShift's groups; read once."""
        return self._api_resources.serves(resource, 0.0)

    def has_status_subresource(self, resource: Resource) -> bool:
        """True if the server has `<resource>/status`; read once. Raises ApiError, TransportError."""
        return self._api_resources.has_subresource(resource, "status")


def is_ours(desired: Json, live: Object) -> bool:
    """True if `live` has the controller of `desired`, or has no controller but the operator's labels."""
    wanted = _controller(desired)
    owner = live.metadata.controller
    if wanted is None:
        return True
    return _carries_our_labels(desired, live) if owner is None else owner.uid == wanted["uid"]


def require_ours(resource: Resource, desired: Json, live: Object) -> None:
    """Raise ForeignOwner unless `is_ours`."""
    wanted, owner = _controller(desired), live.metadata.controller
    if wanted is None or is_ours(desired, live):
        return
    is_former = owner is not None and (owner.kind, owner.name) == (wanted["kind"], wanted["name"])
    raise ForeignOwner(resource, live.key, owner, wanted["kind"], is_former=is_former)


def _tell(resource: Resource, name: str, live: Json, patch: Json) -> None:
    log = _log.debug if _is_bookkeeping(patch) else _log.info
    log("object patched", kind=resource.kind, name=name, change=str(first_patched(live, patch)))


def _is_bookkeeping(patch: Json) -> bool:
    """True if a patch changes only labels and annotations."""
    return patch.keys() == {"metadata"} and patch["metadata"].keys() <= {"labels", "annotations"}


def _controller(desired: Json) -> Json | None:
    owners = desired["metadata"].get("ownerReferences") or ()
    return next((owner for owner in owners if owner.get("controller")), None)


def _carries_our_labels(desired: Json, live: Object) -> bool:
    labels = desired["metadata"].get("labels") or {}
    return all(live.metadata.labels.get(k) == v for k, v in labels.items() if k.startswith(_IDENTITY))


def _difference_from(live: Json, desired: Json, applied: Json | None) -> Json | None:
    """The patch from a live object to the desired one; None if they agree."""
    patch = merge_patch(live, _with_shared_lists(desired, live), applied)
    return _with_consequences(patch, desired) if patch else None


def _with_shared_lists(desired: Json, live: Json) -> Json:
    """`desired` with other clients' owners and finalizers, because a patch replaces these lists whole."""
    wanted, there = desired["metadata"], live["metadata"]
    shared: Json = {}
    if ours := wanted.get("ownerReferences"):
        shared["ownerReferences"] = _joined(there.get("ownerReferences") or [], ours, "uid")
    if finalizers := wanted.get("finalizers"):
        shared["finalizers"] = list(dict.fromkeys([*(there.get("finalizers") or ()), *finalizers]))
    return desired | {"metadata": wanted | shared}


def _joined(there: list[Json], ours: list[Json], key: str) -> list[Json]:
    """The live items, in which the operator's items replace those with the same key or follow at the end."""
    return list(({item[key]: item for item in there} | {item[key]: item for item in ours}).values())


def _with_consequences(patch: Json, desired: Json) -> Json:
    """`patch`, extended by the fields that the API server derives from the patched fields of a pod template.

    The server keeps the service account under an older name as well and restores one from the other; pods on the host's
    network get host ports.
    """
    spec = _with_one_strategy(patch.get("spec") or {})
    template = spec.get("template") or {}
    pod = template.get("spec") or {}
    more: Json = {}
    if pod.get("serviceAccountName", "") is None:
        more["serviceAccount"] = None
    if "hostNetwork" in pod and not pod["hostNetwork"]:
        wanted = desired["spec"]["template"]["spec"]
        more |= {key: wanted[key] for key in ("containers", "initContainers") if key in wanted}
    if more:
        spec = spec | {"template": template | {"spec": pod | more}}
    return patch | {"spec": spec} if spec else patch


def _with_one_strategy(spec: Json) -> Json:
    """A Deployment's spec without the parameters of a strategy that another strategy replaces."""
    strategy = spec.get("strategy") or {}
    if strategy.get("type", _ROLLING_UPDATE) == _ROLLING_UPDATE:
        return spec
    return spec | {"strategy": strategy | {"rollingUpdate": None}}


def _guarded(patch: Json, live: Object) -> Json:
    """`patch` with preconditions: the object and the version that it was computed from."""
    preconditions = {"uid": live.metadata.uid, "resourceVersion": live.metadata.resource_version}
    return patch | {"metadata": patch.get("metadata", {}) | preconditions}


def _difference(old: Any, new: Any) -> Json:
    """The merge patch from one tree to another, with null for absent."""
    patch: Json = {}
    for key in old | new:
        before, after = old.get(key), new.get(key)
        if before == after:
            continue
        if isinstance(before, dict) and isinstance(after, dict):
            if inner := _difference(before, after):
                patch[key] = inner
        else:
            patch[key] = after
    return patch
