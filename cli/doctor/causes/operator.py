"""Problems of the operator: whether one works, and for this cluster (scheduler-deployment.md 13.2)."""

from collections.abc import Iterator
from datetime import timedelta

import msgspec

from cli.doctor.facts import Facts, is_deleted, labels_of, name_of, pod, pod_model
from cli.doctor.finding import Cause, Severity, Sign
from cli.doctor.leaders import leaders, leases
from controller_manager.flags import PROGRAM
from controllers.other_operators import OPERATOR_CONFLICT
from kube.leases import record_of
from kube.objects import Json, Object
from kube.resources import LEASES

_OBSERVE = frozenset({"-observe", "--observe", "-observe=true", "--observe=true"})


def _cluster(facts: Facts) -> Object:
    return Object(msgspec.json.encode(facts.cluster))


def _not_running(facts: Facts) -> Iterator[Sign]:
    if not facts.knows(LEASES) or leaders(facts):
        return
    pods = [
        f"pod {operator['metadata']['namespace']}/{name_of(operator)}{_state(operator)}" for operator in facts.operators
    ]
    where = ", ".join(lease.key for lease in leases(facts)) or f"{PROGRAM}*"
    there = "; ".join(pods) or "no pod of it was found"
    yield Sign(f"Lease {where}", f"no operator leads: {there}", "spec.renewTime", _renewed(facts))


def _renewed(facts: Facts) -> str:
    return max((record_of(lease).renewed for lease in leases(facts)), default="")


def _state(tree: Json) -> str:
    model = pod_model(tree)
    if model.is_ready:
        return " is Ready, and does not lead: its log says why"
    return f" is not Ready{f' ({model.trouble})' if model.trouble else ''}"


def _sick(facts: Facts) -> Iterator[Sign]:
    """Unhealthy pods of an operator while another leads: there is no standby, or a rolling update is stuck."""
    for operator in facts.operators:
        trouble = pod_model(operator).trouble
        if trouble and leaders(facts) and not is_deleted(operator):
            yield Sign(f"{pod(operator)} of the operator", f"does not run: {trouble}")


def _elsewhere(facts: Facts) -> Iterator[Sign]:
    leading, cluster = leaders(facts), _cluster(facts)
    if leading and not any(leader.covers(cluster) for leader in leading):
        scopes = "; ".join(f"{leader.lease}: {leader.description}" for leader in leading)
        own = ", ".join(f"{key}={value}" for key, value in labels_of(facts.cluster).items()) or "none"
        message = f"no operator manages it; those that are at work manage: {scopes}"
        yield Sign(facts.title, message, "metadata.labels", own)


def _two(facts: Facts) -> Iterator[Sign]:
    cluster = _cluster(facts)
    covering = [leader for leader in leaders(facts) if leader.covers(cluster)]
    if len(covering) > 1:
        named = " and ".join(f"{leader.lease} ({leader.description})" for leader in covering)
        yield Sign(facts.title, f"more than one operator manages it: {named}", "Lease")
    elif (conflict := facts.condition(OPERATOR_CONFLICT)).get("status") == "True":
        yield Sign(facts.title, str(conflict.get("message", "")), OPERATOR_CONFLICT, "True")


def _without_holder(facts: Facts) -> Iterator[Sign]:
    cluster = _cluster(facts)
    for leader in leaders(facts):
        if leader.covers(cluster) and (lease := leader.lacks(cluster)):
            message = (
                f"the clusters are divided into {leader.count} shards, and no operator holds the shard of this one"
            )
            yield Sign(facts.title, message, "Lease", lease)


def _observing(facts: Facts) -> Iterator[Sign]:
    for operator in facts.operators:
        for container in operator["spec"].get("containers") or ():
            words = {*(container.get("command") or ()), *(container.get("args") or ())}
            if words & _OBSERVE:
                message = "reports what it would write, and writes nothing"
                yield Sign(f"{pod(operator)} of the operator", message, "args", "-observe")


def _unseen(facts: Facts) -> Iterator[Sign]:
    """A cluster that an operator should have noticed and has not."""
    late = facts.lasts((facts.cluster.get("metadata") or {}).get("creationTimestamp"), timedelta(minutes=1))
    cluster = _cluster(facts)
    managed = any(leader.covers(cluster) and not leader.lacks(cluster) for leader in leaders(facts))
    if late and managed and not facts.status and not is_deleted(facts.cluster):
        yield Sign(facts.title, "has no status: the operator that should manage it does not", "status")


OF_ANY_CLUSTER = (
    Cause(
        "OperatorNotRunning",
        "Get its Deployment Ready; `kubectl logs` of its pod names what is missing: a right, the CRD.",
        _not_running,
    ),
    Cause(
        "OperatorPodNotReady",
        "`kubectl describe pod`; until then no replica takes over when the leader goes.",
        _sick,
        Severity.WARNING,
    ),
    Cause(
        "OperatorObserves",
        "Remove the flag when you want it to act (docs/migration.md).",
        _observing,
        Severity.WARNING,
    ),
)
"""Causes that also apply without a cluster."""

CAUSES = (
    Cause(
        "NotManaged",
        "Label the cluster as `-selector` asks, or run an operator for its namespace.",
        _elsewhere,
    ),
    Cause(
        "TwoOperators",
        "Stop all but one, or share the clusters out: `-selector`, `-cluster-scoped=false`.",
        _two,
    ),
    Cause(
        "ShardNotHeld",
        "Within 20 seconds another replica should; else get the operator's pods Ready, and look at their logs.",
        _without_holder,
    ),
    Cause(
        "NotNoticed",
        "`kubectl logs` of the operator's leader: does it reach the API server, may it read TidbClusters?",
        _unseen,
    ),
)
