"""Evidence from live reads of this reconcile, which every destructive act requires (F1, F5, O5, design.md 3.6).

Only the functions of this module create Evidence. The executor deletes objects, members and stores only with it
(`member.actions`), and only in the version that a live read returned: a LiveObject of `kube.deletion`, a LiveMember or
a LiveStore of `dataplane.pd`. `member.apply.stateful_set` lowers the replicas and the partition of a StatefulSet.
"""

from collections.abc import Callable, Collection, Sequence
from functools import partial
from typing import Any, TypeAlias, final

from apis.accessor import components
from apis.decoding import decode
from apis.defaulting import with_defaults
from apis.ordinals import OrdinalSet, desired_ordinals, gated
from dataplane.dm import OFFLINE, LiveMaster, LiveWorker
from dataplane.errors import ApiError, NotBootstrapped, NotFound, Unavailable
from dataplane.pd import Health, LiveMember, PDClient, Store, unreported
from dataplane.pump import PUMP_OFFLINE
from kube.deletion import Destroyer, LiveObject
from kube.objects import Json, Object
from kube.resources import NODES, PODS, Resource
from member import api_clients
from member.context import ClusterContext, DMContext, ReconcileContext
from member.labels import STORE_ID
from member.naming import address_book, ordinal_of, pod_name
from member.observed.claims import claims_of_cluster
from member.observed.nodes import Activity, Node, NodeState, activity
from member.observed.pod import Pod
from member.observed.pods import pods_of, read_pods, ready_pods
from member.outcome import Done, Waiting
from member.ownership import own_member, require_understood_members, stores_by_pod
from ports.side_by_side import both
from ports.transport import ConnectionRefused

_LIVE_READ = object()

_TOMBSTONE = "Tombstone"


class Evidence:
    """A fact that was read live in this reconcile; `what` states it in words."""

    __slots__ = ("what",)

    def __init__(self, maker: object, what: str) -> None:
        """Raise TypeError if anything but a live read creates it."""
        if maker is not _LIVE_READ:
            raise TypeError("evidence comes from a live read; use one of the functions of member.evidence")
        self.what = what

    def __and__(self, other: "Evidence") -> "Evidence":
        """The conjunction of two pieces of evidence."""
        return Evidence(_LIVE_READ, f"{self.what}; {other.what}")

    def __repr__(self) -> str:
        """The fact in words."""
        return f"<Evidence: {self.what}>"


@final
class LivePods(Evidence):
    """The pods of a component as the API server returned them in this reconcile, by name."""

    __slots__ = ("pods",)

    def __init__(self, maker: object, component: str, pods: Sequence[Object]) -> None:
        """Raise TypeError if anything but a live read creates it."""
        super().__init__(maker, f"the current pods of {component}")
        self.pods = pods


@final
class LiveStatus(Evidence):
    """The cluster's status as the API server returned it in this reconcile; its type depends on the cluster's kind."""

    __slots__ = ("status",)

    def __init__(self, maker: object, status: Any) -> None:
        """Raise TypeError if anything but a live read creates it."""
        super().__init__(maker, "the current status of the cluster")
        self.status = status


@final
class Stopped(Evidence):
    """Evidence that nothing of a pod runs, as its reachable kubelet reports: it neither votes nor serves now."""

    __slots__ = ()


@final
class Spared(Evidence):
    """Evidence from this reconcile that the data plane can do without a pod."""

    __slots__ = ()


MayGo: TypeAlias = Stopped | Spared
"""The evidence for deleting or restarting a pod (docs/rules/silence.md)."""


def spared(pod: str, why: str) -> Spared:
    """Evidence that a pod may go: the data plane has confirmed that it can do without it, or the pod was prepared."""
    return Spared(_LIVE_READ, f"pod {pod} may go: {why}")


def stopped(ctx: ClusterContext, component: str, pod: str) -> Stopped | None:
    """Evidence that nothing of a pod runs, from a live read of the pod and its node; a missing pod runs nothing.

    None if something may run. Raises ApiError, TransportError.
    """
    seen = look_up(ctx, PODS, pod, ctx.namespace)
    if isinstance(seen, Evidence):
        return Stopped(_LIVE_READ, seen.what)
    found = live_activity(ctx, component, seen)
    return Stopped(_LIVE_READ, f"pod {pod} {found.value}") if found.is_none else None


def live_activity(ctx: ClusterContext, component: str, seen: LiveObject) -> Activity:
    """The activity in the main container of a pod that was just read; reads the node live.

    Raises ApiError, TransportError.
    """
    pod = seen.object.decode_as(Pod)
    if ctx.listers.nodes is None or not pod.spec.node_name:
        return activity(pod, component, None)
    node = ctx.deps.client.find(NODES, pod.spec.node_name)
    return activity(pod, component, node.decode_as(Node).state if node else NodeState.UNKNOWN)


def shown_by(live: LiveObject, what: str) -> Evidence:
    """Evidence for what an object shows that was read live. Raises TypeError for any other object."""
    if not isinstance(live, LiveObject):
        raise TypeError(f"evidence comes from a live read: pass what observe returned, not {live!r}")
    return Evidence(_LIVE_READ, what)


def look_up(ctx: ClusterContext, resource: Resource, name: str, namespace: str = "") -> LiveObject | Evidence:
    """Read an object live; evidence of its absence if there is none (F1).

    Raises ApiError, TransportError.
    """
    seen = Destroyer(ctx.deps.client).observe(resource, name, namespace)
    return seen or Evidence(_LIVE_READ, f"{resource.kind} {name} does not exist")


def pods_live(ctx: ClusterContext, component: str) -> LivePods:
    """Read the pods of a component live. Raises ApiError, TransportError."""
    return LivePods(_LIVE_READ, component, read_pods(ctx, component))


def status_live(ctx: ClusterContext) -> LiveStatus | None:
    """Read the status live; None if the cluster is being deleted or was recreated (F4).

    Raises NotFound if the cluster is gone, other ApiErrors, TransportError.
    """
    live = ctx.deps.client.get(ctx.resource, ctx.name, ctx.namespace)
    if live.metadata.uid != ctx.owner.metadata.uid or live.metadata.deletion_timestamp:
        return None
    return LiveStatus(_LIVE_READ, decode(live.decode(), type(ctx.tc)).status)


def unobservable(ctx: ClusterContext, component: str) -> Evidence | None:
    """Evidence that a component did not report its state when this reconcile observed it; else None."""
    observed = ctx.observations.get(component, Done())
    if isinstance(observed, Done):
        return None
    return Evidence(_LIVE_READ, f"{component} does not report its state: {observed.message}")


def member_gone(ctx: ReconcileContext, pod: str) -> Evidence | None:
    """Evidence from PD that it has no member for this pod, by name or URL (I4); None if it has or may have one.

    An answer without the leader does not come from a quorum and proves nothing. Raises AddressNotUnderstood if a member
    may belong to the pod, other DataPlaneErrors.
    """

    def says(pd: PDClient) -> str:
        answer = pd.members()
        require_understood_members(ctx.tc, answer.members)
        if own_member(ctx.tc, answer.members, ordinal_of(pod)):
            return ""
        is_led = answer.leader is not None and answer.member(answer.leader.id) is not None
        return f"PD has no member for pod {pod}" if is_led and _is_ours(ctx, answer.cluster_id) else ""

    return _agreed(ctx, says)


def majority_without(pd: PDClient, member: LiveMember, members: Sequence[LiveMember]) -> Evidence | None:
    """Evidence from PD that a majority is healthy without `member`, which is not healthy itself (I9, I24).

    An answer that lacks one of `members`, which were just read, proves nothing. Raises DataPlaneError.
    """
    healths = pd.health(members=len(members))
    if unreported(healths, {str(each.id): each.name for each in members}) or not may_remove(healths, member.id):
        return None
    return Evidence(_LIVE_READ, f"PD has a healthy majority without {member.name}")


def may_remove(healths: Sequence[Health], member_id: int) -> bool:
    """True if this member is not healthy, and a majority without it is (I9, I24)."""
    lost = any(health.member_id == member_id and not health.healthy for health in healths)
    healthy = sum(health.healthy for health in healths)
    return lost and healthy > len(healths) // 2


def master_gone(ctx: DMContext, pod: str) -> Evidence | None:
    """Evidence from a quorum of DM masters that none belongs to this pod (I4). Raises DataPlaneError."""
    masters = _quorum_of_masters(ctx)
    if not masters or any(master.name == pod for master in masters):
        return None
    return Evidence(_LIVE_READ, f"DM has no master for pod {pod}")


def _quorum_of_masters(ctx: DMContext) -> Sequence[LiveMaster]:
    """All DM masters; empty unless one leads and a majority is alive, as the list may otherwise be old."""
    leader, masters = api_clients.dm_masters(ctx).led_masters()
    alive = sum(master.alive for master in masters)
    return masters if leader and alive > len(masters) // 2 else ()


def masters_without(masters: Sequence[LiveMaster], master: LiveMaster) -> Evidence | None:
    """Evidence that a majority of the masters, which were just read, lives without the dead `master` (I9, I24)."""
    alive = sum(each.alive for each in masters)
    if master.alive or alive <= len(masters) // 2:
        return None
    return Evidence(_LIVE_READ, f"DM has a majority of masters that are alive without {master.name}")


def worker_gone(ctx: DMContext, pod: str) -> Evidence | None:
    """Evidence from a quorum of DM masters that they list every other serving worker but not this one.

    The list of a new leader is empty for a moment. Raises DataPlaneError, ApiError, TransportError.
    """
    listed = {worker.name for worker in api_clients.dm_masters(ctx).workers()}
    if pod in listed or not _names_others(pods_live(ctx, "dm-worker"), pod, listed) or not _quorum_of_masters(ctx):
        return None
    return Evidence(_LIVE_READ, f"DM has no worker for pod {pod}")


def _names_others(pods: LivePods, pod: str, listed: Collection[str]) -> bool:
    """True if the list has every other Ready pod; an empty list counts only if no other pod exists."""
    others = [each for each in pods.pods if each.metadata.name != pod]
    expected = ready_pods(others) if listed else others
    return all(obj.metadata.name in listed for obj in expected)


def worker_unbound(worker: LiveWorker) -> Evidence | None:
    """Evidence that a worker, which was just read, replicates no source."""
    what = f"DM-worker {worker.name} is {worker.stage}, without a source"
    return None if worker.source else Evidence(_LIVE_READ, what)


def worker_replaceable(worker: LiveWorker, workers: Sequence[LiveWorker]) -> Evidence | None:
    """Evidence that one of `workers`, all just read, can take over the source of a leaving worker."""
    free = (each for each in workers if each.name != worker.name and each.stage not in ("", OFFLINE))
    heir = next((each for each in free if not each.source), None)
    if heir is None:
        return None
    return Evidence(_LIVE_READ, f"DM-worker {heir.name} is free to take over source {worker.source} of {worker.name}")


def store_gone(ctx: ReconcileContext, store_id: int, address: str) -> Evidence | None:
    """Evidence from PD that a store is Tombstone, or that this cluster's PD no longer has it (I3).

    If `address` is known, a store at a different address proves nothing. Raises DataPlaneError.
    """

    def says(pd: PDClient) -> str:
        try:
            store = pd.store(store_id)
        except NotFound:
            return f"PD no longer has store {store_id}" if _is_ours(ctx, pd.cluster_id()) else ""
        is_gone = store.state_name == _TOMBSTONE and address in ("", store.address)
        return f"store {store_id} is Tombstone" if is_gone else ""

    return _agreed(ctx, says)


def _agreed(ctx: ReconcileContext, says: Callable[[PDClient], str]) -> Evidence | None:
    """Evidence for what PD says, if each of its members that answers says it too; None if PD does not say it.

    PD's Service selects one member for each request, and that one may lie. The others are asked only while the first
    may still confirm, so that the polls of a wait cost one answer; a slow one does not delay them. Raises Unavailable
    if the members contradict each other, other DataPlaneErrors.
    """
    pd, members, first = api_clients.pd(ctx), _ready_members(ctx), list[str]()

    def service() -> str:
        what = ""
        try:
            what = says(pd)
        finally:
            first.append(what)
        return what

    def witness(pod: str) -> str | None:
        return None if first == [""] else _witness(ctx, ordinal_of(pod), says)

    questions: list[Callable[[], str | None]] = [service, *(partial(witness, pod) for pod in members)]
    what, *heard = ctx.deps.dataplane.side_by_side.run(questions)
    if not what:
        return None
    denying = [pod for pod, answer in zip(members, heard, strict=True) if answer == ""]
    if denying:
        reason = f"PD's members contradict each other: one says that {what}, {', '.join(denying)} denies it"
        raise Unavailable("GET", pd.base_url, f"{reason}; nothing is removed meanwhile")
    return Evidence(_LIVE_READ, what)


def _ready_members(ctx: ReconcileContext) -> Sequence[str]:
    """The Ready pods of the cluster's own PD."""
    return [pod.metadata.name for pod in ready_pods(pods_of(ctx, "pd"))] if ctx.tc.spec.pd else ()


def _witness(ctx: ReconcileContext, ordinal: int, says: Callable[[PDClient], str]) -> str | None:
    """What a PD member says when asked alone, None if it does not answer or has no leader."""
    try:
        return says(api_clients.pd_member(ctx, address_book(ctx.tc).pd_member(ordinal)))
    except (Unavailable, NotBootstrapped):
        return None


def no_store(ctx: ReconcileContext, component: str, pod: str) -> Evidence | None:
    """Evidence from PD that no store at this pod's address is left, apart from Tombstones (I3).

    This also holds for a pod that never registered. An empty list proves nothing if PD is bootstrapped, or if the
    cluster has ever had a store: a newly elected leader may claim that it is not bootstrapped. Raises
    AddressNotUnderstood if a store may belong to the pod, other DataPlaneErrors.
    """

    def says(pd: PDClient) -> str:
        def listed() -> Sequence[Store] | None:
            try:
                return pd.stores()
            except NotBootstrapped:
                return None

        found, cluster_id = both(ctx.deps.dataplane.side_by_side, listed, pd.cluster_id)
        stores, believable = (found, bool(found)) if found is not None else ((), not _has_had_stores(ctx))
        there = ordinal_of(pod) in stores_by_pod(ctx.tc, component, stores)
        return "" if there or not believable or not _is_ours(ctx, cluster_id) else f"PD has no store for pod {pod}"

    return _agreed(ctx, says)


def _has_had_stores(ctx: ReconcileContext) -> bool:
    """True if the status, or a label of a volume claim, mentions a store."""
    return bool(ctx.status.tikv.stores) or any(STORE_ID in claim.metadata.labels for claim in claims_of_cluster(ctx))


def not_serving(ctx: ClusterContext, component: str, pod: str, ask: Callable[[], object]) -> Evidence | None:
    """Evidence that a store's pod does not serve, from live reads of the pod and a call with `ask` (I1, I3).

    It is the second witness when PD lists no store for a pod, as the list may be older than the store. A silent pod may
    serve as long as its kubelet reports that something runs in it. Raises kube's ApiError, TransportError,
    BadTlsMaterial.
    """
    seen = look_up(ctx, PODS, pod, ctx.namespace)
    if isinstance(seen, Evidence):
        return seen
    try:
        ask()
    except Unavailable as error:
        refused = isinstance(error.cause, ConnectionRefused)
        if refused or (error.cause is not None and live_activity(ctx, component, seen).is_none):
            return shown_by(seen, f"pod {pod} does not serve: {error}")
    except ApiError:
        pass
    return None


def pump_node_gone(ctx: ReconcileContext, pod: str) -> Evidence | None:
    """Evidence from PD that this pod has no Pump node, or one whose binlogs have all been read (lifecycle.md 8.8).

    PD never removes a node from the list, so a list that lacks the nodes of other running pods proves nothing. Raises
    DataPlaneError, ApiError, TransportError.
    """
    book = address_book(ctx.tc)
    owned = [(book.pump_ordinal(each.host), each) for each in api_clients.pump_nodes(ctx)]
    nodes = [node for ordinal, node in owned if ordinal == ordinal_of(pod)]
    if any(each.state != PUMP_OFFLINE for each in nodes) or not is_same_cluster(ctx):
        return None
    if nodes:
        return Evidence(_LIVE_READ, f"Pump node {nodes[0].id} is offline")
    listed = {pod_name(ctx.tc, "pump", ordinal) for ordinal, _ in owned if ordinal is not None}
    if not _names_others(pods_live(ctx, "pump"), pod, listed):
        return None
    return Evidence(_LIVE_READ, f"PD has no Pump node for pod {pod}")


def spec_confirmed(ctx: ClusterContext) -> Evidence | None:
    """Evidence that the live cluster is the one that this reconcile decides upon, with the same pods wanted (F4, F5).

    It compares the spec, delete slots that count, and the failures and volumes to replace that the status records.
    Raises ApiError, TransportError.
    """
    decided_on = ctx.owner
    live = ctx.deps.client.find(ctx.resource, ctx.name, ctx.namespace)
    if live is None or live.metadata.uid != decided_on.metadata.uid or live.metadata.deletion_timestamp:
        return None
    now, then = live.decode(), decided_on.decode()
    if now.get("spec") != then.get("spec"):
        return None
    # the number of pods also depends on failures and volumes to replace, and on delete slots
    if _status_and_annotations(now) != _status_and_annotations(then) and _pods(now, ctx) != _pods(then, ctx):
        return None
    return Evidence(_LIVE_READ, f"the {ctx.tc.kind}, read live, asks for it")


def spec_or_wait(ctx: ClusterContext, again: float) -> Evidence | Waiting:
    """Evidence that the live spec confirms this reconcile's decisions, or the wait for the cache to catch up.

    `again`: seconds until the next check. Raises like `spec_confirmed`.
    """
    outdated = Waiting("SpecChanged", f"waiting for the operator's cache to show the current {ctx.tc.kind}", again)
    return spec_confirmed(ctx) or outdated


def _status_and_annotations(cluster: Json) -> tuple[Json | None, Json | None]:
    return cluster.get("status"), cluster["metadata"].get("annotations")


def _pods(cluster: Json, ctx: ClusterContext) -> dict[str, OrdinalSet]:
    """The pods that each component wants, including substitutes and spares."""
    tc = gated(with_defaults(decode(cluster, type(ctx.tc))), ctx.tc.metadata.counts_slots)
    return {component.name: desired_ordinals(tc, component.name) for component in components(tc)}


def is_same_cluster(ctx: ReconcileContext) -> bool:
    """True if the PD that answers belongs to this cluster (F40, I7). Raises DataPlaneError."""
    return _is_ours(ctx, api_clients.pd(ctx).cluster_id())


def require(evidence: object, what: str) -> Evidence:
    """The evidence. Raises TypeError unless it is Evidence; `what` names the act that requires it."""
    if not isinstance(evidence, Evidence):
        raise TypeError(f"{what} takes evidence from a function of member.evidence, not {evidence!r}")
    return evidence


def _is_ours(ctx: ReconcileContext, cluster_id: int) -> bool:
    return bool(cluster_id) and ctx.status.cluster_id in ("", str(cluster_id))
