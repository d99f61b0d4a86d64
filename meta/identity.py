"""The cluster, member and store of a pod, and so of its claims and their volumes (lifecycle.md 11.4). Pure.

PD's answer in this reconcile overrides a label; if PD did not answer, labels stay unchanged (F7, F50).
"""

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import TypeAlias

from apis import predicates
from apis.cluster import Cluster
from apis.component_statuses import PDStatus, TiFlashStatus, TiKVStatus
from apis.components import DM_CLUSTER, component_names, component_types, is_component
from apis.dm_components import DMMasterStatus
from apis.shared import TiKVStore
from apis.times import parse_time, stamp
from kube.objects import Object, ObjectMeta
from member import labels
from member.labels import base_labels
from meta.metadata import DesiredMetadata

Now: TypeAlias = Callable[[], datetime]
"""Returns the current time. Called only if the result depends on it, so that other results can be reused."""

IDS = (labels.CLUSTER_ID, labels.MEMBER_ID, labels.STORE_ID)

_OWN_ID = (
    {row.name: labels.STORE_ID for row in component_types() if row.is_store}
    | dict.fromkeys(component_names(of=DM_CLUSTER), "")
    | dict.fromkeys(("pd", "dm-master"), labels.MEMBER_ID)
)
"""By component, the label with a pod's id in the data plane; for others, the label with the cluster's id.

Without a label: the components of a DMCluster without members.
"""

_JOINING = 180.0
"""Seconds for which a pod without an id stays unlabelled, because PD may still learn of it: pulling an image takes
minutes.
"""

_GONE_FOR = 30.0
"""Seconds for which PD must have listed no store of a pod before the pod records it.

Members of PD may contradict each other, and each record causes the next reconcile.
"""

_FOLLOWING = 10.0
"""Additional seconds within which a claim must be labelled after its pod."""

_FROM_CLAIM = (labels.COMPONENT, labels.NAME, labels.MANAGED_BY, labels.INSTANCE, *IDS)


def of_pod(
    tc: Cluster, cluster_id: str, pod: Object, now: Now, without_store: Callable[[], float], *, kind: str = ""
) -> DesiredMetadata:
    """The labels and annotations of a pod, from the status; `cluster_id` is empty while it is unknown.

    `without_store` returns the seconds for which PD has listed no store of the pod. `kind` is its component, for a pod
    whose component label was removed.
    """
    kind = kind or pod.metadata.labels.get(labels.COMPONENT, "")
    ids, own_id = {labels.CLUSTER_ID: cluster_id} if cluster_id else {}, _OWN_ID.get(kind)
    if own_id == labels.MEMBER_ID and (member := _member_id(tc, kind, pod.metadata.name)):
        ids[labels.MEMBER_ID] = member
    stores = _stores(tc, kind) if own_id == labels.STORE_ID else None
    if stores is None:
        return DesiredMetadata(ids)
    labelled = pod.metadata.labels.get(labels.STORE_ID, "")
    if store := store_of(stores, pod.metadata.name, labelled):
        ids[labels.STORE_ID] = store
    if kind != "tikv":
        return DesiredMetadata(ids)
    if store or not labelled:
        return DesiredMetadata(ids, without=(labels.TIKV_NO_ACTIVE_STORE_SINCE,))
    since = pod.metadata.annotations.get(labels.TIKV_NO_ACTIVE_STORE_SINCE)
    if not since and without_store() < _GONE_FOR:
        return DesiredMetadata(ids)
    return DesiredMetadata(ids, {labels.TIKV_NO_ACTIVE_STORE_SINCE: since or stamp(now())})


def joins_within(pod: Object, metadata: DesiredMetadata, now: Now) -> float:
    """Seconds for which a new pod may still get its ids, so that it is labelled once; 0: label it now."""
    meta = pod.metadata
    own = _OWN_ID.get(meta.labels.get(labels.COMPONENT, ""), labels.CLUSTER_ID)
    is_complete = not own or own in metadata.labels or not meta.labels.keys().isdisjoint(IDS)
    return 0.0 if is_complete else _time_left(meta, _JOINING, now)


def is_labelled_within(claim: Object, now: Now) -> float:
    """Seconds for which a new claim may still get its ids, so that its volume is labelled once; 0: label it now.

    A claim that a scale-in left behind gets none.
    """
    meta = claim.metadata
    if not meta.labels.keys().isdisjoint(IDS) or labels.PVC_DEFER_DELETING in meta.annotations:
        return 0.0
    own = _OWN_ID.get(meta.labels.get(labels.COMPONENT, ""), labels.CLUSTER_ID)
    return _time_left(meta, _JOINING + _FOLLOWING, now) if own else 0.0


def _time_left(meta: ObjectMeta, period: float, now: Now) -> float:
    created = parse_time(meta.creation_timestamp or "")
    # if the clock was set back, labels are not delayed
    return max(period - abs((now() - created).total_seconds()), 0.0) if created else 0.0


def of_claim(tc: Cluster, pod: Object) -> DesiredMetadata:
    """The labels and annotations of a claim: its pod's.

    A claim that is older than its pod, e.g. a restored one, also gets the labels of claims from templates.
    """
    name, carried = pod.metadata.name, pod.metadata.labels
    base = base_labels(tc, carried[labels.COMPONENT])
    ids = {key: carried[key] for key in IDS if carried.get(key)}
    return DesiredMetadata(base | ids | {labels.POD_NAME: name}, {labels.POD_NAME: name})


def of_volume(claim: Object) -> DesiredMetadata:
    """The labels and annotations of a volume: its claim's."""
    meta = claim.metadata
    picked = {key: meta.labels[key] for key in _FROM_CLAIM if meta.labels.get(key)}
    pod = meta.annotations.get(labels.POD_NAME)
    return DesiredMetadata({labels.NAMESPACE: meta.namespace} | picked, {labels.POD_NAME: pod} if pod else {})


def store_of(stores: Mapping[str, TiKVStore], pod: str, labelled: str) -> str:
    """The id of a pod's store, or empty.

    Of several stores at one address, the one that is Up, else the newest; the labelled one as long as it is Up.
    """
    own = [store for store in stores.values() if store.pod_name == pod]
    if any(store.id == labelled and store.is_up for store in own):
        return labelled
    newest = max(own, key=lambda store: (store.is_up, int(store.id)), default=None)
    return newest.id if newest else ""


def _member_id(tc: Cluster, kind: str, pod: str) -> str:
    status = predicates.status_of(tc, kind)
    if not isinstance(status, PDStatus | DMMasterStatus) or not status.synced:
        return ""
    return next((m.id for m in status.members.values() if m.name.partition(".")[0] == pod), "")


def _stores(tc: Cluster, kind: str) -> Mapping[str, TiKVStore] | None:
    """The stores of a component as PD listed them in this reconcile; None if it did not, or the component has no
    stores.
    """
    status = predicates.status_of(tc, kind) if is_component(kind, tc.kind) else None
    if not isinstance(status, TiKVStatus | TiFlashStatus) or not status.synced:
        return None
    return status.stores
