"""`replace-volume` on a pod: its member or store leaves PD, then its volumes and the pod are recreated.

A claim is deleted only with evidence that its data is given up (I1, I2). A removed member or store cannot return, so
claims and pod are marked first, and a replacement that has begun is completed even if the user withdraws the command.
A pod that is recreated in between gets the mark from its claims (`meta.labelling`).
"""

from apis import pod_commands, predicates
from kube.deletion import Destroyer
from kube.objects import Object
from kube.resources import PERSISTENT_VOLUME_CLAIMS, PODS, Resource
from member import labels
from member.commands.annotating import withdraw
from member.commands.annotations import RETRY_BUSY, RETRY_SOON, Command
from member.commands.restarting import confirm
from member.context import ClusterContext
from member.evidence import Evidence
from member.observed.claims import own_claims
from member.observed.lost_claims import volume_being_deleted
from member.outcome import Waiting

REPLACING = "ReplacingVolume"


def is_cancelled(ctx: ClusterContext, pod: Object, command: Command) -> bool:
    """True if the user has withdrawn a replacement before it began."""
    return is_withdrawn(command) and not has_begun(ctx, pod)


def begin(ctx: ClusterContext, pod: Object, command: Command) -> Evidence | Waiting:
    """Mark a pod that still carries the command, and its claims; return the evidence once all are marked."""
    confirmed = confirm(ctx, pod, command)
    if isinstance(confirmed, Waiting):
        return confirmed
    carriers = [*_claims(ctx, pod), (PODS, confirmed.pod.object)]
    unmarked = [each for each in carriers if pod_commands.REPLACEMENT_BEGUN not in each[1].metadata.annotations]
    for resource, carrier in unmarked:
        name = {"name": carrier.metadata.name, "namespace": ctx.namespace}
        marked = {"metadata": name | {"annotations": {pod_commands.REPLACEMENT_BEGUN: "true"}}}
        ctx.deps.applier.apply(resource, marked, carrier)
    return (
        Waiting(REPLACING, f"starting to replace the volumes of pod {pod.metadata.name}", RETRY_SOON)
        if unmarked
        else confirmed.unchanged
    )


def has_begun(ctx: ClusterContext, pod: Object) -> bool:
    """True if a claim, read live, is marked: the cache may show a pod's former claims."""
    return any(pod_commands.REPLACEMENT_BEGUN in claim.metadata.annotations for _, claim in _claims(ctx, pod))


def store_label(ctx: ClusterContext, pod: Object) -> str:
    """The id of the store that left, from the labels of the pod or its claims; empty if neither has it."""
    carriers = (pod, *(claim for _, claim in _claims(ctx, pod)))
    return next(filter(None, (each.metadata.labels.get(labels.STORE_ID) for each in carriers)), "")


def _claims(ctx: ClusterContext, pod: Object) -> list[tuple[Resource, Object]]:
    destroyer, resource = Destroyer(ctx.deps.client), PERSISTENT_VOLUME_CLAIMS
    found = (destroyer.observe(resource, name, ctx.namespace) for name in own_claims(pod))
    return [(resource, claim.object) for claim in found if claim]


def is_withdrawn(command: Command) -> bool:
    return command.key == pod_commands.REPLACEMENT_BEGUN


def cancel(ctx: ClusterContext, pod: Object) -> Waiting:
    for resource, carrier in (*_claims(ctx, pod), (PODS, pod)):
        withdraw(ctx, carrier, (pod_commands.REPLACEMENT_BEGUN,), resource)
    return Waiting(REPLACING, f"the replacement was cancelled; pod {pod.metadata.name} keeps its volumes", RETRY_SOON)


def component_busy(ctx: ClusterContext, pod: str, component: str, *phases: predicates.Phase) -> Waiting | None:
    busy = predicates.in_phase(ctx.tc, component, *(phases or ("Upgrade", "Scale")))
    if not busy or volume_being_deleted(ctx, component):
        # a roll does not progress while a volume is being deleted
        return None
    what = f"waiting until {component} is neither being upgraded nor scaled before replacing the volumes of pod {pod}"
    return Waiting("ComponentBusy", what, RETRY_BUSY)
