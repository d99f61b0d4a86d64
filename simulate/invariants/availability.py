"""Quorum and availability: restarts and removals, and the members that must serve meanwhile (I8-I13, I24, I41, I43)."""

from collections.abc import Iterator

from kube.objects import Json
from kube.resources import PODS
from ports import duration
from sandbox.dataplane.pd.stores import Store
from simulate.engine.components import asked_one_by_one
from simulate.engine.state import State, is_outdated, is_ready, kept_ordinals, pod_of, pod_of_member, replicas
from simulate.invariants.facts import (
    COMMANDS,
    annotations,
    asked_for,
    is_held,
    is_replaced,
    is_suspended,
    records,
    spec_of,
    status_of,
)
from simulate.invariants.operator_write import OperatorWrite

_EVICT_TIMEOUT = 1500 * 60.0

_LEADERS_LEAVE = 299.0
"""Seconds, less the time of a request."""

_UNCHECKED = "tidb.pingcap.com/tikv-check-all-stores-up-before-upgrade"
"""The annotation by which users request restarts regardless of other stores."""


def i8(write: OperatorWrite) -> str | None:
    """One PD member is removed in a reconcile; the next one only after all remaining ones were healthy."""
    if not write.removed_member:
        return None
    before = [call for call in write.earlier if call.method == "DELETE" and "/pd/api/v1/members/" in call.path]
    if before:
        return f"{write.call} after {before[0]} in the same reconcile"
    ill = [
        member.name
        for member in write.before.members
        if not member.healthy and pod_of_member(member) != write.removed_member
    ]
    if ill and write.before.unsettled:
        return f"{write.call} though {', '.join(ill)} was not healthy since {write.before.unsettled} was removed"
    return None


def i9(write: OperatorWrite) -> str | None:
    """No removal or restart costs PD its majority."""
    component, ordinals = write.restarts
    names = {write.before.pod_name("pd", ordinal) for ordinal in ordinals} if component == "pd" else set()
    removed = write.removed_member
    if not names and not removed:
        return None
    members = write.before.members
    healthy = sum(member.healthy for member in members)
    # a single member can only be restarted like this (lifecycle.md 7.3)
    if healthy <= len(members) // 2 or (len(members) == 1 and not removed):
        return None
    total = len(members) - any(pod_of_member(member) == removed for member in members)
    # a partition restarts its pods one after another
    lost = any(member.healthy and pod_of_member(member) in {*names, removed} for member in members)
    if healthy - lost > total // 2:
        return None
    return f"{write.call} leaves {healthy - lost} healthy of {total} PD members"


def i10(write: OperatorWrite) -> str | None:
    """No Ready pod is restarted while another pod of its component is not Ready, unless that pod serves nothing."""
    component, ordinals = write.restarts
    pods = write.before.pods(component) if component else {}
    if component == "tidb" and len(pods) < 2:
        return None
    live = write.before.stateful_set(component) if component else None
    for ordinal in ordinals:
        if ordinal not in pods or not is_ready(pods[ordinal]):
            continue
        if _serves_nothing(write, component, write.before.pod_name(component, ordinal)):
            continue
        # a missing pod counts as not Ready
        wanted = kept_ordinals(live)
        others = [each for each in wanted if each != ordinal and not (each in pods and is_ready(pods[each]))]
        if others and not _stood_in_for(write, component, len(wanted), len(others)):
            pod, other = (write.before.pod_name(component, each) for each in (ordinal, others[0]))
            return f"{write.call} restarts {pod} while {other} is not Ready"
    return None


def _serves_nothing(write: OperatorWrite, component: str, pod: str) -> bool:
    """True if a pod is not a PD member, or a deleted one has only a store that has left PD."""
    if component == "pd":
        return pod not in {pod_of_member(member) for member in write.before.members}
    has_left = any(pod_of(store) == pod for store in write.before.all_stores) and not write.before.stores_of(pod)
    return write.deletes(PODS) and has_left


def i11(write: OperatorWrite) -> str | None:
    """A TiKV pod is restarted only without leaders, after an eviction timed out, as the only one, or if not Ready.

    One that is not Ready but serves is not restarted while another store is away (F13).
    """
    component, ordinals = write.restarts
    if component != "tikv" or sum(not each.is_tiflash for each in write.before.stores) <= 1:
        return None
    pods, away = write.before.pods("tikv"), _stores_away(write)
    for ordinal in ordinals:
        pod = write.before.pod_name("tikv", ordinal)
        stores = write.before.stores_of(pod)
        if away and any(write.before.store_state(store) == "Up" for store in stores):
            return f"{write.call} restarts {pod}, whose store is Up, while the store of {away} is not"
        leaders = sum(store.leaders for store in stores if not _eviction_expired(write, store))
        if leaders and ordinal in pods and is_ready(pods[ordinal]):
            return f"{write.call} restarts {pod}, whose store leads {leaders} regions"
    return None


def i44(write: OperatorWrite) -> str | None:
    """A serving TiFlash pod is not restarted while another TiFlash store's process is away."""
    component, ordinals = write.restarts
    cluster = write.before.cluster
    if component != "tiflash" or not status_of(cluster, "tiflash").get("synced"):
        return None
    if annotations(write.seen).get(_UNCHECKED) == "false":
        return None
    given_up = {str(record.get("storeID")) for record in records(cluster, "tiflash").values()}
    stores = [store for store in write.before.stores if store.is_tiflash]
    serving = {pod_of(store) for store in stores if store.id not in write.before.dead_stores}
    dead = {pod_of(store) for store in stores if str(store.id) not in given_up} - serving
    for pod in (write.before.pod_name("tiflash", ordinal) for ordinal in ordinals):
        if dead and pod in serving:
            return f"{write.call} restarts {pod}, which serves, while {', '.join(sorted(dead))} does not"
    return None


def _stores_away(write: OperatorWrite) -> str:
    """The pods whose stores are not Up, without failover's, as far as the operator knows PD's list."""
    cluster = write.before.cluster
    if not status_of(cluster, "tikv").get("synced"):
        return ""
    recorded = (*records(cluster, "tikv").values(), *records(cluster, "tiflash").values())
    given_up = {str(record.get("storeID")) for record in recorded}
    away = [
        store
        for store in write.before.stores
        if str(store.id) not in given_up and write.before.store_state(store) != "Up"
    ]
    return ", ".join(map(pod_of, away))


def i12(write: OperatorWrite) -> str | None:
    """The PD leader is neither restarted nor removed while another healthy member could lead.

    A pod that is not Ready goes first (F11), if PD does not report the leader, even if it is this one.
    """
    component, ordinals = write.restarts
    pods, synced = write.before.pods("pd"), status_of(write.before.cluster, "pd").get("synced")
    hit = [each for each in ordinals if component == "pd" and each in pods and (synced or is_ready(pods[each]))]
    leader = write.before.leader
    others = any(member.healthy and pod_of_member(member) != leader for member in write.before.members)
    if (
        leader
        and others
        and leader in {write.removed_member, *(write.before.pod_name("pd", ordinal) for ordinal in hit)}
    ):
        return f"{write.call} hits the leader {leader}"
    return None


def i13(state: State) -> Iterator[str]:
    """Evict-leader schedulers of stores that must lead again: their pods are desired, Ready and up to date.

    Foreign schedulers are excepted, unless the operator evicted the store before.
    """
    cluster, live = state.cluster, state.stateful_set("tikv")
    if state.pd is None or not state.pd.stores.evicting or live is None or is_held(cluster):
        return
    pods, evicting = state.pods("tikv"), status_of(cluster, "tikv").get("evictLeader") or {}
    wanted = min(asked_for(cluster, "tikv") + len(records(cluster, "tikv")), replicas(live))
    if is_suspended(cluster, "tikv"):
        return
    for store in state.stores:
        name = pod_of(store)
        pod = pods.get(int(name.rpartition("-")[2])) if name.startswith(f"{state.name}-tikv-") else None
        if store.id not in state.pd.stores.evicting or pod is None or int(name.rpartition("-")[2]) >= wanted:
            continue
        if name in evicting or any(command in annotations(pod) for command in COMMANDS):
            continue
        if name in state.evicted_by_others and store.id not in state.evicted_for_us:
            continue
        if is_ready(pod) and not is_outdated(live, pod) and state.store_state(store) == "Up":
            yield f"{name} serves as it should, and its store {store.id} still has an evict-leader scheduler"


def cut_short(state: State) -> str | None:
    """ADR 19: a hook ends before the grace period of its pod does, so that the server stops by itself."""
    return f"the hook of {state.cut_short[-1]} held its stop until the pod was killed" if state.cut_short else None


def needed_eviction(write: OperatorWrite) -> str | None:
    """ADR 19: no eviction ends of a store whose pod is stopping, and whose hook waits for its leaders to leave."""
    store = write.before.store(write.ended_eviction)
    pod = write.before.get(PODS, pod_of(store)) if store else None
    if store is None or pod is None or not pod["metadata"].get("deletionTimestamp") or store.died_at is not None:
        return None
    has_hook = any("preStop" in (each.get("lifecycle") or {}) for each in pod["spec"]["containers"])
    return f"{write.call} lets leaders return to {pod_of(store)}, whose hook moves them away" if has_hook else None


def i24(write: OperatorWrite) -> str | None:
    """A PD member is removed only by a majority of healthy members."""
    members = write.before.members
    if write.removed_member and sum(member.healthy for member in members) <= len(members) // 2:
        return f"{write.call} without a majority of healthy members"
    return None


def f35(write: OperatorWrite) -> str | None:
    """A store that scale-in takes offline has no leaders, or had 5 minutes to lose them."""
    store = next((each for each in write.before.stores if each.id == write.removed_store), None)
    if store is None or not store.leaders or write.before.store_state(store) == "Down":
        return None
    pod = write.before.get(PODS, pod_of(store))
    if is_replaced(pod) or _evicted_for(write, store) >= _LEADERS_LEAVE:
        return None
    for_so_long = f"after an eviction of {_evicted_for(write, store):.0f} s"
    return f"{write.call} takes {pod_of(store)} offline, which leads {store.leaders} regions {for_so_long}"


def i41(write: OperatorWrite) -> str | None:
    """No region loses its majority by a restart; a region that is whole is excepted if that is unavoidable."""
    part, ordinals = write.restarts
    pd = write.before.pd
    if part != "tikv" or pd is None or not ordinals or annotations(write.seen).get(_UNCHECKED) == "false":
        return None
    hit = {store.id for ordinal in ordinals for store in write.before.stores_of(write.before.pod_name("tikv", ordinal))}
    dead = write.before.dead_stores
    lost = [region for region in pd.stores.regions if region.has_majority(dead) and not region.has_majority(dead | hit)]
    avoidable = [
        region for region in lost if len(hit.intersection(region.peers)) > 1 or dead.intersection(region.peers)
    ]
    if not avoidable:
        return None
    pods = ", ".join(write.before.pod_name("tikv", ordinal) for ordinal in ordinals)
    what = f"{len(avoidable)} of {len(pd.stores.regions)} regions without a majority"
    return f"{write.call} restarts {pods} and leaves {what}: stores {sorted(dead) or 'none'} do not serve"


def i43(write: OperatorWrite) -> str | None:
    """No Ready pod is restarted while a restarted server that reports its own state does not serve yet."""
    component, ordinals = write.restarts
    live = write.before.stateful_set(component) if component else None
    if live is None or not asked_one_by_one(component):
        return None
    pods = write.before.pods(component)
    if not any(each in pods and is_ready(pods[each]) for each in ordinals):
        return None
    # pods that are being scaled in no longer serve
    wanted = {ordinal: pod for ordinal, pod in pods.items() if ordinal in kept_ordinals(live)}
    for ordinal, pod in wanted.items():
        restarted = ordinal not in ordinals and is_ready(pod) and not is_outdated(live, pod)
        if restarted and not write.before.serves(component, ordinal):
            return f"{write.call} restarts {component}-{ordinals[0]} while {component}-{ordinal} does not serve yet"
    return None


def pump_i41(write: OperatorWrite) -> str | None:
    """No Pump node is closed while it is the last online one and TiDB writes binlogs."""
    if write.call.method != "PUT" or not write.call.path.endswith("/close"):
        return None
    online = [node["nodeId"] for node in write.before.pump_nodes if node["state"] == "online"]
    writers = [pod["metadata"]["name"] for pod in write.before.pods("tidb").values() if _writes_binlogs(pod)]
    if len(online) > 1 or not writers:
        return None
    return f"{write.call} closes the last Pump node that is online, and {', '.join(writers)} writes binlogs"


def tso_i41(write: OperatorWrite) -> str | None:
    """The last pod of tso stays while PD itself gives no timestamps."""
    component, ordinals = write.leaving
    if component == "tso" and 0 in ordinals and write.before.pd is not None and write.before.pd.is_api_only:
        return f"{write.call} leaves no pod of tso, and PD gives no timestamps itself"
    return None


def pdms_i12(write: OperatorWrite) -> str | None:
    """The primary of a microservice is neither restarted nor removed while another member could be primary."""
    component, ordinals = write.restarts if write.restarts[1] else write.leaving
    pd = write.before.pd
    primary = pd.services.primary(component, write.before.now) if pd and pd.is_api_only and component else None
    if pd is None or primary is None or len(pd.services.members(component, write.before.now)) < 2:
        return None
    hit = [
        ordinal
        for ordinal in ordinals
        if primary.address.partition("://")[2].startswith(f"{write.before.pod_name(component, ordinal)}.")
    ]
    return f"{write.call} hits the primary {primary.name}" if hit else None


def _writes_binlogs(pod: Json) -> bool:
    variables = (entry for container in pod["spec"]["containers"] for entry in container.get("env") or ())
    return any(entry["name"] == "BINLOG_ENABLED" and entry.get("value") == "true" for entry in variables)


def _stood_in_for(write: OperatorWrite, component: str, wanted: int, unready: int) -> bool:
    """True if substitutes serve for all pods that are not Ready."""
    cluster = write.before.cluster
    return unready <= len(records(cluster, component)) and wanted - unready >= asked_for(cluster, component)


def _eviction_expired(write: OperatorWrite, store: Store) -> bool:
    """True if its leaders had their time to leave, whatever the wall clock shows (F14, F44)."""
    timeout = spec_of(write.seen, "tikv").get("evictLeaderTimeout")
    return _evicted_for(write, store) >= (duration.seconds(timeout) if timeout else _EVICT_TIMEOUT)


def _evicted_for(write: OperatorWrite, store: Store) -> float:
    """Seconds for which PD has been moving the store's leaders away."""
    return write.before.now - write.before.evicting_since.get(store.id, write.before.now)
