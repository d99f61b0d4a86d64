"""The next step for a claim that a scale-in left behind, or that a scheduler has locked (lifecycle.md 8.5, 11.2). Pure.

These decisions use caches; `meta.pvc_cleaner` confirms live each one that destroys data.
"""

from dataclasses import dataclass
from typing import TypeAlias

from apis import predicates
from apis.cluster import Cluster
from apis.component_statuses import PDStatus, TiFlashStatus, TiKVStatus
from apis.dm_components import DMMasterStatus, DMWorkerStatus
from apis.ordinals import desired_ordinals
from kube.objects import Object
from member import labels
from member.naming import member_name
from member.observed.claims import Claim, own_claims
from member.observed.pod import Pod


@dataclass(frozen=True, slots=True)
class Keep:
    """Keep the claim, for this reason."""

    because: str


@dataclass(frozen=True, slots=True)
class Unlock:
    """Remove the scheduler's lock, which is no longer needed."""


@dataclass(frozen=True, slots=True)
class Unmark:
    """Remove the mark for deletion: the claim is in use again."""


@dataclass(frozen=True, slots=True)
class Reclaim:
    """Delete the claim and its volume, after live confirmation."""


def lock_step(claim: Object, pod: Object | None) -> Unlock | Keep:
    """The step for a scheduler's lock; `pod` is the pod that the claim names."""
    annotations = claim.metadata.annotations
    if labels.POD_SCHEDULING not in annotations:
        return Keep("it is not locked")
    if labels.PVC_DEFER_DELETING in annotations:
        return Unlock()
    if not annotations.get(labels.POD_NAME):
        return Keep("it names no pod")
    if pod is None:
        return Keep("its pod does not exist")
    if not claim.decode_as(Claim).is_bound or not pod.decode_as(Pod).spec.node_name:
        return Keep("its pod is being scheduled")
    return Unlock()


Step: TypeAlias = Unmark | Reclaim | Keep


def deferred_step(tc: Cluster, claim: Object, pod: Object | None) -> Step:
    """The step for a claim that may be left behind; `pod` is the pod that the claim names."""
    meta = claim.metadata
    kind = meta.labels.get(labels.COMPONENT, "")
    ordinal = _ordinal(tc, kind, meta.annotations.get(labels.POD_NAME, ""))
    if labels.PVC_DEFER_DELETING not in meta.annotations:
        return Keep("it is not left behind")
    if meta.deletion_timestamp:
        return Keep("it is being deleted")
    if ordinal is None:
        return Keep("it names no pod of this cluster")
    if ordinal in desired_ordinals(tc, kind):
        in_use = pod is not None and meta.name in own_claims(pod) and _serves(tc, kind, pod)
        return Unmark() if in_use else Keep("its pod is wanted again")
    because = _why_kept(tc, claim, kind, pod)
    return Keep(because) if because else Reclaim()


def _ordinal(tc: Cluster, kind: str, pod: str) -> int | None:
    """The ordinal in the name of a component's pod; None for any other name."""
    prefix, _, number = pod.rpartition("-")
    return int(number) if prefix == member_name(tc, kind) and number.isdecimal() else None


def _why_kept(tc: Cluster, claim: Object, kind: str, pod: Object | None) -> str:
    """Why a claim whose ordinal is not desired must be kept; empty if it need not be."""
    if not tc.spec.enable_pv_reclaim:
        return "spec.enablePVReclaim is false"
    if not claim.decode_as(Claim).is_bound:
        return "it is not bound"
    if pod is not None:
        return "its pod still exists"
    if _is_known(tc, claim, kind):
        return "its member may still be registered"
    return ""


def _serves(tc: Cluster, kind: str, pod: Object) -> bool:
    """True if a pod works with this claim's data. The mark on the data of a removed member must stay."""
    if pod.metadata.deletion_timestamp or not pod.decode_as(Pod).is_ready:
        return False
    name, status = pod.metadata.name, predicates.status_of(tc, kind)
    if isinstance(status, PDStatus | DMMasterStatus):
        return status.synced and name in _members(status)
    if isinstance(status, DMWorkerStatus):
        return status.synced and name in status.members
    if isinstance(status, TiKVStatus | TiFlashStatus):
        up = (store for store in status.stores.values() if store.is_up)
        return status.synced and any(store.pod_name == name for store in up)
    return True


def _is_known(tc: Cluster, claim: Object, kind: str) -> bool:
    """True if PD has a member or store with the data of this claim, or did not answer (I1)."""
    carried, status = claim.metadata.labels, predicates.status_of(tc, kind)
    pod = claim.metadata.annotations[labels.POD_NAME]
    if isinstance(status, DMWorkerStatus):
        return not status.synced or pod in status.members
    if isinstance(status, PDStatus | DMMasterStatus):
        peers = status.peer_members.values() if isinstance(status, PDStatus) else ()
        ids = {member.id for member in (*status.members.values(), *peers)}
        return not status.synced or pod in _members(status) or carried.get(labels.MEMBER_ID) in ids
    if isinstance(status, TiKVStatus | TiFlashStatus):
        stores = (*status.stores.values(), *status.peer_stores.values())
        ids = {store.id for store in stores}
        on_it = any(store.pod_name == pod for store in status.stores.values())
        return not status.synced or on_it or carried.get(labels.STORE_ID) in ids
    return True


def _members(status: PDStatus | DMMasterStatus) -> set[str]:
    """The pods that are members of the quorum."""
    return {member.name.partition(".")[0] for member in status.members.values()}
