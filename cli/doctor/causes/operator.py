"""The operator: whether one is at work, for this cluster, and knows its kind (scheduler-deployment.md 13.2)."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta

import msgspec

from apis.crd import TIDB_CLUSTER, definition
from cli.doctor.facts import Facts, is_deleted, labels_of, name_of, pod, pod_model
from cli.doctor.finding import Cause, Severity, Sign
from controller_manager.flags import PROGRAM
from controllers.other_operators import OPERATOR_CONFLICT, Scope, scope_of
from informers.selectors import SelectorError
from kube.leases import record_of
from kube.objects import Json, Object
from kube.resources import CUSTOM_RESOURCE_DEFINITIONS, LEASES, TIDB_CLUSTERS
from kube.shard_leases import leases_of_key

_OVERDUE = 2
"""Of how many durations of its Lease an operator must have missed all renewals to count as gone."""

_SKEW = timedelta(seconds=30)
"""By how much the clock here and that of the operator may differ."""

_OBSERVE = frozenset({"-observe", "--observe", "-observe=true", "--observe=true"})


@dataclass(frozen=True, slots=True)
class _Leader:
    """An operator that leads: its Lease, and its clusters, None where the Lease does not tell, as v1.6's."""

    lease: str
    scope: Scope | None

    def covers(self, cluster: Object) -> bool:
        try:
            return self.scope is None or self.scope.covers(cluster)
        except SelectorError:
            return True

    @property
    def told(self) -> str:
        """Its clusters, in words."""
        if self.scope is None:
            return "does not say which"
        where = f"namespace {self.scope.namespace}" if self.scope.namespace else "all namespaces"
        return f"{where}, selector {self.scope.selector!r}" if self.scope.selector else where


def _leases(facts: Facts) -> list[Object]:
    """Those of operators that may have the cluster: of one with shards, that of the cluster's."""
    own = (each for each in facts.all(LEASES) if name_of(each).startswith(PROGRAM))
    return leases_of_key((Object(msgspec.json.encode(each)) for each in own), _cluster(facts).key)


def _leaders(facts: Facts) -> list[_Leader]:
    found = []
    for lease in _leases(facts):
        record = record_of(lease)
        fresh = facts.age(record.renewed) < _OVERDUE * timedelta(seconds=record.duration) + _SKEW
        if record.holder and record.renewed and fresh:
            found.append(_Leader(lease.key, scope_of(lease)))
    return found


def _cluster(facts: Facts) -> Object:
    return Object(msgspec.json.encode(facts.cluster))


def _not_running(facts: Facts) -> Iterator[Sign]:
    if not facts.knows(LEASES) or _leaders(facts):
        return
    pods = [f"pod {each['metadata']['namespace']}/{name_of(each)}{_state(each)}" for each in facts.operators]
    where = ", ".join(lease.key for lease in _leases(facts)) or f"{PROGRAM}*"
    there = "; ".join(pods) or "no pod of it was found"
    yield Sign(f"Lease {where}", f"no operator leads: {there}", "spec.renewTime", _renewed(facts))


def _renewed(facts: Facts) -> str:
    return max((record_of(lease).renewed for lease in _leases(facts)), default="")


def _state(tree: Json) -> str:
    model = pod_model(tree)
    if model.is_ready:
        return " is Ready, and does not lead: its log says why"
    return f" is not Ready{f' ({model.trouble})' if model.trouble else ''}"


def _sick(facts: Facts) -> Iterator[Sign]:
    """Pods of an operator while another one leads: nobody is there to take over, or a roll is stuck."""
    for each in facts.operators:
        trouble = pod_model(each).trouble
        if trouble and _leaders(facts) and not is_deleted(each):
            yield Sign(f"{pod(each)} of the operator", f"does not run: {trouble}")


def _elsewhere(facts: Facts) -> Iterator[Sign]:
    leaders, cluster = _leaders(facts), _cluster(facts)
    if leaders and not any(each.covers(cluster) for each in leaders):
        scopes = "; ".join(f"{each.lease}: {each.told}" for each in leaders)
        own = ", ".join(f"{key}={value}" for key, value in labels_of(facts.cluster).items()) or "none"
        message = f"no operator manages it; those that are at work manage: {scopes}"
        yield Sign(f"TidbCluster {facts.name}", message, "metadata.labels", own)


def _two(facts: Facts) -> Iterator[Sign]:
    cluster = _cluster(facts)
    covering = [each for each in _leaders(facts) if each.covers(cluster)]
    if len(covering) > 1:
        named = " and ".join(f"{each.lease} ({each.told})" for each in covering)
        yield Sign(f"TidbCluster {facts.name}", f"more than one operator manages it: {named}", "Lease")
    elif (told := facts.condition(OPERATOR_CONFLICT)).get("status") == "True":
        yield Sign(f"TidbCluster {facts.name}", str(told.get("message", "")), OPERATOR_CONFLICT, "True")


def _observing(facts: Facts) -> Iterator[Sign]:
    for each in facts.operators:
        for container in each["spec"].get("containers") or ():
            words = {*(container.get("command") or ()), *(container.get("args") or ())}
            if words & _OBSERVE:
                message = "reports what it would write, and writes nothing"
                yield Sign(f"{pod(each)} of the operator", message, "args", "-observe")


def _unseen(facts: Facts) -> Iterator[Sign]:
    """A cluster of which an operator should have taken notice, and has not."""
    late = facts.age((facts.cluster.get("metadata") or {}).get("creationTimestamp")) > timedelta(minutes=1)
    cluster = _cluster(facts)
    managed = any(each.covers(cluster) for each in _leaders(facts))
    if late and managed and not facts.status and not is_deleted(facts.cluster):
        yield Sign(f"TidbCluster {facts.name}", "has no status: the operator that should manage it does not", "status")


def _without_definition(facts: Facts) -> Iterator[Sign]:
    if facts.knows(CUSTOM_RESOURCE_DEFINITIONS) and not _definition(facts):
        yield Sign(f"CustomResourceDefinition {TIDB_CLUSTERS}", "does not exist")


def _definition(facts: Facts) -> Json:
    found = facts.all(CUSTOM_RESOURCE_DEFINITIONS)
    return next((each for each in found if name_of(each) == str(TIDB_CLUSTERS)), {})


def _older_definition(facts: Facts) -> Iterator[Sign]:
    installed = _definition(facts)
    if not installed:
        return
    missing = list(_missing(_schema(definition(TIDB_CLUSTER)), _schema(installed), ""))
    if missing:
        more = f" and {len(missing) - 3} more" if len(missing) > 3 else ""
        message = f"does not have {', '.join(missing[:3])}{more}: what users write there is dropped"
        yield Sign(f"CustomResourceDefinition {TIDB_CLUSTERS}", message, "spec.versions.schema")


def _schema(crd: Json) -> Json:
    versions = (each for each in crd["spec"].get("versions") or () if each.get("name") == TIDB_CLUSTERS.version)
    found: Json = next(((each.get("schema") or {}).get("openAPIV3Schema") or {} for each in versions), {})
    return found


def _missing(wanted: Json, there: Json, path: str) -> Iterator[str]:
    """The fields that a schema lacks, by path; nothing is missing below one that keeps what it does not know."""
    if there.get("x-kubernetes-preserve-unknown-fields"):
        return
    known: Mapping[str, Json] = there.get("properties") or {}
    for name, schema in (wanted.get("properties") or {}).items():
        at = f"{path}.{name}" if path else name
        if name not in known and not isinstance(there.get("additionalProperties"), dict):
            yield at
        elif name in known:
            yield from _missing(schema, known[name], at)
    for key in ("items", "additionalProperties"):
        if isinstance(wanted.get(key), dict) and isinstance(there.get(key), dict):
            yield from _missing(wanted[key], there[key], f"{path}[]")


OF_ANY_CLUSTER = (
    Cause(
        "CRDMissing",
        "The CustomResourceDefinition of TidbClusters is not installed.",
        "`kubectl create -f manifests/crds/`.",
        _without_definition,
    ),
    Cause(
        "CRDOlderThanOperator",
        "The CustomResourceDefinition lacks fields that this version knows, and the API server drops them.",
        "`kubectl replace -f manifests/crds/`.",
        _older_definition,
        Severity.WARNING,
    ),
    Cause(
        "OperatorNotRunning",
        "No operator renews its Lease: none runs, none leads.",
        "Get its Deployment Ready; `kubectl logs` of its pod names what is missing: a right, the CRD.",
        _not_running,
    ),
    Cause(
        "OperatorPodNotReady",
        "A pod of the operator does not run, while another one leads.",
        "`kubectl describe pod`; until then nobody takes over when the leader goes.",
        _sick,
        Severity.WARNING,
    ),
    Cause(
        "OperatorObserves",
        "The operator runs with `-observe`: it computes what it would write, and writes nothing.",
        "Remove the flag when you want it to act (docs/migration.md).",
        _observing,
        Severity.WARNING,
    ),
)
"""Those that show without a cluster, too."""

CAUSES = (
    Cause(
        "NotManaged",
        "Operators are at work, and none for this cluster: namespace or label selector leave it out.",
        "Label the cluster as `-selector` asks, or run an operator for its namespace.",
        _elsewhere,
    ),
    Cause(
        "TwoOperators",
        "Two operators manage the cluster, and undo each other's work.",
        "Stop all but one, or share the clusters out: `-selector`, `-cluster-scoped=false`.",
        _two,
    ),
    Cause(
        "NotNoticed",
        "The operator that should manage the cluster has not written anything into its status.",
        "`kubectl logs` of the operator's leader: does it reach the API server, may it read TidbClusters?",
        _unseen,
    ),
)
