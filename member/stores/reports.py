"""PD's live reports of stores: their owners, and the stores that do not serve."""

import re
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import TypeVar

from apis.shared import TiKVStore
from apis.times import parse_time
from dataplane.pd import UP, Store
from kube.objects import Object
from member.context import ReconcileContext
from member.labels import CONTROLLER_REVISION_HASH
from member.naming import address_book, pod_name
from member.objects.stateful_set import lowest_restarted
from member.observed.pod import Pod
from member.ownership import stores_by_pod
from member.stores.kind import StoreKind

_S = TypeVar("_S", bound=Store)

_UNSEEN = 5.0
"""The most seconds that a container may have run before this process noticed it."""

_WITHOUT_STORE = "without a store"

_SILENCE = 30.0
"""PD calls a silent store Disconnected after 20 s. After this many seconds, Up cannot date from before a restart."""
_ADDRESS = re.compile(
    r"(?P<pod>(?P<set>[^.]+)-(?P<ordinal>\d+))\.[^.]+\.(?P<namespace>[^.]+)\.svc(\.(?P<domain>.+))?:\d+"
)
"""The address that a store advertises: pod, headless Service, namespace and, optionally, the Kubernetes domain."""


def own_stores(ctx: ReconcileContext, kind: StoreKind, stores: Sequence[_S], ordinal: int) -> Sequence[_S]:
    """The stores of a pod. Raises AddressNotUnderstood if the owner of a store is ambiguous."""
    return stores_by_pod(ctx.tc, kind.name, stores).get(ordinal, ())


def not_up(
    ctx: ReconcileContext, kind: StoreKind, stores: Sequence[Store], besides: int, pods: Sequence[Object]
) -> str:
    """The stores that do not serve, peers' stores included (F13), in words; empty if all serve.

    For TiKV, TiFlash's stores count as well; for TiFlash, whose learners do not vote, only its own. PD reports the
    states; `pods` are the pods of the kind, which show what PD may not have noticed yet. A store that failover has
    given up counts until it holds no regions: until then, the absence of another store may cost a region its majority
    (F13).
    """
    counting = stores if kind.leaders else [store for store in stores if kind.has(store)]
    others = (store for store in counting if store.id != besides and not _is_empty(ctx, store, stores))
    return ", ".join(what for store in others if (what := _trouble(ctx, kind, store, pods)))


def store_of(ctx: ReconcileContext, kind: StoreKind, pod: str) -> TiKVStore | None:
    """The store of a pod, according to PD's last report in this reconcile."""
    return next((store for store in kind.status_in(ctx).stores.values() if store.pod_name == pod), None)


def without_store(ctx: ReconcileContext, pod: Object) -> float:
    """Seconds for which this process has known that a pod has no store."""
    return ctx.memory.stopwatches.look(_WITHOUT_STORE, pod.metadata.uid, ctx.deps.clock).seconds


def has_store(ctx: ReconcileContext, pod: Object) -> None:
    """Record that a pod has a store now."""
    ctx.memory.stopwatches.forget(_WITHOUT_STORE, pod.metadata.uid)


def is_up(store: Store) -> bool:
    """True if PD reports, in a complete answer, that a store is Up."""
    return store.complete and store.state_name == UP


def restarting(
    ctx: ReconcileContext, kind: StoreKind, stores: Sequence[Store], pods: Sequence[Object]
) -> Iterator[Store]:
    """The stores that PD still reports as Up from before a restart, which it notices only after 20 s (F13)."""
    return (store for store in stores if is_up(store) and _is_restarting(ctx, kind, store, pods))


def _is_empty(ctx: ReconcileContext, store: Store, stores: Sequence[Store]) -> bool:
    """True if failover has given up a store, and PD has moved all its regions.

    A PD that reports no regions on any store proves nothing.
    """
    records = ctx.status.tikv.failure_stores | ctx.status.tiflash.failure_stores
    given_up = any(record.store_id == str(store.id) for record in records.values())
    return given_up and store.region_count == 0 and any(each.region_count for each in stores)


def _trouble(ctx: ReconcileContext, kind: StoreKind, store: Store, pods: Sequence[Object]) -> str:
    what = f"store {store.id} ({store.address})"
    if not store.complete:
        return f"{what} is unknown"
    if store.state_name != UP:
        return f"{what} is {store.state_name}" + (" and still holds regions" if store.region_count else "")
    return f"{what} has not reported to PD since its restart" if _is_restarting(ctx, kind, store, pods) else ""


def _is_restarting(ctx: ReconcileContext, kind: StoreKind, store: Store, pods: Sequence[Object]) -> bool:
    """True if the process that PD reports as Up is not the process that runs now.

    `pods` are the cluster's own pods of the kind. The pods of peers are read if they are in this Kubernetes cluster;
    about all others nothing is known.
    """
    if not kind.has(store):
        return False
    ordinal = address_book(ctx.tc).ordinal_of(kind.name, store.address)
    if ordinal is None:
        pod, stays = peer_pod(ctx, store.address)
        if pod is None or not stays:
            return not stays
    else:
        name = pod_name(ctx.tc, kind.name, ordinal)
        pod = next((each for each in pods if each.metadata.name == name), None)
    since = running_since(kind, pod) if pod and not pod.metadata.deletion_timestamp else None
    if pod is None or since is None:
        return True
    known = known_to_run(ctx, kind, pod)
    return known < _SILENCE and not _has_reported(store, since, known, _restarted_at_once(ctx, kind, pod, since))


def running_since(kind: StoreKind, pod: Object) -> datetime | None:
    """The start time of a store's container; None if it does not run."""
    return parse_time(pod.decode_as(Pod).running_since(kind.name))


def known_to_run(ctx: ReconcileContext, kind: StoreKind, pod: Object) -> float:
    """Seconds for which this process has known that the container of a store runs."""
    return ctx.memory.stopwatches.look(_running(pod), _container_of(kind, pod), ctx.deps.clock).seconds


def _running(pod: Object) -> str:
    return f"running {pod.metadata.namespace}/{pod.metadata.name}"


def _container_of(kind: StoreKind, pod: Object) -> str:
    seen = pod.decode_as(Pod)
    return f"{pod.metadata.uid} {seen.restarts(kind.name)} {seen.running_since(kind.name)}"


def _restarted_at_once(ctx: ReconcileContext, kind: StoreKind, pod: Object, since: datetime) -> bool:
    """True if the previous container of the pod started in the same second as this one, or in the second before."""
    before = (key for key in ctx.memory.stopwatches.known(_running(pod)) if key != _container_of(kind, pod))
    times = (parse_time(key.rpartition(" ")[2]) for key in before)
    return any(time and 0 <= (since - time).total_seconds() <= 1 for time in times)


def _has_reported(store: Store, since: datetime, known: float, restarted_at_once: bool) -> bool:
    """True if PD has a start time or, without one, a heartbeat of the store from after the start of its container.

    The start time is by the clock of the store's machine, heartbeats by PD's clock. If a clock was set back, the
    previous process may seem younger than the container: then the time lies beyond what this process can have observed.
    Both are whole seconds, so after two starts in one second only a heartbeat in the next second proves which of them
    reported.
    """
    heard = store.last_heartbeat / 1e9
    reported = heard - 1.0 if restarted_at_once else store.start_timestamp or heard
    return 0 <= reported - since.timestamp() <= known + _UNSEEN


def peer_pod(ctx: ReconcileContext, address: str) -> tuple[Object | None, bool]:
    """The cached pod at a store's address, and True if the pod is expected to stay.

    A pod does not stay while it is missing or terminating, or while its StatefulSet still has to restart it. Nothing is
    known of a pod in another Kubernetes cluster, i.e. with another domain: (None, True).
    """
    match = _ADDRESS.fullmatch(address)
    if match is None or (match["domain"] or ctx.tc.spec.cluster_domain) != ctx.tc.spec.cluster_domain:
        return None, True
    owner = ctx.listers.stateful_sets.get(match["namespace"], match["set"])
    if owner is None:
        return None, True
    pod, body = ctx.listers.pods.get(match["namespace"], match["pod"]), owner.decode()
    if pod is None or pod.metadata.deletion_timestamp:
        return pod, False
    newest = (body.get("status") or {}).get("updateRevision")
    outdated = pod.metadata.labels.get(CONTROLLER_REVISION_HASH) != newest
    reached = int(match["ordinal"]) >= lowest_restarted(body)
    return pod, not (newest and outdated and reached)
