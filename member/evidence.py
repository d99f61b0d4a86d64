"""What only a live read of this reconcile can show (F1, F5, O5, design.md 3.6).

Making a StatefulSet smaller and lowering its partition take Evidence, and nothing but the functions here makes one. For
the deletion of objects of Kubernetes there is `kube.deletion.Evidence`.
"""

from collections.abc import Sequence

from apis.accessor import components
from apis.decoding import decode
from apis.defaulting import with_defaults
from apis.identity import instance_name
from apis.ordinals import desired_replicas
from dataplane.errors import NotBootstrapped, NotFound
from dataplane.pd import Store
from kube.objects import Json, Object
from kube.resources import PODS, TIDB_CLUSTERS
from member import api_clients, labels
from member.context import ReconcileContext
from member.naming import address_book, ordinal_of, pd_member_name

_LIVE_READ = object()

_TOMBSTONE = "Tombstone"


class Evidence:
    """Something that was seen live in this reconcile; `what` says it in words."""

    __slots__ = ("what",)

    def __init__(self, maker: object, what: str) -> None:
        """Raise TypeError for any maker but a live read."""
        if maker is not _LIVE_READ:
            raise TypeError("a proof comes from a live read in member.proofs")
        self.what = what

    def __repr__(self) -> str:
        """What was seen."""
        return f"<Evidence: {self.what}>"


def pods_live(ctx: ReconcileContext, component: str) -> tuple[list[Object], Evidence]:
    """The pods of a component as the API server has them now, by name. Raises ApiError, TransportError."""
    selector = (
        f"{labels.NAME}={labels.TIDB_CLUSTER},{labels.MANAGED_BY}={labels.TIDB_OPERATOR},"
        f"{labels.INSTANCE}={instance_name(ctx.tc)},{labels.COMPONENT}={component}"
    )
    page = ctx.deps.client.list_page(PODS, ctx.namespace, label_selector=selector)
    pods = sorted(page.items, key=lambda pod: pod.metadata.name)
    return pods, Evidence(_LIVE_READ, f"the pods of {component} as they are now")


def member_gone(ctx: ReconcileContext, pod: str) -> Evidence | None:
    """Whether PD, asked now, has no member of this pod: by neither of its names, by none of its URLs (I4).

    Raises DataPlaneError.
    """
    answer = api_clients.pd(ctx).members()
    names = {pd_member_name(ctx.tc, pod).lower(), pod.lower()}
    book, ordinal = address_book(ctx.tc), ordinal_of(pod)
    for member in answer.members:
        urls = (*member.client_urls, *member.peer_urls)
        if member.name.lower() in names or any(book.ordinal_of("pd", url) == ordinal for url in urls):
            return None
    if not answer.members or not _is_ours(ctx, answer.cluster_id):
        return None
    return Evidence(_LIVE_READ, f"PD has no member of {pod}")


def store_gone(ctx: ReconcileContext, store_id: int, address: str) -> Evidence | None:
    """Whether PD, asked now, knows a store as Tombstone, or, being this cluster's PD, not at all any more (I3).

    A store at another address than `address`, when that is known, proves nothing. Raises DataPlaneError.
    """
    pd = api_clients.pd(ctx)
    try:
        store = pd.store(store_id)
    except NotFound:
        gone = _is_ours(ctx, pd.cluster_id())
        return Evidence(_LIVE_READ, f"PD does not know store {store_id} any more") if gone else None
    if store.state_name != _TOMBSTONE or (address and store.address != address):
        return None
    return Evidence(_LIVE_READ, f"store {store_id} is Tombstone")


def no_store(ctx: ReconcileContext, component: str, pod: str) -> Evidence | None:
    """Whether PD, asked now, has no store at the address of this pod, unless it is Tombstone (I3).

    That holds for a pod that never registered as well. A PD that knows of no store at all, though it is bootstrapped,
    proves nothing. Raises DataPlaneError.
    """
    pd, book = api_clients.pd(ctx), address_book(ctx.tc)
    try:
        stores: Sequence[Store] = pd.stores()
        believable = bool(stores)
    except NotBootstrapped:
        stores, believable = (), not ctx.status.tikv.stores
    there = any(book.ordinal_of(component, store.address) == ordinal_of(pod) for store in stores)
    if there or not believable or not _is_ours(ctx, pd.cluster_id()):
        return None
    return Evidence(_LIVE_READ, f"PD has no store of {pod}")


def spec_confirmed(ctx: ReconcileContext) -> Evidence | None:
    """Whether the TidbCluster, read live, is the one, and wants the pods, that this reconcile decides upon (F4, F5).

    Beside the spec that is what the status records of failures and of volumes to replace. Raises ApiError,
    TransportError.
    """
    decided_on = ctx.owner
    live = ctx.deps.client.find(TIDB_CLUSTERS, ctx.name, ctx.namespace)
    if live is None or live.metadata.uid != decided_on.metadata.uid or live.metadata.deletion_timestamp:
        return None
    now, then = live.decode(), decided_on.decode()
    if now.get("spec") != then.get("spec") or _replicas(now, ctx) != _replicas(then, ctx):
        return None
    return Evidence(_LIVE_READ, "the TidbCluster wants what this reconcile decides upon")


def _replicas(cluster: Json, ctx: ReconcileContext) -> dict[str, int]:
    """How many pods each component wants, substitutes and spares included."""
    tc = with_defaults(decode(cluster, type(ctx.tc)))
    return {each.name: desired_replicas(tc, each.name) for each in components(tc)}


def same_cluster(ctx: ReconcileContext) -> Evidence | None:
    """Whether PD, asked now, is that of this cluster (F40, I7). Raises DataPlaneError."""
    if not _is_ours(ctx, api_clients.pd(ctx).cluster_id()):
        return None
    return Evidence(_LIVE_READ, "PD is that of this cluster")


def _is_ours(ctx: ReconcileContext, cluster_id: int) -> bool:
    return bool(cluster_id) and ctx.status.cluster_id in ("", str(cluster_id))
