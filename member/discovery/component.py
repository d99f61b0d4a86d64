"""Discovery, which pods of PD and DM-master ask at their first start whether to bootstrap or join (objects.md 10.1).

Its objects are created before theirs, in this order.
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


async def act(ctx: ClusterContext) -> Outcome:
    """Apply Discovery's desired objects. Raises OwnerGone, ApiError, TransportError."""
    tc, listers, name = ctx.tc, ctx.listers, desired.name(ctx.tc)
    if not desired.wanted(tc):
        return Done("not part of this cluster")
    if ctx.held is Held.OBSERVING:
        return Done("Discovery is created once the spec is valid")
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
    return await first_refusal(ctx, name, writes) or Done("all objects are in place")


async def _apply_deployment(ctx: ClusterContext, deployment: Json) -> None:
    cached = ctx.listers.deployments.get(ctx.namespace, deployment["metadata"]["name"])
    if cached and ctx.missing_certificates:
        # Discovery's pod would not start, and PD's pods wait for it; the certificates' outcome names what is missing
        return
    before = _with_whole_pod_metadata(cached.decode()) if cached else None
    await apply(ctx, DEPLOYMENTS, deployment, cached, applied_before=before)


def _with_whole_pod_metadata(live: Json) -> Json:
    """The last applied object, with all labels and annotations of the pods, so that foreign ones are removed (R27)."""
    template = ((applied(live) or {}).get("spec") or {}).get("template") or {}
    return {"spec": {"template": template | {"metadata": live["spec"]["template"].get("metadata") or {}}}}


def observe(_: ClusterContext) -> Outcome:
    """Return Done: the status has no part about Discovery."""
    return Done()
