"""Actions of other clients on objects (change, delete, create), and the pods that they restart."""

from collections import Counter

from kube.client import Client
from kube.errors import AlreadyExists, Invalid, NotFound
from kube.objects import Json
from kube.resources import (
    ADVANCED_STATEFUL_SETS,
    BACKUP_SCHEDULES,
    BACKUPS,
    COMPACT_BACKUPS,
    CONFIG_MAPS,
    DEPLOYMENTS,
    JOBS,
    NODES,
    PERSISTENT_VOLUME_CLAIMS,
    PERSISTENT_VOLUMES,
    PODS,
    REPLICA_SETS,
    RESTORES,
    ROLE_BINDINGS,
    ROLES,
    SECRETS,
    SERVICE_ACCOUNTS,
    SERVICES,
    STATEFUL_SETS,
    TIDB_CLUSTERS,
    Resource,
)
from member.objects.stateful_set import is_rolling
from rehearsal.recording import WORKLOADS
from sandbox.owners import controller_reference
from simulate.engine import plan
from simulate.engine.other_kinds import OTHER_KINDS
from simulate.engine.state import State, is_outdated, kept_ordinals, partition
from simulate.engine.worlds import NAMESPACE

_NAMED = {
    str(resource): resource
    for resource in (
        *OTHER_KINDS,
        ADVANCED_STATEFUL_SETS,
        BACKUPS,
        BACKUP_SCHEDULES,
        COMPACT_BACKUPS,
        CONFIG_MAPS,
        DEPLOYMENTS,
        JOBS,
        NODES,
        PERSISTENT_VOLUMES,
        PERSISTENT_VOLUME_CLAIMS,
        PODS,
        RESTORES,
        ROLES,
        ROLE_BINDINGS,
        SECRETS,
        SERVICES,
        SERVICE_ACCOUNTS,
        STATEFUL_SETS,
        TIDB_CLUSTERS,
    )
}


_OWNERS = (TIDB_CLUSTERS, *WORKLOADS, DEPLOYMENTS, REPLICA_SETS)


def named(text: str) -> tuple[Resource, str]:
    """The resource and the name in `plural.group/name`. Raises InvalidPlan."""
    plural, _, name = text.partition("/")
    if plural not in _NAMED or not name:
        raise plan.InvalidPlan(f"{text!r} is no `plural.group/name` of {', '.join(sorted(_NAMED))}")
    return _NAMED[plural], name


def namespace_of(resource: Resource) -> str:
    """The namespace of a plan's objects."""
    return NAMESPACE if resource.namespaced else ""


def key_of(resource: Resource, name: str) -> str:
    """The storage key of a plan's object."""
    namespace = namespace_of(resource)
    return f"{namespace}/{name}" if namespace else name


class Hands:
    """The actions in one plan."""

    def __init__(self, client: Client, state: State) -> None:
        self._client = client
        self._state = state
        self.taken: Counter[str] = Counter()
        """How often each pod must be recreated because of these actions, by name."""
        self._deleted: dict[str, Json] = {}
        """Deleted objects that a later event may restore, by `plural.group/name`."""
        self.said = ""
        """The version of the TidbCluster that another client wrote last: its status is not the operator's."""

    def act(self, event: plan.Hand) -> str:
        """Carry out an event; return a line for the trace. Raises ApiError, TransportError if a retry may help."""
        resource, name = named(event.target)
        try:
            match event:
                case plan.Foreign():
                    self._change(resource, name, event)
                case plan.Deleted():
                    self._delete(resource, name, event)
                case plan.Created():
                    self._create(resource, name, event)
        except (Invalid, NotFound) as error:
            return f"gives up: {error}"
        except AlreadyExists:
            there = self._state.get(resource, name)
            if there is None or "deletionTimestamp" not in there["metadata"]:
                return f"finds {resource} {name} there"
            raise
        return ""

    def _change(self, resource: Resource, name: str, event: plan.Foreign) -> None:
        taken = self._restarted_by(name, event.patch.get("spec") or {}) if resource in WORKLOADS else []
        if self._is_given_away(event.patch):
            # Kubernetes treats it as garbage
            taken += self._ended_with(resource, name, alone=False)
        done = self._client.patch(resource, name, namespace_of(resource), event.patch, subresource=event.subresource)
        if resource == TIDB_CLUSTERS:
            self.said = done.metadata.resource_version
        self.taken.update(taken)

    def _delete(self, resource: Resource, name: str, event: plan.Deleted) -> None:
        if there := self._state.get(resource, name):
            self._deleted[event.target] = _as_sent(there)
        taken = self._ended_with(resource, name, alone=event.propagation == "Orphan")
        self._client.delete(resource, name, namespace_of(resource), propagation=event.propagation)
        self.taken.update(taken)

    def _create(self, resource: Resource, name: str, event: plan.Created) -> None:
        given = event.body or self._deleted.get(event.target, {})
        meta: Json = {**(given.get("metadata") or {}), "name": name}
        if event.owner:
            kind, owner = named(event.owner)
            found = self._client.get(kind, owner, namespace_of(kind)).decode()
            meta["ownerReferences"] = [controller_reference(found)]
        body = {"apiVersion": resource.api_version, "kind": resource.kind, **given, "metadata": meta}
        self._client.create(resource, body, namespace_of(resource))

    def _is_given_away(self, patch: Json) -> bool:
        """True if a patch gives the object an owner that does not exist."""
        owners = (patch.get("metadata") or {}).get("ownerReferences") or ()
        there = {
            (each["metadata"]["name"], each["metadata"]["uid"]) for kind in _OWNERS for each in self._state.all(kind)
        }
        return any((owner["name"], owner["uid"]) not in there for owner in owners)

    def _ended_with(self, resource: Resource, name: str, *, alone: bool) -> list[str]:
        """The pods that are deleted with an object: itself and, unless it goes `alone`, those that it owns."""
        there = self._state.get(resource, name)
        gone = {there["metadata"]["uid"]} if there else set()
        pods = self._state.all(PODS)
        sets = [tree for kind in WORKLOADS for tree in self._state.all(kind)]
        for tree in () if alone else (*sets, *pods):
            if gone.intersection(owner["uid"] for owner in tree["metadata"].get("ownerReferences") or ()):
                gone.add(tree["metadata"]["uid"])
        return [pod["metadata"]["name"] for pod in pods if pod["metadata"]["uid"] in gone]

    def _restarted_by(self, name: str, spec: Json) -> list[str]:
        """The pods that Kubernetes restarts if the spec of a StatefulSet changes like this.

        Those that are scaled in and, during a rolling update, those that it has reached: once for another template, and
        once more for the right one.
        """
        live = self._state.workload(name)
        if live is None:
            return []
        pods = {pod["metadata"]["name"]: pod for pod in self._state.all(PODS)}
        there = kept_ordinals(live)
        # a missing value gets the default
        left = (spec["replicas"] if spec["replicas"] is not None else 1) if "replicas" in spec else len(there)
        taken = [f"{name}-{each}" for each in there if each not in kept_ordinals(live | {"spec": {"replicas": left}})]
        outdated = any(f"{name}-{each}" in pods and is_outdated(live, pods[f"{name}-{each}"]) for each in there)
        # the last recreated pod may be missing
        rolling = outdated or is_rolling(live)
        if "template" in spec and rolling:
            reached = partition(live["spec"].get("updateStrategy") or {})
            taken += [f"{name}-{each}" for each in there if each >= reached] * 2
        return taken


def _as_sent(tree: Json) -> Json:
    """An object in the form in which it can be created, without the server's fields."""
    meta = {key: value for key, value in tree["metadata"].items() if key in ("labels", "annotations")}
    return {key: value for key, value in tree.items() if key != "status"} | {"metadata": meta}
