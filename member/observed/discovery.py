"""What is known to keep Discovery from running, which PD's pods ask at their first start. Reads caches only."""

import msgspec

from member.context import ReconcileContext
from member.labels import base_labels
from member.observed.pods import Pod


class _Condition(msgspec.Struct):
    type: str = ""
    status: str = ""
    message: str = ""


class _Status(msgspec.Struct, rename="camel"):
    available_replicas: int = 0
    conditions: tuple[_Condition, ...] = ()


class _Deployment(msgspec.Struct):
    status: _Status = msgspec.field(default_factory=_Status)


def discovery_trouble(ctx: ReconcileContext) -> str:
    """Why Discovery does not run, in Kubernetes' words; empty where it does, or is merely on the way."""
    found = ctx.listers.deployments.list(ctx.namespace, base_labels(ctx.tc, "discovery"))
    status = next((each.decode_as(_Deployment).status for each in found), _Status())
    if status.available_replicas:
        return ""
    refused = [each.message for each in status.conditions if each.type == "ReplicaFailure" and each.status == "True"]
    pods = ctx.listers.pods.list(ctx.namespace, base_labels(ctx.tc, "discovery"))
    return next(filter(None, [*refused, *(pod.decode_as(Pod).trouble for pod in pods)]), "")
