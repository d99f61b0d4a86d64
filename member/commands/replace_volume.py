"""`replace-volume` on a pod: its member or store leaves PD, then its volumes are made anew, and it with them.

A claim is deleted only on proof that what it holds is given up (I1, I2). A member or store that was given up does not
come back, so claims and pod are marked before: what was begun goes on to its end, even when the command is taken back
meanwhile. A pod that is made anew in between gets the mark from its claims (`meta.labelling`).
"""

from collections.abc import Sequence

from apis import predicates
from apis.ordinals import desired_replicas
from dataplane.errors import Conflict
from dataplane.pd import OFFLINE, UP, PDClient, Store
from kube.deletion import Destroyer
from kube.objects import Object
from kube.resources import PERSISTENT_VOLUME_CLAIMS, PODS, Resource
from member import api_clients, labels
from member.commands.annotating import withdraw
from member.commands.annotations import BUSY, LETTING_GO, SOON, Command
from member.commands.restarting import others_not_ready, restart_without_volumes, still_told
from member.context import ReconcileContext
from member.evidence import member_gone, no_store, spec_confirmed, store_gone
from member.naming import ordinal_of
from member.observed.claims import own_claims
from member.outcome import Failed, Outcome, Refused, Waiting
from member.pd.scale_in import Remove, Transfer, Voter, Wait, next_step, voters
from member.tikv.stores import is_up, not_up, own_stores

REPLACING = "ReplacingVolume"


def act(ctx: ReconcileContext, pod: Object, command: Command) -> Outcome:
    """One step of a replacement. Raises DataPlaneError, ApiError, TransportError, LeaseExpired."""
    if _is_taken_back(command) and not _is_begun(ctx, pod):
        return _stay(ctx, pod)
    match pod.metadata.labels[labels.COMPONENT]:
        case "pd":
            return _pd(ctx, pod, command)
        case "tikv":
            return _tikv(ctx, pod, command)
    return _tidb(ctx, pod, command)


def _pd(ctx: ReconcileContext, pod: Object, command: Command) -> Outcome:
    if waiting := _leave_pd(ctx, pod, command):
        return waiting
    gone = member_gone(ctx, pod.metadata.name)
    if gone is None:
        return Waiting(REPLACING, f"waiting until PD has no member of {pod.metadata.name}", SOON)
    return restart_without_volumes(ctx, pod, command, gone)


def _leave_pd(ctx: ReconcileContext, pod: Object, command: Command) -> Waiting | None:
    """Take the member of a pod out of PD, as a scale-in does; None when that is done."""
    pd, name = api_clients.pd(ctx), pod.metadata.name
    members = pd.members()
    match next_step(voters(ctx, members, pd.health(members=len(members.members))), ordinal_of(name)):
        case Wait(what):
            return Waiting("PDUnhealthy", what, BUSY)
        case Transfer() | Remove() if _is_taken_back(command):
            return _stay(ctx, pod)
        case Transfer(to):
            pd.transfer_leader(to.name)
            return Waiting(REPLACING, f"{name} leads PD; waiting until {to.name} does", SOON)
        case Remove() if len(members.members) < desired_replicas(ctx.tc, "pd"):
            return Waiting("PDUnhealthy", f"{name} leaves PD when every PD pod is a member", BUSY)
        case Remove(voter):
            return _remove(ctx, pd, pod, command, voter)
    return None


def _remove(ctx: ReconcileContext, pd: PDClient, pod: Object, command: Command, voter: Voter) -> Waiting | None:
    if waiting := _begin(ctx, pod, command):
        return waiting
    try:
        pd.delete_member_by_id(voter.id)
    except Conflict as error:
        return Waiting(REPLACING, f"PD does not let {pod.metadata.name} go yet: {error}", BUSY)
    return None


def _tikv(ctx: ReconcileContext, pod: Object, command: Command) -> Outcome:
    name = pod.metadata.name
    if busy := _busy(ctx, name, "pd"):
        return busy
    pd = api_clients.pd(ctx)
    stores = pd.stores()
    own = own_stores(ctx, stores, ordinal_of(name))
    if len(own) > 1 or any(not store.complete for store in own):
        return Failed("StoreUnknown", f"PD tells no single store of {name}")
    if own:
        waiting = _may_leave(ctx, pd, name, own[0], stores)
        return waiting or _take_offline(ctx, pd, pod, command, own[0])
    label = pod.metadata.labels.get(labels.STORE_ID, "")
    if not label.isdecimal():
        return Refused("StoreUnknown", f"{name} has no store, and no label {labels.STORE_ID} that names one")
    gone = store_gone(ctx, int(label), "") and no_store(ctx, "tikv", name)
    if gone is None:
        return Waiting(REPLACING, f"waiting until PD knows store {label} of {name} as Tombstone", LETTING_GO)
    if int(label) in pd.evicting_stores():
        pd.end_evict_leaders(int(label))
    return restart_without_volumes(ctx, pod, command, gone)


def _may_leave(ctx: ReconcileContext, pd: PDClient, pod: str, store: Store, stores: Sequence[Store]) -> Outcome | None:
    """What keeps a store from being taken offline, if it is not already (I5); None when nothing does."""
    if store.state_name == OFFLINE:
        what = f"store {store.id} of {pod} is Offline: {store.region_count} regions left to move"
        return Waiting(REPLACING, what, LETTING_GO)
    if store.state_name != UP:
        return Failed("StoreNotUp", f"store {store.id} of {pod} is {store.state_name}: it is replaced when it is Up")
    if ill := not_up(ctx, stores, store.id):
        return Waiting("StoresNotUp", f"store {store.id} of {pod} goes when all stores are Up: {ill}", BUSY)
    if not predicates.tikv_all_stores_ready(ctx.tc):
        return Waiting("StoresNotUp", f"store {store.id} of {pod} goes when every TiKV pod has its store", BUSY)
    others, wanted = sum(is_up(each) and not each.is_tiflash for each in stores) - 1, pd.config().max_replicas
    if others >= wanted:
        return None
    what = f"without store {store.id} of {pod}, {others} TiKV stores would be Up, and PD keeps {wanted} replicas"
    return Refused("TooFewStores", f"{what}: raise spec.tikv.replicas first", BUSY)


def _take_offline(ctx: ReconcileContext, pd: PDClient, pod: Object, command: Command, store: Store) -> Outcome:
    if _is_taken_back(command):
        return _stay(ctx, pod)
    if waiting := _begin(ctx, pod, command):
        return waiting
    name = pod.metadata.name
    try:
        pd.delete_store(store.id, address=store.address)
    except Conflict as error:
        return Refused("TooFewStores", f"PD keeps store {store.id} of {name}: {error}", BUSY)
    return Waiting(REPLACING, f"store {store.id} of {name} goes Offline, its regions move away", LETTING_GO)


def _tidb(ctx: ReconcileContext, pod: Object, command: Command) -> Outcome:
    name = pod.metadata.name
    if busy := _busy(ctx, name, "pd") or _busy(ctx, name, "tikv") or _busy(ctx, name, "tidb", "Scale"):
        return busy
    if waiting := others_not_ready(ctx, pod):
        return waiting
    wanted = spec_confirmed(ctx)
    if wanted is None:
        return Waiting("SpecChanged", "waiting until the cache shows the TidbCluster as it is", SOON)
    return restart_without_volumes(ctx, pod, command, wanted)


def _begin(ctx: ReconcileContext, pod: Object, command: Command) -> Waiting | None:
    """Mark a pod that is still told to, before what it holds is given up; None when it is marked."""
    evidence = still_told(ctx, pod, command)
    if isinstance(evidence, Waiting):
        return evidence
    carriers = [*_claims(ctx, pod), (PODS, evidence.object)]
    unmarked = [each for each in carriers if labels.REPLACEMENT_BEGUN not in each[1].metadata.annotations]
    for resource, carrier in unmarked:
        name = {"name": carrier.metadata.name, "namespace": ctx.namespace}
        marked = {"metadata": name | {"annotations": {labels.REPLACEMENT_BEGUN: "true"}}}
        ctx.deps.applier.apply(resource, marked, carrier)
    return Waiting(REPLACING, f"{pod.metadata.name} begins to give up its volumes", SOON) if unmarked else None


def _is_begun(ctx: ReconcileContext, pod: Object) -> bool:
    """Whether the claims, read live, are marked: the cache may show the old ones of a pod that has new ones already."""
    return any(labels.REPLACEMENT_BEGUN in claim.metadata.annotations for _, claim in _claims(ctx, pod))


def _claims(ctx: ReconcileContext, pod: Object) -> list[tuple[Resource, Object]]:
    destroyer, resource = Destroyer(ctx.deps.client), PERSISTENT_VOLUME_CLAIMS
    found = (destroyer.observe(resource, name, ctx.namespace) for name in own_claims(pod))
    return [(resource, claim.object) for claim in found if claim]


def _is_taken_back(command: Command) -> bool:
    return command.key == labels.REPLACEMENT_BEGUN


def _stay(ctx: ReconcileContext, pod: Object) -> Waiting:
    for resource, carrier in (*_claims(ctx, pod), (PODS, pod)):
        withdraw(ctx, carrier, (labels.REPLACEMENT_BEGUN,), resource)
    return Waiting(REPLACING, f"{pod.metadata.name} keeps its volumes: nothing of them was given up", SOON)


def _busy(ctx: ReconcileContext, pod: str, component: str, *phases: predicates.Phase) -> Waiting | None:
    if not predicates.in_phase(ctx.tc, component, *(phases or ("Upgrade", "Scale"))):
        return None
    return Waiting("ComponentBusy", f"the volumes of {pod} are replaced when {component} is at rest", BUSY)
