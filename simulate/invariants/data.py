"""Data safety: deletions, removals and overwrites (I1-I7)."""

from apis.components import component_type
from kube.objects import Json
from kube.resources import DM_CLUSTERS, PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES, PODS, STATEFUL_SETS, TIDB_CLUSTERS
from member.labels import INSTANCE
from ports import duration
from simulate.engine.state import State, is_ready, pod_of, pod_of_member, pump_pod
from simulate.invariants.facts import DEFERRED, annotations, asked_for, is_replaced, is_suspended, spec_of
from simulate.invariants.operator_write import OperatorWrite

_TIMEOUT = 10 * 60.0


def i1(write: OperatorWrite) -> str | None:
    """No PVC is deleted while PD counts on its data."""
    claim = (
        write.before.get(PERSISTENT_VOLUME_CLAIMS, write.call.target.name)
        if write.deletes(PERSISTENT_VOLUME_CLAIMS)
        else None
    )
    held = write.before.holds_live_data(claim) if claim else ""
    return f"PVC {write.call.target.name} holds the data of {held}" if held else None


def i2(write: OperatorWrite) -> str | None:
    """A PVC is deleted only if it has no volume, is deferred and unused, is in a failure record, or is to
    be replaced.
    """
    if not write.deletes(PERSISTENT_VOLUME_CLAIMS):
        return None
    claim = write.before.get(PERSISTENT_VOLUME_CLAIMS, write.call.target.name)
    if claim is None:
        return None
    meta = claim["metadata"]
    pod = next((each for each in write.before.all(PODS) if meta["name"].endswith(f"-{each['metadata']['name']}")), None)
    deferred = DEFERRED in annotations(claim) and pod is None
    replaced = is_replaced(pod)
    instance = (meta.get("labels") or {}).get(INSTANCE, "")
    whose = (write.before.get(kind, instance) for kind in (TIDB_CLUSTERS, DM_CLUSTERS))
    recorded = any(meta["uid"] in str((each or {}).get("status", {})) for each in whose)
    if deferred or replaced or recorded or not claim["spec"].get("volumeName"):
        return None
    return f"PVC {meta['name']} is neither empty, deferred and unused, in a failure record, nor to be replaced"


def i3(write: OperatorWrite) -> str | None:
    """TiKV and TiFlash shrink only by ordinals whose store is Tombstone, purged, or never existed."""
    component, ordinals = write.leaving
    if not component or not component_type(component).is_store:
        return None
    pods = (write.before.pod_name(component, ordinal) for ordinal in ordinals)
    left = [store for pod in pods for store in write.before.stores_of(pod)]
    stores = ", ".join(f"store {store.id} of {pod_of(store)} is {write.before.store_state(store)}" for store in left)
    return f"replicas {write.replicas[0]} -> {write.replicas[1]} while {stores}" if left else None


def pump_i3(write: OperatorWrite) -> str | None:
    """Pump shrinks only by ordinals whose node is offline or never existed (8.8)."""
    component, ordinals = write.leaving
    leaving = {write.before.pod_name("pump", ordinal) for ordinal in ordinals} if component == "pump" else set()
    left = [f"{node['nodeId']} is {node['state']}" for node in write.before.pump_nodes if pump_pod(node) in leaving]
    return f"replicas {write.replicas[0]} -> {write.replicas[1]} while Pump node {', '.join(left)}" if left else None


def i4(write: OperatorWrite) -> str | None:
    """PD shrinks only by ordinals that are no longer members."""
    component, ordinals = write.leaving
    leaving = {write.before.pod_name("pd", ordinal) for ordinal in ordinals} if component == "pd" else set()
    left = [name for member in write.before.members if (name := pod_of_member(member)) in leaving]
    return f"replicas {write.replicas[0]} -> {write.replicas[1]} while {', '.join(left)} is a member" if left else None


def i5(write: OperatorWrite) -> str | None:
    """No DELETE leaves fewer Up stores of a kind than the replicas of regions or TiFlash tables."""
    pd, removed = write.before.pd, write.before.store(write.removed_store)
    if removed is None or pd is None:
        return None
    kin = [store for store in write.before.stores if store.is_tiflash == removed.is_tiflash]
    up = {store.id for store in kin if write.before.store_state(store) == "Up"}
    if removed.is_tiflash:
        replicas = max(pd.placement.of_tiflash.values(), default=0)
    else:
        replicas = max(pd.config.max_replicas, pd.placement.replicas)
    if write.removed_store in up and len(up) - 1 < replicas:
        return f"DELETE store {write.removed_store} leaves {len(up) - 1} Up of {replicas} replicas"
    return None


def i6(write: OperatorWrite) -> str | None:
    """No volume gets the policy Delete, unless the spec requires it, or its claim is deferred and to be reclaimed."""
    spec = (write.seen or {}).get("spec") or {}
    wanted = (write.body.get("spec") or {}).get("persistentVolumeReclaimPolicy")
    if not write.patches(PERSISTENT_VOLUMES) or wanted != "Delete" or spec.get("pvReclaimPolicy") == "Delete":
        return None
    volume = write.before.get(PERSISTENT_VOLUMES, write.call.target.name) or {}
    bound = ((volume.get("spec") or {}).get("claimRef") or {}).get("name", "")
    claim = write.before.get(PERSISTENT_VOLUME_CLAIMS, bound) if bound else None
    if spec.get("enablePVReclaim") and DEFERRED in annotations(claim):
        return None
    return f"PV {write.call.target.name} of PVC {bound or '(none)'} gets the policy Delete"


def i7(write: OperatorWrite) -> str | None:
    """No write goes to a cluster with another PD than at its bootstrap; no status has an id other than PD's."""
    known, pd = _bootstrapped_as(write.before, write.seen), write.before.pd
    if pd is not None and write.patches(TIDB_CLUSTERS):
        told = (write.body.get("status") or {}).get("clusterID") or str(pd.id)
        return None if told == str(pd.id) else f"{write.call} with cluster id {told}, which is not PD's {pd.id}"
    if not known or pd is None or str(pd.id) == known:
        return None
    return f"{write.call} though PD's cluster id is {pd.id} and not {known}"


def another_pd(state: State) -> str | None:
    """I7, R01: a cluster's PD never becomes another one."""
    known = _bootstrapped_as(state, state.cluster)
    if known and state.pd is not None and str(state.pd.id) != known:
        return f"PD's cluster id is {state.pd.id}, the cluster was bootstrapped as {known}"
    if len(state.founded) > 1:
        return f"{len(state.founded)} PD clusters have been bootstrapped: {', '.join(map(str, sorted(state.founded)))}"
    return None


def _bootstrapped_as(state: State, cluster: Json | None) -> str:
    """The id of the PD cluster in a TidbCluster's status; empty for one that another client invented."""
    known = str(((cluster or {}).get("status") or {}).get("clusterID") or "")
    return known if known in map(str, state.founded) else ""


def i45(write: OperatorWrite) -> str | None:
    """The operator removes no Ready TiCDC pod while its capture has tables that another could take.

    A capture that was drained for as long as the user allows is excepted.
    """
    (component, hit), (shrinking, leaving) = write.restarts, write.leaving
    if "ticdc" not in (component, shrinking) or write.deletes(STATEFUL_SETS):
        return None
    going = {*(hit if component else ()), *(leaving if shrinking else ())}
    pods, wanted = write.before.pods("ticdc"), asked_for(write.known, "ticdc")
    if is_suspended(write.before.cluster, "ticdc"):
        return None
    for ordinal in sorted(going):
        others_stay = wanted > (0 if ordinal in leaving else 1)
        if ordinal not in pods or not is_ready(pods[ordinal]) or not others_stay:
            continue
        pod = write.before.pod_name("ticdc", ordinal)
        capture = write.before.captures.get(pod)
        if capture is not None and capture.tables and not _had_its_time(write, capture.id):
            return f"{write.call} ends the capture of {pod}, which has {capture.tables} tables"
    return None


def _had_its_time(write: OperatorWrite, capture: str) -> bool:
    timeout = spec_of(write.seen, "ticdc").get("gracefulShutdownTimeout")
    limit = duration.seconds(timeout) if timeout else _TIMEOUT
    return write.before.now - write.before.stopping_since.get(capture, write.before.now) >= limit
