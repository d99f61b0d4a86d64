"""All facts for the diagnosis of one cluster and its surroundings, read once. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import cached_property

from apis.cluster import Cluster
from apis.cluster_kinds import CLUSTER_MODELS
from apis.components import TIDB_CLUSTER, component_names, component_type, component_types
from apis.decoding import InvalidField, decode
from apis.defaulting import with_defaults
from apis.times import parse_time
from apis.validation import validate
from cli.tidb.ages import length
from kube.objects import Json, condition_of
from kube.resources import (
    ADVANCED_STATEFUL_SETS,
    EVENTS,
    NODES,
    PERSISTENT_VOLUME_CLAIMS,
    PODS,
    STATEFUL_SETS,
    Resource,
)
from member import labels
from member.memory import Finding as CertificateFinding
from member.observed.pod import Pod
from member.observed.troubles import Event
from ports.structs import convert

POD_DISRUPTION_BUDGETS = Resource("policy", "v1", "poddisruptionbudgets", "PodDisruptionBudget")
ENDPOINT_SLICES = Resource("discovery.k8s.io", "v1", "endpointslices", "EndpointSlice")
NETWORK_POLICIES = Resource("networking.k8s.io", "v1", "networkpolicies", "NetworkPolicy")


@dataclass(frozen=True, kw_only=True)
class Facts:
    """What was read at `now`, as JSON trees.

    `cluster` has this `kind`, and is empty if it does not exist. `listed` has what could be read, by resource: objects
    of the cluster's namespace, Leases of all, and the EndpointSlices of our admission webhooks. `unread` says why
    something could not be read. `operators` are the operator's own pods, `logs` the last lines of containers that
    ended, by pod and container, `certificates` what was found in the Secrets with certificates, which are not kept.
    """

    now: datetime
    cluster: Json = field(default_factory=dict)
    kind: str = TIDB_CLUSTER
    namespace: str = ""
    listed: Mapping[Resource, Sequence[Json]] = field(default_factory=dict)
    unread: Mapping[Resource, str] = field(default_factory=dict)
    operators: Sequence[Json] = ()
    logs: Mapping[tuple[str, str], str] = field(default_factory=dict)
    certificates: Mapping[str, CertificateFinding] = field(default_factory=dict)

    def all(self, resource: Resource) -> Sequence[Json]:
        """The objects of a resource; empty if they could not be read."""
        return self.listed.get(resource, ())

    def knows(self, resource: Resource) -> bool:
        """True if an object missing from the list certainly does not exist."""
        return resource in self.listed

    def names(self, resource: Resource) -> frozenset[str]:
        """The names of the objects of a resource."""
        return frozenset(name_of(each) for each in self.all(resource))

    @property
    def name(self) -> str:
        """The cluster's name."""
        return name_of(self.cluster)

    @property
    def title(self) -> str:
        """The cluster, as findings name it."""
        return f"{self.kind} {self.name}"

    @property
    def spec(self) -> Json:
        """The cluster's spec as its user wrote it."""
        return self.cluster.get("spec") or {}

    @property
    def status(self) -> Json:
        """The cluster's status as the operator last wrote it."""
        return self.cluster.get("status") or {}

    def condition(self, kind: str) -> Json:
        """A condition of the cluster, or empty."""
        return condition_of(self.status.get("conditions") or (), kind)

    @cached_property
    def model(self) -> Cluster | InvalidField:
        """The cluster as the operator reads it, without its status, or why it can't be read."""
        try:
            without_status = {key: value for key, value in self.cluster.items() if key != "status"}
            return decode(without_status, CLUSTER_MODELS[self.kind])
        except InvalidField as error:
            return error

    @cached_property
    def valid(self) -> Cluster | None:
        """The cluster with defaults; None if its spec is invalid, so that code which builds objects may fail on it."""
        if isinstance(self.model, InvalidField):
            return None
        cluster = with_defaults(self.model)
        return None if validate(cluster) else cluster

    @cached_property
    def pods(self) -> Sequence[Json]:
        """The pods of the cluster."""
        return self._own(PODS)

    @cached_property
    def stateful_sets(self) -> Sequence[Json]:
        """The StatefulSets of the cluster, of both kinds."""
        return [*self._own(STATEFUL_SETS), *self._own(ADVANCED_STATEFUL_SETS)]

    @cached_property
    def claims(self) -> Sequence[Json]:
        """The volume claims of the cluster."""
        return self._own(PERSISTENT_VOLUME_CLAIMS)

    @cached_property
    def nodes(self) -> Mapping[str, Json]:
        """The nodes by name."""
        return {name_of(node): node for node in self.all(NODES)}

    def events(self, obj: Json, kind: str, *reasons: str) -> Sequence[Event]:
        """The warnings about an object, newest last; only those with the given reason, if any."""
        uid, name = obj["metadata"].get("uid", ""), name_of(obj)
        found = [
            event
            for event in self._events
            if (event.involved_object.kind, event.involved_object.name) == (kind, name)
            and event.involved_object.uid in ("", uid)
            and (not reasons or event.reason in reasons)
        ]
        return sorted(found, key=lambda event: event.time)

    def age(self, text: object) -> timedelta | None:
        """The age of a time (RFC 3339), or None."""
        at = parse_time(str(text or ""))
        return self.now - at if at else None

    def lasts(self, since: object, patience: timedelta) -> bool:
        """True if a state outlasts the patience for it; one without a time is not known to be new."""
        age = self.age(since)
        return age is None or age > patience

    def text_of_age(self, since: object) -> str:
        """`for 3m`, the end of a sentence; empty without a time."""
        age = self.age(since)
        return "" if age is None else f"for {length(age)}"

    @cached_property
    def _events(self) -> Sequence[Event]:
        return [convert(event, Event) for event in self.all(EVENTS)]

    def _own(self, resource: Resource) -> Sequence[Json]:
        meta = self.cluster.get("metadata") or {}
        instance = (meta.get("labels") or {}).get(labels.INSTANCE) or meta.get("name")
        carried = {labels.NAME: CLUSTER_MODELS[self.kind].LABELLED_NAME, labels.INSTANCE: instance}
        return [each for each in self.all(resource) if carried.items() <= labels_of(each).items()]


def name_of(tree: Json) -> str:
    """The name of an object."""
    return str((tree.get("metadata") or {}).get("name", ""))


def labels_of(tree: Json) -> Mapping[str, str]:
    """The labels of an object."""
    found: Mapping[str, str] = tree["metadata"].get("labels") or {}
    return found


def is_deleted(tree: Json) -> bool:
    """True if an object is being deleted."""
    return bool(tree["metadata"].get("deletionTimestamp"))


def is_true(tree: Json, kind: str) -> bool:
    """True if a condition of an object is True."""
    return condition_of((tree.get("status") or {}).get("conditions") or (), kind).get("status") == "True"


def pod_model(pod: Json) -> Pod:
    """A pod in the operator's model."""
    return convert({"spec": {}} | pod, Pod)


def component_of(tree: Json) -> str:
    """The component of an object by its name in the table, else its label."""
    label = labels_of(tree).get(labels.COMPONENT, "")
    rows = (each for kind in CLUSTER_MODELS for each in component_types(kind))
    return next((row.name for row in rows if row.label == label), label)


def field_of(facts: Facts, tree: Json, path: str) -> str:
    """The path of a field in the object's component, e.g. `spec.pd.requests.cpu`."""
    component, model = component_of(tree), facts.model
    if isinstance(model, InvalidField) or component not in component_names(of=facts.kind):
        return f"spec.{component}.{path}"
    slot = component_type(component).slot
    return f"{slot.field(model.spec) if slot.spec(model.spec) else f'spec.{component}'}.{path}"


def containers_of(pod: Json) -> Iterator[Json]:
    """The containers of a pod, init containers first."""
    spec = pod.get("spec") or {}
    yield from spec.get("initContainers") or ()
    yield from spec.get("containers") or ()


def pod(tree: Json) -> str:
    """A pod's name in findings."""
    return f"Pod {name_of(tree)}"
