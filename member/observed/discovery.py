"""Why Discovery does not run. Pods of PD and DM-master need it for their first start."""

import msgspec

from member.context import ClusterContext
from member.labels import base_labels
from member.naming import discovery_of
from member.observed.troubles import trouble_of_own


class _Condition(msgspec.Struct, frozen=True):
    type: str = ""
    status: str = ""
    message: str = ""


class _Status(msgspec.Struct, frozen=True, rename="camel"):
    available_replicas: int = 0
    conditions: tuple[_Condition, ...] = ()


class _Deployment(msgspec.Struct, frozen=True):
    status: _Status = msgspec.field(default_factory=_Status)


def discovery_trouble(ctx: ClusterContext) -> str:
    """The cause that Kubernetes reports for Discovery not running; empty if it runs or is starting normally."""
    found = ctx.listers.deployments.list(ctx.namespace, base_labels(ctx.tc, discovery_of(ctx.tc)))
    status = next((each.decode_as(_Deployment).status for each in found), _Status())
    if status.available_replicas:
        return ""
    refused = [each.message for each in status.conditions if each.type == "ReplicaFailure" and each.status == "True"]
    pods = ctx.listers.pods.list(ctx.namespace, base_labels(ctx.tc, discovery_of(ctx.tc)))
    return next(filter(None, [*refused, *(trouble_of_own(ctx, pod) for pod in pods)]), "")
