"""A write of the operator for the invariants: its effect on the current state."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from urllib.parse import urlsplit

from kube.objects import Json
from kube.resources import ADVANCED_STATEFUL_SETS, PODS, STATEFUL_SETS, TIDB_CLUSTERS, Resource
from member.context import FailoverSettings
from simulate.engine.calls import Call, Port
from simulate.engine.state import State, is_outdated, kept_ordinals, partition, pod_of_member, replicas
from simulate.engine.trees import merged

_MEMBER = re.compile(r"/pd/api/v1/members/(name|id)/([^/]+)$")
_STORE = re.compile(r"/pd/api/v1/store/(\d+)$")
_EVICTION = re.compile(r"/pd/api/v1/schedulers/evict-leader-scheduler-(\d+)$")


_AS_WELL = {STATEFUL_SETS: (str(ADVANCED_STATEFUL_SETS),)}
"""Resources that count as others: a component has a StatefulSet of either kind."""


@dataclass(frozen=True)
class OperatorWrite:
    """`before` is the state when the write is sent; `seen` is the cluster at the start of its sync.

    `read` is the cluster in the sync's last live read, if any: later edits are unknown to it.
    """

    call: Call
    before: State
    seen: Json | None
    failover: FailoverSettings
    earlier: tuple[Call, ...] = ()
    """The earlier calls of the same sync, including reads."""
    read: Json | None = None
    others: frozenset[str] = frozenset()
    """The objects that other clients change in this run, as `plural.group/name`."""

    @property
    def known(self) -> Json | None:
        """The cluster as its sync could know it."""
        return self.read or self.before.cluster

    @cached_property
    def body(self) -> Json:
        """The body of the request."""
        return self.call.body()

    def patches(self, resource: Resource) -> bool:
        """True if it changes an existing object."""
        return self._is("PATCH", resource) or self._is("PUT", resource)

    def creates(self, resource: Resource) -> bool:
        """True if it creates an object."""
        return self._is("POST", resource)

    def deletes(self, resource: Resource) -> bool:
        """True if it deletes an object."""
        return self._is("DELETE", resource)

    def _is(self, method: str, resource: Resource) -> bool:
        call = self.call
        if call.port is not Port.KUBERNETES or call.method != method:
            return False
        return call.target.resource in (str(resource), *_AS_WELL.get(resource, ()))

    @property
    def component(self) -> str:
        """The component of its StatefulSet or pod, or empty."""
        name, cluster = self.call.target.name, self.before.name
        if self.call.target.namespace != self.before.namespace:
            return ""
        if self.call.target.resource in (str(STATEFUL_SETS), *_AS_WELL[STATEFUL_SETS]):
            return next((component for component in self.before.components if name == f"{cluster}-{component}"), "")
        workload, _, ordinal = name.rpartition("-")
        found = (component for component in self.before.components if workload == f"{cluster}-{component}")
        return next(found, "") if ordinal.isdecimal() else ""

    @cached_property
    def live(self) -> Json | None:
        """The current StatefulSet that it changes."""
        changes = self.patches(STATEFUL_SETS) and bool(self.component)
        return self.before.stateful_set(self.component) if changes else None

    @property
    def replicas(self) -> tuple[int, int]:
        """The replicas of the StatefulSet before and after."""
        before = replicas(self.live) if self.live else 0
        return before, int((self.body.get("spec") or {}).get("replicas", before))

    @property
    def partition(self) -> tuple[int, int]:
        """The partition of the StatefulSet before and after."""
        there = (self.live or {}).get("spec", {}).get("updateStrategy") or {}
        sent = (self.body.get("spec") or {}).get("updateStrategy") or {}
        merged = {key: value for key, value in (there | sent).items() if value is not None}
        return partition(there), partition(merged)

    @property
    def changes_template(self) -> bool:
        """True if it changes the pods' template."""
        return "template" in (self.body.get("spec") or {})

    @cached_property
    def restarts(self) -> tuple[str, list[int]]:
        """The component and the ordinals of the pods that it restarts, sooner or later."""
        if self.deletes(PODS) and self.component:
            return self.component, [int(self.call.target.name.rpartition("-")[2])]
        if self.live is None:
            return "", []
        before, after = self.partition
        live, hit = self.live, []
        for ordinal, pod in sorted(self.before.pods(self.component).items()):
            ends = "deletionTimestamp" in pod["metadata"]
            was = ends or (ordinal >= before and is_outdated(live, pod))
            will = ordinal >= after and (self.changes_template or is_outdated(live, pod))
            if will and not was and ordinal in self.ordinals[1]:
                hit.append(ordinal)
        return self.component, hit

    @property
    def leaving(self) -> tuple[str, list[int]]:
        """The component and the ordinals that it scales in, or that a new StatefulSet leaves out though they exist."""
        if self.creates(STATEFUL_SETS) and self.component:
            kept = kept_ordinals(self.body)
            return self.component, [pod for pod in self.before.pods(self.component) if pod not in kept]
        before, after = self.ordinals
        return (self.component, [each for each in before if each not in after]) if self.live else ("", [])

    @cached_property
    def ordinals(self) -> tuple[Sequence[int], Sequence[int]]:
        """The ordinals of the StatefulSet before and after."""
        return kept_ordinals(self.live), kept_ordinals(merged(self.live, self.body) if self.live else None)

    @property
    def removed_member(self) -> str:
        """The pod of the PD member that it removes, or the id of a nameless one; or empty."""
        match = _MEMBER.search(urlsplit(self.call.request.url).path)
        if self.call.method != "DELETE" or match is None:
            return ""
        kind, value = match.groups()
        if kind == "name":
            return value.partition(".")[0]
        return next((pod_of_member(member) or value for member in self.before.members if str(member.id) == value), "")

    @property
    def removed_store(self) -> int:
        """The id of the store that it takes offline, or 0."""
        return self._deleted(_STORE)

    @property
    def ended_eviction(self) -> int:
        """The id of the store that may lead again after it, or 0."""
        return self._deleted(_EVICTION)

    def _deleted(self, path: re.Pattern[str]) -> int:
        match = path.search(urlsplit(self.call.request.url).path)
        return int(match.group(1)) if match and self.call.method == "DELETE" else 0

    @property
    def status(self) -> Json:
        """The changed part of the status that it writes; empty for other writes."""
        return (self.body.get("status") or {}) if self.patches(TIDB_CLUSTERS) else {}

    @cached_property
    def status_after(self) -> Json:
        """The status of the cluster after the write."""
        return merged((self.before.cluster or {}).get("status") or {}, self.status)

    def read_before(self, target: str) -> bool:
        """True if the same sync has read `plural.group name` live."""
        return any(str(call) == f"GET {target}" for call in self.earlier)
