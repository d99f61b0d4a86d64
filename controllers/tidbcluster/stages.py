"""What one reconcile of a TidbCluster does, in order.

First every component is observed, with reads alone; then the stages act, each on what was seen in this same reconcile.
A stage that waits or fails never stops one that does not depend on it: the gates between components are the members'
own (lifecycle.md 3.1) and are judged on the fresh status.
"""

from collections.abc import Callable
from dataclasses import dataclass

import structlog
from structlog.contextvars import bound_contextvars

from dataplane.errors import DataPlaneError
from kube.apply import ForeignOwner
from kube.errors import ApiError, Conflict
from member.apply.writes import OwnerGone
from member.components import behaviours, unsupported
from member.context import ReconcileContext
from member.outcome import Failed, Outcome, Refused, Waiting
from member.volumes import changes as volume_changes
from meta import labelling, locations, orphan_pods, pvc_cleaner, reclaim_policy
from ports.transport import TransportError

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Stage:
    """One step of the reconcile; `name` is also the label of its errors in the metrics."""

    name: str
    run: Callable[[ReconcileContext], Outcome]


def observations() -> tuple[Stage, ...]:
    """What is looked at first, in order."""
    return tuple(Stage(each.name, each.observe) for each in behaviours())


def stages() -> tuple[Stage, ...]:
    """What acts, in order."""
    return (
        Stage("pv_reclaim_policy", reclaim_policy.act),
        Stage("orphan_pods_cleaner", orphan_pods.act),
        *(Stage(each.name, each.act) for each in behaviours()),
        Stage("meta", labelling.act),
        Stage("locations", locations.act),
        Stage("pvc_cleaner", pvc_cleaner.act),
        Stage("pvc_modifier", volume_changes.act),
    )


EXPECTED = (ApiError, TransportError, DataPlaneError, ForeignOwner)
"""What the outside may refuse a stage with; the class is the reason then."""


def run(ctx: ReconcileContext) -> None:
    """Observe, then act; what each stage answered is left in `ctx.outcomes`."""
    for stage in observations():
        ctx.observations[stage.name] = attempt(stage, ctx)
    if refused := {name: seen for name, seen in ctx.observations.items() if isinstance(seen, Refused)}:
        # such as another cluster's PD (F40, I7)
        ctx.outcomes |= refused
        return
    for stage in stages():
        ctx.outcomes[stage.name] = attempt(stage, ctx)
    if parts := unsupported(ctx.tc):
        ctx.outcomes["spec"] = Refused(
            "NotYetSupported", f"{', '.join(parts)}: this version does not manage this yet; the rest is kept in order"
        )


def attempt(stage: Stage, ctx: ReconcileContext) -> Outcome:
    """Run a stage; what the outside refused is its answer, what is a mistake of ours goes on to the worker."""
    try:
        with bound_contextvars(stage=stage.name):
            return stage.run(ctx)
    except Conflict as error:
        # F3: the decision was made on an outdated object; the next reconcile decides again
        return Waiting("Conflict", f"something else wrote at the same moment: {error}", retry_after=0.5)
    except OwnerGone as error:
        return Waiting("ClusterDeleted", str(error))
    except EXPECTED as error:
        log.warning("stage failed", stage=stage.name, error=str(error))
        return Failed(type(error).__name__, str(error))
