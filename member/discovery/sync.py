"""Discovery: what PD's pods ask at their first start (objects.md 10.1). Made before them, and in this order."""

from kube.objects import Json
from kube.resources import DEPLOYMENTS, ROLE_BINDINGS, ROLES, SERVICE_ACCOUNTS
from member.discovery import desired
from member.outcome import Done, Outcome, Refused
from member.records import applied
from member.round import Round
from member.writing import apply, apply_service


def act(round_: Round) -> Outcome:
    """Bring Discovery's objects to what is desired. Raises OwnerGone, ForeignOwner, ApiError, TransportError."""
    tc, listers, name = round_.tc, round_.listers, desired.name(round_.tc)
    if not desired.wanted(tc):
        return Done("not part of this cluster")
    if tc.spec.paused:
        return Refused("Paused", "spec.paused is true: nothing is written until it is false")
    apply(round_, ROLES, desired.role(tc), listers.roles.get(round_.namespace, name))
    account = listers.service_accounts.get(round_.namespace, name)
    apply(round_, SERVICE_ACCOUNTS, desired.service_account(tc), account)
    apply(round_, ROLE_BINDINGS, desired.role_binding(tc), listers.role_bindings.get(round_.namespace, name))
    _apply_deployment(round_, desired.deployment(tc, round_.settings.discovery_image))
    apply_service(round_, desired.service(tc))
    return Done("all objects are in place")


def _apply_deployment(round_: Round, deployment: Json) -> None:
    cached = round_.listers.deployments.get(round_.namespace, deployment["metadata"]["name"])
    before = applied(cached.decode()) if cached else None
    apply(round_, DEPLOYMENTS, deployment, cached, applied_before=before)
