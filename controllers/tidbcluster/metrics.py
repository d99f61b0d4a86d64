"""Metrics of single clusters (scheduler-deployment.md 5), with the names of v1.6 where it has them.

All but four families are read from the cached TidbCluster at a scrape. Syncs therefore cost nothing, a deleted cluster
leaves nothing behind, and the metrics agree with `kubectl describe tc`. The other four are known only to this process:
failures, refusals, the time of the last good sync, and the expiry of certificates. Only the leader serves series of
clusters, so that each series exists once; other processes serve empty families.
"""

import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from prometheus_client.core import GaugeMetricFamily, Metric, UntypedMetricFamily
from prometheus_client.registry import Collector, CollectorRegistry

from apis import images
from apis.accessor import Component, workloads
from apis.decoding import decode
from apis.ordinals import desired_replicas
from apis.predicates import status_of
from apis.problem import InvalidField
from apis.shared import ComponentStatus, Json
from apis.tidbcluster import TidbCluster
from apis.times import parse_time
from controllers.cluster_samples import Sample, holds, of_members, of_status, ours, readable
from controllers.conditions import PROGRESSING
from controllers.other_operators import OtherOperators
from controllers.outcomes import failed
from controllers.pod_samples import of_pods
from kube.objects import Object
from kube.reading import Lister
from member.memory import CertificateBook
from member.outcome import Outcome, Refused
from ports.clock import Clock
from ports.fencing import FenceOf, is_open

_PREFIX = "tidb_operator_cluster_"
_OF_ALL = ("namespace", "name")

_FAMILIES: Mapping[str, tuple[tuple[str, ...], str]] = {
    "ready": ((), "1 when the condition Ready is True, else 0."),
    "condition": (("condition", "reason"), "1 when the condition is True, else 0, with its present reason."),
    "waiting_seconds": (
        ("reason",),
        "For how long the condition Progressing has been True for this reason.",
    ),
    "component_condition": (("component", "condition", "reason"), "As ..._condition, of one component."),
    "component_waiting_seconds": (("component", "reason"), "As ..._waiting_seconds, of one component."),
    "spec_replicas": (("component",), "Replicas requested by the spec."),
    "desired_replicas": (("component",), "As ..._spec_replicas, substitutes of failover added; 0 where suspended."),
    "ready_replicas": (("component",), "Ready pods of the StatefulSet."),
    "outdated_replicas": (("component",), "Pods of the StatefulSet that a rolling restart has yet to reach."),
    "observed": (("component",), "1 when the last reconcile could read the members of the component, else 0."),
    "members": (("component",), "Members, stores or servers that the last reconcile read; absent where it could not."),
    "healthy_members": (("component",), "Healthy members among ..._members; absent with them."),
    "pod_unready": (
        ("component", "pod", "reason"),
        "1 for each pod that is missing or not Ready, or whose member, store or server does not serve.",
    ),
    "unavailable": (("component", "reason"), "1 while the component is out of service for that reason; else absent."),
    "failure_members": (("component",), "Members and stores that failover has recorded as lost."),
    "version_info": (("component", "version"), "1, with the version that the StatefulSet runs."),
    "refused": (("component", "reason"), "1 for each stage that needs an edit of the spec to continue."),
    "certificate_expiry_seconds": (
        ("secret",),
        "Seconds until the certificate in a Secret, or the authority that has signed it, expires; negative afterwards.",
    ),
    "operators": ((), "Operators that manage the cluster, as far as this one can see them: 1 is right."),
    "sync_age_seconds": (
        (),
        "Seconds since a sync in which no stage failed; before the first, since the first scrape.",
    ),
}
_UPDATE_ERRORS = "update_errors"


@dataclass(slots=True)
class _Syncs:
    """The syncs of one cluster: failures and refusals by stage, and the time of the last one without failures."""

    errors: dict[str, int] = field(default_factory=dict)
    refused: dict[str, str] = field(default_factory=dict)
    good: float | None = None


class ClusterMetrics(Collector):
    """The series of single clusters: a collector that reconcilers report to."""

    def __init__(
        self,
        registry: CollectorRegistry,
        clusters: Lister,
        clock: Clock,
        fence_of: FenceOf,
        *,
        others: OtherOperators | None = None,
        certificates: CertificateBook | None = None,
        pods: Lister | None = None,
    ) -> None:
        """Register; `fence_of` decides which clusters belong to this process, `others` detects other operators.

        Without `pods` there are no series of single pods.
        """
        self._certificates = certificates or CertificateBook()
        self._pods = pods
        self._clusters, self._clock, self._fence_of, self._others = clusters, clock, fence_of, others
        self._lock = threading.Lock()
        self._syncs: dict[tuple[str, str], _Syncs] = {}
        registry.register(self)

    def note_sync(self, namespace: str, name: str, outcomes: Mapping[str, Outcome]) -> None:
        """Note the outcomes of a cluster's stages at the end of a sync."""
        failures = failed(outcomes)
        with self._lock:
            syncs = self._syncs.setdefault((namespace, name), _Syncs())
            for stage in failures:
                syncs.errors[stage] = syncs.errors.get(stage, 0) + 1
            syncs.refused = {stage: each.reason for stage, each in outcomes.items() if isinstance(each, Refused)}
            if not failures:
                syncs.good = self._clock.now()

    def forget(self, namespace: str, name: str) -> None:
        """Remove the series of a deleted cluster."""
        with self._lock:
            self._syncs.pop((namespace, name), None)
        self._certificates.forget(f"{namespace}/{name}")

    def collect(self) -> Iterable[Metric]:
        """All families, with the series of the clusters that belong to this process."""
        families: dict[str, Metric] = {
            name: GaugeMetricFamily(_PREFIX + name, text, labels=(*_OF_ALL, *labels))
            for name, (labels, text) in _FAMILIES.items()
        }
        # prometheus_client would name a counter ..._errors_total, unlike v1.6 (MET-14)
        errors = UntypedMetricFamily(
            _PREFIX + _UPDATE_ERRORS, "Failed stages of syncs, counted.", labels=(*_OF_ALL, "component")
        )
        families[_UPDATE_ERRORS] = errors
        for cluster in (each for each in self._clusters.list() if is_open(self._fence_of(each.key))):
            meta = cluster.metadata
            for name, labels, value in readable(cluster, self._samples):
                families[name].add_metric([meta.namespace, meta.name, *labels], value)  # type: ignore[attr-defined]
        return families.values()

    def _samples(self, cluster: Object) -> Iterator[Sample]:
        tree = cluster.decode()
        yield from _of_status(tree.get("status") or {}, self._clock.wall())
        try:
            tc = decode(tree, TidbCluster)
        except InvalidField:
            pass  # the spec is refused, so the desired components are unknown
        else:
            for component in workloads(tc):
                yield from _of_component(tc, component, self._clock.wall())
            if self._pods is not None:
                yield from of_pods(tc, self._pods)
        yield "operators", (), 1 + len(self._others.managing(cluster) if self._others else ())
        for secret, finding in self._certificates.findings(cluster.key).items():
            if finding.ends:
                yield "certificate_expiry_seconds", (secret,), (finding.ends - self._clock.wall()).total_seconds()
        yield from self._of_syncs((cluster.metadata.namespace, cluster.metadata.name))

    def _of_syncs(self, key: tuple[str, str]) -> Iterator[Sample]:
        now = self._clock.now()
        with self._lock:
            syncs = self._syncs.setdefault(key, _Syncs())
            if syncs.good is None:
                syncs.good = now
            errors, refused, age = dict(syncs.errors), dict(syncs.refused), now - syncs.good
        yield "sync_age_seconds", (), age
        for stage, count in errors.items():
            yield _UPDATE_ERRORS, (stage,), count
        for stage, reason in refused.items():
            yield "refused", (stage, reason), 1


def _of_status(status: Json, now: datetime) -> Iterator[Sample]:
    yield from of_status(status)
    yield from _waiting(ours(status.get("conditions")), (), now, "")


def _of_component(tc: TidbCluster, component: Component, now: datetime) -> Iterator[Sample]:
    labels, status = (component.name,), status_of(tc, component.name)
    yield "spec_replicas", labels, component.workload.replicas
    yield "desired_replicas", labels, 0 if component.suspended else desired_replicas(tc, component.name)
    if status is not None:
        yield from _of_component_status(status, component.name)
        conditions = ours(status.conditions)
        for condition in conditions:
            yield (
                "component_condition",
                (*labels, condition["type"], str(condition.get("reason") or "")),
                holds(condition),
            )
        yield from _waiting(conditions, labels, now, "component_")


def _of_component_status(status: ComponentStatus, component: str) -> Iterator[Sample]:
    labels = (component,)
    live = status.stateful_set or {}
    yield "ready_replicas", labels, status.ready_replicas
    yield "outdated_replicas", labels, max((live.get("replicas") or 0) - (live.get("updatedReplicas") or 0), 0)
    yield from of_members(status, component)
    yield "failure_members", labels, status.failures
    if image := getattr(status, "image", ""):
        yield "version_info", (*labels, images.version_of(image)), 1


def _waiting(conditions: Sequence[Json], labels: tuple[str, ...], now: datetime, of: str) -> Iterator[Sample]:
    for condition in conditions:
        since = parse_time(str(condition.get("lastTransitionTime") or ""))
        if condition["type"] == PROGRESSING and holds(condition) and since:
            reason = str(condition.get("reason") or "")
            yield f"{of}waiting_seconds", (*labels, reason), max((now - since).total_seconds(), 0.0)
