"""Which cluster, member and store a pod is, and with it its claims and their volumes (lifecycle.md 11.4). Pure.

What PD said in this reconcile wins over a label; where PD did not answer, labels stay as they are (F7, F50).
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
"""Tells the time where it matters: what does not depend on it need not be looked at again."""

IDS = (labels.CLUSTER_ID, labels.MEMBER_ID, labels.STORE_ID)

_WITH_MEMBERS = ("pd", "dm-master")
"""Those whose pods are members of a quorum."""

_JOINING = 180.0
"""Seconds that a pod may take to be known to PD before it is labelled without that: a pull of images takes minutes."""

_FOLLOWING = 10.0
"""Seconds more after which a claim must have been labelled after its pod."""

_FROM_CLAIM = (labels.COMPONENT, labels.NAME, labels.MANAGED_BY, labels.INSTANCE, *IDS)


def of_pod(tc: Cluster, cluster_id: str, pod: Object, now: Now, kind: str = "") -> DesiredMetadata:
    """The labels and annotations of a pod, from the status; `cluster_id` is empty while it is unknown.

    `kind` is its component, where its label may have been taken away.
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
    since = pod.metadata.annotations.get(labels.TIKV_NO_ACTIVE_STORE_SINCE) or stamp(now())
    return DesiredMetadata(_given(ids), {labels.TIKV_NO_ACTIVE_STORE_SINCE: since})


def joins_within(pod: Object, metadata: DesiredMetadata, now: Now) -> float:
    """Seconds within which a new pod may get its ids, to be labelled once with all of them; 0: it is labelled now."""
    meta = pod.metadata
    own = _own_id(meta.labels.get(labels.COMPONENT, ""))
    is_complete = not own or own in metadata.labels or any(key in meta.labels for key in IDS)
    return 0.0 if is_complete else _time_left(meta, _JOINING, now)


def is_labelled_within(claim: Object, now: Now) -> float:
    """Seconds within which a new claim may get its ids, so that its volume is labelled once; 0: there are none to come.

    None come to what a scale-in has left behind.
    """
    meta = claim.metadata
    own = _own_id(meta.labels.get(labels.COMPONENT, ""))
    is_complete = not own or labels.PVC_DEFER_DELETING in meta.annotations or any(key in meta.labels for key in IDS)
    return 0.0 if is_complete else _time_left(meta, _JOINING + _FOLLOWING, now)


def _time_left(meta: ObjectMeta, period: float, now: Now) -> float:
    created = parse_time(meta.creation_timestamp or "")
    # a clock that was put back does not hold up labels
    return max(period - abs((now() - created).total_seconds()), 0.0) if created else 0.0


def _own_id(kind: str) -> str:
    """The label with the id of a pod in the data plane; of a pod that has none, that of the cluster, if it has one."""
    if kind in _WITH_MEMBERS:
        return labels.MEMBER_ID
    if is_component(kind, DM_CLUSTER):
        return ""
    is_store = is_component(kind) and component_type(kind).is_store
    return labels.STORE_ID if is_store else labels.CLUSTER_ID


def of_claim(tc: Cluster, pod: Object) -> DesiredMetadata:
    """The labels and annotations of a claim: those of its pod.

    A claim that was there before its pod, such as a restored one, also gets what claims made from templates carry.
    """
    name, carried = pod.metadata.name, pod.metadata.labels
    base = base_labels(tc, carried[labels.COMPONENT])
    return DesiredMetadata(base | _picked(carried, IDS) | {labels.POD_NAME: name}, {labels.POD_NAME: name})


def of_volume(claim: Object) -> DesiredMetadata:
    """The labels and annotations of a volume: those of its claim."""
    meta = claim.metadata
    own = {labels.NAMESPACE: meta.namespace}
    return DesiredMetadata(own | _picked(meta.labels, _FROM_CLAIM), _picked(meta.annotations, (labels.POD_NAME,)))


def store_of(stores: Mapping[str, TiKVStore], pod: str, labelled: str) -> str:
    """The id of a pod's store, empty when it has none.

    Of several stores at one address the one that is Up, else the newest; the labelled one as long as it is Up.
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
    """The stores of a component as PD named them in this reconcile; None when it did not, or there are none to name."""
    status = predicates.status_of(tc, kind) if is_component(kind, tc.kind) else None
    if not isinstance(status, TiKVStatus | TiFlashStatus) or not status.synced:
        return None
    return status.stores


def _given(ids: Mapping[str, str]) -> dict[str, str]:
    return {key: value for key, value in ids.items() if value}


def _picked(there: Mapping[str, str], keys: tuple[str, ...]) -> dict[str, str]:
    return {key: there[key] for key in keys if there.get(key)}
