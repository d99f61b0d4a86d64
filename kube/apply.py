"""The one door for writes (design.md 3.5, objects.md 11, informers-workqueue.md EXP-1).

What is written is the difference, with the version and the identity it was computed from: when the object changed or
was re-created meanwhile, the server answers Conflict and the decision is taken again on fresh state (F3). Nothing to
change is no request.

What was written is logged here, once: the object, and the first field that changed. Labels and annotations, by which
the operator remembers things, show with -v=4; what a status says is told by whoever decides it.
"""

from collections.abc import Callable, Mapping
from typing import Any

import structlog

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
from ports.observation import is_observing

_log = structlog.get_logger(__name__)

_NAMES = ("namespace", "name")
_ROLLING_UPDATE = "RollingUpdate"
_AT_ONCE_EACH_TIME = (STATEFUL_SETS, JOBS)
"""What is created at once, however often: pods are away without it, or it is made once for each try."""
_WITH_PODS = (DEPLOYMENTS, STATEFUL_SETS)
"""What has a pod template."""
_IDENTITY = "app.kubernetes.io/"
"""Labels by which an object without an owner says whose it is."""
_NO_DRY_RUN = "does not support dry run"
"""What the API server says of a webhook with side effects."""


class ForeignOwner(Exception):
    """Raised when the object to write exists and belongs to others. `owner` is None when it has no controller.

    `wanted_by` is the kind that makes objects of this name. `is_former`: it was made for an object of the same kind and
    name that no longer exists, and will be deleted with that.
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
    """Raised instead of acting for an owner that, read live, is deleted or has been recreated (F4)."""


class OwnerChanged(Exception):
    """Raised instead of creating an object for an owner whose spec, read live, is a newer one (F4, F5)."""


class Applier:
    """Makes the cluster say what is desired, with as little writing as possible."""

    def __init__(self, client: Client, clock: Clock, observes: Callable[[], bool] = is_observing) -> None:
        """`clock` tells when what was undone may be written again (`kube.contests`), `observes` that nothing was."""
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
        """Create `desired`, or patch what differs in the `cached` object; return the object as it is now.

        `applied` is what was written last time, in the shape of `desired`: its fields that are not desired any more are
        removed. Fields that others set survive; an object without a controller whose `app.kubernetes.io/` labels are
        the desired ones is adopted. What the cache does not hold may only be unseen: creating looks live when the
        name is taken (F1). What others undo each time is left out for a while, and `cached` returned; never of a
        StatefulSet, whose pods what was undone might restart. What admission makes of a pod template stays.
        `replaces`: `applied` is what is there, the API server's defaults and all, so that the answer tells nothing of
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
        """Whether others undo what is written to an object: it may differ from what is desired, or soon will."""
        return self._contests.involves(cached)

    def merge(self, resource: Resource, desired: Json) -> Object:
        """Set the fields of an object that nobody has read; for names that tell which object it is, such as by a UID.

        What is merged must be right whatever the object says. Raises NotFound, other ApiErrors, TransportError,
        LeaseExpired.
        """
        meta = desired["metadata"]
        patch = desired | {"metadata": {key: value for key, value in meta.items() if key not in _NAMES}}
        written = self._client.patch(resource, meta["name"], meta.get("namespace", ""), patch)
        _tell(resource, meta["name"], {field: {} for field in patch}, patch)
        return written

    def annotate(self, resource: Resource, cached: Object, annotations: Mapping[str, str | None]) -> Object:
        """Set annotations, None removes; sent even if they are there: it fails where `cached` is an old view.

        Raises Conflict, other ApiErrors, TransportError, LeaseExpired.
        """
        return self._patch(resource, cached, cached.decode(), {"metadata": {"annotations": dict(annotations)}})

    def annotate_alone(self, resource: Resource, cached: Object, annotations: Mapping[str, str | None]) -> bool:
        """As `annotate`, unless admission may change the spec in the course of it; whether it was done.

        A webhook acts on each write, and what it makes of a pod template restarts pods. Raises as `annotate`.
        """
        tried = self.try_out(resource, cached, {"metadata": {"annotations": dict(annotations)}})
        if tried is None or tried.decode().get("spec") != cached.decode().get("spec"):
            return False
        self.annotate(resource, cached, annotations)
        return True

    def try_out(self, resource: Resource, cached: Object, patch: Json) -> Object | None:
        """What a patch would make of an object, as the API server tells; nothing is changed. Raises as `annotate`.

        None where a webhook cannot tell, such as one of Kubernetes 1.21 that never said whether it has side effects.
        """
        meta = cached.metadata
        try:
            return self._client.try_patch(resource, meta.name, meta.namespace, _guarded(patch, cached))
        except BadRequest as error:
            if _NO_DRY_RUN not in error.message:
                raise
            return None

    def add_finalizer(self, resource: Resource, cached: Object, finalizer: str) -> Object:
        """Keep an object, once it is deleted, until `remove_finalizer`; it may be kept already.

        Raises Conflict, other ApiErrors, TransportError, LeaseExpired.
        """
        there = cached.metadata.finalizers
        if finalizer in there:
            return cached
        return self._patch(resource, cached, cached.decode(), {"metadata": {"finalizers": [*there, finalizer]}})

    def remove_finalizer(self, resource: Resource, cached: Object, finalizer: str) -> Object:
        """Let an object go that is deleted; the finalizers of others stay. Raises as `add_finalizer`."""
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
        """Create `desired`, for who must know that it was not there. Raises AlreadyExists, and as `apply`."""
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
        """Send what differs between two statuses, exactly; fields that are gone are removed. None: nothing to send.

        `subresource` says whether status has an endpoint of its own (`has_status_subresource`). Fields that the server
        prunes are sent when they change, and once in a while: `old` is to have them (`status_of`).
        Raises Conflict when the object is not at `resource_version` any more, other ApiErrors, TransportError.
        """
        difference = _difference(old, new) or self._pruned.due(resource, uid)
        if not difference:
            return None
        patch = {"metadata": {"uid": uid, "resourceVersion": resource_version}, "status": difference}
        try:
            answer = self._client.patch(resource, name, namespace, patch, subresource="status" if subresource else "")
        except NotFound:
            # the object is gone, or the subresource is
            self._api_resources.forget(resource)
            raise
        if not subresource and _difference(answer.decode().get("status") or {}, new):
            # a server that has come to know the subresource ignores the status in a plain patch
            self._api_resources.forget(resource)
            if self.has_status_subresource(resource):
                return answer
        self._pruned.note(resource, answer, new)
        return answer

    def status_of(self, resource: Resource, there: Object) -> Json:
        """The status of an object as it was written, also where the server has no room for all of it; a fresh tree."""
        return self._pruned.status_of(resource, there)

    def serves(self, resource: Resource, now: float) -> bool:
        """Whether the server has a resource, `now` in monotonic seconds. Raises ApiError, TransportError."""
        return self._api_resources.serves(resource, now)

    def has_status_subresource(self, resource: Resource) -> bool:
        """Whether the server has `<resource>/status`; asked once. Raises ApiError, TransportError."""
        return self._api_resources.has_subresource(resource, "status")


def is_ours(desired: Json, live: Object) -> bool:
    """Whether `live` is controlled by who controls `desired`, or is an orphan with our labels."""
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
    """Whether a patch changes nothing but labels and annotations."""
    return patch.keys() == {"metadata"} and patch["metadata"].keys() <= {"labels", "annotations"}


def _controller(desired: Json) -> Json | None:
    owners = desired["metadata"].get("ownerReferences") or ()
    return next((owner for owner in owners if owner.get("controller")), None)


def _carries_our_labels(desired: Json, live: Object) -> bool:
    labels = desired["metadata"].get("labels") or {}
    return all(live.metadata.labels.get(k) == v for k, v in labels.items() if k.startswith(_IDENTITY))


def _difference_from(live: Json, desired: Json, applied: Json | None) -> Json | None:
    """The patch that makes a live object say what is desired; None where it does."""
    patch = merge_patch(live, _with_shared_lists(desired, live), applied)
    return _with_consequences(patch, desired) if patch else None


def _with_shared_lists(desired: Json, live: Json) -> Json:
    """`desired` with the owners and finalizers of others, so that a list that is replaced whole keeps them."""
    wanted, there = desired["metadata"], live["metadata"]
    shared: Json = {}
    if ours := wanted.get("ownerReferences"):
        shared["ownerReferences"] = _joined(there.get("ownerReferences") or [], ours, "uid")
    if finalizers := wanted.get("finalizers"):
        shared["finalizers"] = list(dict.fromkeys([*(there.get("finalizers") or ()), *finalizers]))
    return desired | {"metadata": wanted | shared}


def _joined(there: list[Json], ours: list[Json], key: str) -> list[Json]:
    """The items that are there, ours in place of those with the same key or behind them."""
    return list(({item[key]: item for item in there} | {item[key]: item for item in ours}).values())


def _with_consequences(patch: Json, desired: Json) -> Json:
    """`patch`, in which what the API server made of a field of a pod template goes with that field.

    It keeps a service account under an older name, too, and makes the one anew from the other; pods in the network of
    their host get ports of it.
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
    """A Deployment's spec without the parameters of the strategy that another takes the place of."""
    strategy = spec.get("strategy") or {}
    if strategy.get("type", _ROLLING_UPDATE) == _ROLLING_UPDATE:
        return spec
    return spec | {"strategy": strategy | {"rollingUpdate": None}}


def _guarded(patch: Json, live: Object) -> Json:
    """`patch`, valid only for the object and the version it was computed from."""
    preconditions = {"uid": live.metadata.uid, "resourceVersion": live.metadata.resource_version}
    return patch | {"metadata": patch.get("metadata", {}) | preconditions}


def _difference(old: Any, new: Any) -> Json:
    """The merge patch from one tree to another, null meaning absent."""
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
