"""Discovery: what pods of PD and DM-master ask at their first start (objects.md 10.1).

Its objects are made before them, and in this order.
"""

from functools import partial

from kube.objects import Json
from kube.resources import DEPLOYMENTS, ROLE_BINDINGS, ROLES, SERVICE_ACCOUNTS
from member.apply.last_applied import applied
from member.apply.writes import apply, apply_service
from member.context import ClusterContext, Held
from member.discovery import desired
from member.lifecycle.refused_writes import first_refusal
from member.lifecycle.suspend import paused
from member.outcome import Done, Outcome


def act(ctx: ClusterContext) -> Outcome:
    """Bring Discovery's objects to what is desired. Raises OwnerGone, ApiError, TransportError."""
    tc, listers, name = ctx.tc, ctx.listers, desired.name(ctx.tc)
    if not desired.wanted(tc):
        return Done("not part of this cluster")
    if ctx.held is Held.OBSERVING:
        return Done("it is made once the spec is valid")
    if tc.spec.paused and ctx.held is Held.NO:
        return paused(tc.metadata.name)
    role, account, binding = (
        each.get(ctx.namespace, name) for each in (listers.roles, listers.service_accounts, listers.role_bindings)
    )
    writes = (
        partial(apply, ctx, ROLES, desired.role(tc), role),
        partial(apply, ctx, SERVICE_ACCOUNTS, desired.service_account(tc), account),
        partial(apply, ctx, ROLE_BINDINGS, desired.role_binding(tc), binding),
        partial(_apply_deployment, ctx, desired.deployment(tc, ctx.settings.discovery_image)),
        partial(apply_service, ctx, desired.service(tc)),
    )
    return first_refusal(ctx, name, writes) or Done("all objects are in place")


def _apply_deployment(ctx: ClusterContext, deployment: Json) -> None:
    cached = ctx.listers.deployments.get(ctx.namespace, deployment["metadata"]["name"])
    if cached and ctx.missing_certificates:
        # its pod would not start, and pods of PD that start wait for it; the certificates say what is missing
        return
    before = _with_whole_pod_metadata(cached.decode()) if cached else None
    apply(ctx, DEPLOYMENTS, deployment, cached, applied_before=before)


def _with_whole_pod_metadata(live: Json) -> Json:
    """What was applied last, as if all labels and annotations of the pods had been: those of others go (R27)."""
    template = ((applied(live) or {}).get("spec") or {}).get("template") or {}
    return {"spec": {"template": template | {"metadata": live["spec"]["template"].get("metadata") or {}}}}


def observe(_: ClusterContext) -> Outcome:
    """Nothing of Discovery is in the status."""
    return Done()
