"""The cluster, member and store of a pod, and so of its claims and their volumes (lifecycle.md 11.4). Pure.

PD's answer in this reconcile overrides a label; if PD did not answer, labels stay unchanged (F7, F50).
"""

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import TypeAlias

from apis import predicates
from apis.cluster import Cluster
from apis.component_statuses import PDStatus, TiFlashStatus, TiKVStatus
from apis.components import DM_CLUSTER, component_type, is_component
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

_WITH_MEMBERS = ("pd", "dm-master")
"""Components whose pods are members of a quorum."""

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
    ids = {labels.CLUSTER_ID: cluster_id}
    if kind in _WITH_MEMBERS:
        ids[labels.MEMBER_ID] = _member_id(tc, kind, pod.metadata.name)
    stores = _stores(tc, kind)
    if stores is None:
        return DesiredMetadata(_given(ids))
    labelled = pod.metadata.labels.get(labels.STORE_ID, "")
    store = store_of(stores, pod.metadata.name, labelled)
    ids[labels.STORE_ID] = store
    if kind != "tikv":
        return DesiredMetadata(_given(ids))
    if store or not labelled:
        return DesiredMetadata(_given(ids), without=(labels.TIKV_NO_ACTIVE_STORE_SINCE,))
    since = pod.metadata.annotations.get(labels.TIKV_NO_ACTIVE_STORE_SINCE)
    if not since and without_store() < _GONE_FOR:
        return DesiredMetadata(_given(ids))
    return DesiredMetadata(_given(ids), {labels.TIKV_NO_ACTIVE_STORE_SINCE: since or stamp(now())})


def joins_within(pod: Object, metadata: DesiredMetadata, now: Now) -> float:
    """Seconds for which a new pod may still get its ids, so that it is labelled once; 0: label it now."""
    meta = pod.metadata
    own = _own_id(meta.labels.get(labels.COMPONENT, ""))
    is_complete = not own or own in metadata.labels or not meta.labels.keys().isdisjoint(IDS)
    return 0.0 if is_complete else _time_left(meta, _JOINING, now)


def is_labelled_within(claim: Object, now: Now) -> float:
    """Seconds for which a new claim may still get its ids, so that its volume is labelled once; 0: label it now.

    A claim that a scale-in left behind gets none.
    """
    meta = claim.metadata
    if not meta.labels.keys().isdisjoint(IDS) or labels.PVC_DEFER_DELETING in meta.annotations:
        return 0.0
    own = _own_id(meta.labels.get(labels.COMPONENT, ""))
    return _time_left(meta, _JOINING + _FOLLOWING, now) if own else 0.0


def _time_left(meta: ObjectMeta, period: float, now: Now) -> float:
    created = parse_time(meta.creation_timestamp or "")
    # if the clock was set back, labels are not delayed
    return max(period - abs((now() - created).total_seconds()), 0.0) if created else 0.0


def _own_id(kind: str) -> str:
    """The label with a pod's id in the data plane, or with the cluster's id for a component without ids."""
    if kind in _WITH_MEMBERS:
        return labels.MEMBER_ID
    if is_component(kind, DM_CLUSTER):
        return ""
    is_store = is_component(kind) and component_type(kind).is_store
    return labels.STORE_ID if is_store else labels.CLUSTER_ID


def of_claim(tc: Cluster, pod: Object) -> DesiredMetadata:
    """The labels and annotations of a claim: its pod's.

    A claim that is older than its pod, e.g. a restored one, also gets the labels of claims from templates.
    """
    name, carried = pod.metadata.name, pod.metadata.labels
    base = base_labels(tc, carried[labels.COMPONENT])
    return DesiredMetadata(base | _picked(carried, IDS) | {labels.POD_NAME: name}, {labels.POD_NAME: name})


def of_volume(claim: Object) -> DesiredMetadata:
    """The labels and annotations of a volume: its claim's."""
    meta = claim.metadata
    own = {labels.NAMESPACE: meta.namespace}
    return DesiredMetadata(own | _picked(meta.labels, _FROM_CLAIM), _picked(meta.annotations, (labels.POD_NAME,)))


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


def _given(ids: Mapping[str, str]) -> dict[str, str]:
    return {key: value for key, value in ids.items() if value}


def _picked(there: Mapping[str, str], keys: tuple[str, ...]) -> dict[str, str]:
    return {key: there[key] for key in keys if there.get(key)}
