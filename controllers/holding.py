"""Handling of an invalid spec: the operator maintains the cluster by its last valid spec, paused (lifecycle.md 2.2)."""

from msgspec import structs

from kube.objects import Object
from member.context import ClusterContext, Held
from member.outcome import Refused


def hold(ctx: ClusterContext, owner: Object, refusal: Refused, remakes: bool) -> None:
    """Mark the context as held: paused, with `refusal` as the outcome of the spec.

    With `remakes` the operator recreates missing objects. A cluster that its user paused, in the valid or the invalid
    spec, is only paused.
    """
    if not ctx.tc.spec.paused and owner.decode()["spec"].get("paused") is not True:
        ctx.held = Held.REMAKING if remakes else Held.OBSERVING
    ctx.tc = structs.replace(ctx.tc, spec=structs.replace(ctx.tc.spec, paused=True))
    ctx.outcomes["spec"] = refusal
