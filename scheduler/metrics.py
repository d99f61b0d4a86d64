"""The extender's metrics."""

from prometheus_client import CollectorRegistry, Counter, Histogram

from apis.components import TIDB_CLUSTER, component_types
from kube.objects import Object
from member.labels import COMPONENT

_SECONDS = (0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0, 30.0)

_COMPONENTS = frozenset(component_type.label for component_type in component_types(TIDB_CLUSTER))
"""The values of the label `component`; any other would let a client create time series without end."""


class Metrics:
    """Requests by verb and status, and refused pods by component."""

    def __init__(self, registry: CollectorRegistry | None = None) -> None:
        """Register with `registry`; without one, nothing is published."""
        registry = registry or CollectorRegistry()
        self._requests = Counter(
            "tidb_scheduler_requests", "Questions of kube-scheduler.", ["verb", "code"], registry=registry
        )
        self._seconds = Histogram(
            "tidb_scheduler_request_duration_seconds",
            "How long an answer took.",
            ["verb"],
            buckets=_SECONDS,
            registry=registry,
        )
        self._refused = Counter(
            "tidb_scheduler_refused_pods",
            "Answers after which a pod went on waiting.",
            ["component"],
            registry=registry,
        )

    def observe(self, verb: str, status: int, seconds: float) -> None:
        """Count an answered question."""
        self._requests.labels(verb, str(status)).inc()
        self._seconds.labels(verb).observe(seconds)

    def refused(self, pod: Object) -> None:
        """Count a pod without a node."""
        component = pod.metadata.labels.get(COMPONENT, "")
        self._refused.labels(component if component in _COMPONENTS else "").inc()
