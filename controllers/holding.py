"""A cluster whose present spec is not valid is cared for at its last valid one, paused (lifecycle.md 2.2)."""

from msgspec import structs

from kube.objects import Object
from member.context import ClusterContext, Held
from member.outcome import Refused


def hold(ctx: ClusterContext, owner: Object, refusal: Refused, remakes: bool) -> None:
    """A cluster that its user has paused, before or in the spec that is not valid, is paused and no more."""
    if not ctx.tc.spec.paused and owner.decode()["spec"].get("paused") is not True:
        ctx.held = Held.REMAKING if remakes else Held.OBSERVING
    ctx.tc = structs.replace(ctx.tc, spec=structs.replace(ctx.tc.spec, paused=True))
    ctx.outcomes["spec"] = refusal
