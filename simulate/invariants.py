"""The invariants of lifecycle.md 17 that can be seen from outside, each a function with its id.

`ON_WRITE` are judged when the operator is about to write, `ON_STATE` whenever what they look at has changed. Each
answers what is wrong, or None.
"""

from collections.abc import Callable
from datetime import datetime

from apis.decoding import decode
from apis.defaulting import with_defaults
from apis.problem import InvalidField
from apis.tidbcluster import TidbCluster
from apis.validation import validate
from kube.objects import Json
from kube.resources import PERSISTENT_VOLUME_CLAIMS, PODS, STATEFUL_SETS, TIDB_CLUSTERS
from simulate.acts import Act
from simulate.calls import Port
from simulate.state import NEVER, PARTS, State, is_outdated, is_ready, pod_of, replicas
from simulate.worlds import NAME

OnWrite = Callable[[Act], str | None]
OnState = Callable[[State], str | None]

_DEFERRED = "tidb.pingcap.com/pvc-defer-deleting"
_REPLACE = "tidb.pingcap.com/replace-volume"
_EVICT_TIMEOUT = 1500 * 60.0

_TOLERANCE = 1.0
"""Seconds by which what the operator and the judge saw may differ."""


def i1(act: Act) -> str | None:
    """No PVC is deleted while PD counts on the data in it."""
    claim = (
        act.before.get(PERSISTENT_VOLUME_CLAIMS, act.call.target.name)
        if act.deletes(PERSISTENT_VOLUME_CLAIMS)
        else None
    )
    held = act.before.holds_live_data(claim) if claim else ""
    return f"PVC {act.call.target.name} holds the data of {held}" if held else None


def i2(act: Act) -> str | None:
    """A PVC is deleted only if it is deferred and out of use, in a failure record, or to be replaced."""
    if not act.deletes(PERSISTENT_VOLUME_CLAIMS):
        return None
    claim = act.before.get(PERSISTENT_VOLUME_CLAIMS, act.call.target.name)
    if claim is None:
        return None
    meta = claim["metadata"]
    pod = next((each for each in act.before.all(PODS) if meta["name"].endswith(f"-{each['metadata']['name']}")), None)
    deferred = _DEFERRED in (meta.get("annotations") or {}) and pod is None
    replaced = pod is not None and _REPLACE in (pod["metadata"].get("annotations") or {})
    recorded = meta["uid"] in str((act.before.cluster or {}).get("status", {}))
    if deferred or replaced or recorded:
        return None
    return f"PVC {meta['name']} is neither deferred and unused, nor in a failure record, nor to be replaced"


def i3(act: Act) -> str | None:
    """TiKV gets smaller only by ordinals whose store is Tombstone, purged, or never was."""
    part, ordinals = act.leaving
    if part != "tikv":
        return None
    left = [store for ordinal in ordinals for store in act.before.stores_of(f"{NAME}-tikv-{ordinal}")]
    told = ", ".join(f"store {store.id} of {pod_of(store)} is {act.before.store_state(store)}" for store in left)
    return f"replicas {act.replicas[0]} -> {act.replicas[1]} while {told}" if left else None


def i4(act: Act) -> str | None:
    """PD gets smaller only by ordinals that are no members any more."""
    part, ordinals = act.leaving
    leaving = {f"{NAME}-pd-{ordinal}" for ordinal in ordinals} if part == "pd" else set()
    left = [each.name for each in act.before.members if each.name in leaving]
    return f"replicas {act.replicas[0]} -> {act.replicas[1]} while {', '.join(left)} is a member" if left else None


def i5(act: Act) -> str | None:
    """No DELETE of a store leaves fewer Up stores than regions have replicas."""
    pd = act.before.pd
    if not act.removed_store or pd is None:
        return None
    up = {store.id for store in act.before.stores if act.before.store_state(store) == "Up"}
    if act.removed_store in up and len(up) - 1 < pd.config.max_replicas:
        return f"DELETE store {act.removed_store} leaves {len(up) - 1} Up of {pd.config.max_replicas} replicas"
    return None


def i7(act: Act) -> str | None:
    """No write to a cluster whose PD is another than the one it was bootstrapped with."""
    known = ((act.seen or {}).get("status") or {}).get("clusterID")
    pd = act.before.pd
    if not known or pd is None or str(pd.id) == known or act.patches(TIDB_CLUSTERS):
        return None
    return f"{act.call} though PD's cluster id is {pd.id} and not {known}"


def i8(act: Act) -> str | None:
    """At most one PD member is removed in a round."""
    if not act.removed_member:
        return None
    before = [each for each in act.earlier if each.method == "DELETE" and "/pd/api/v1/members/" in each.path]
    return f"{act.call} after {before[0]} in the same round" if before else None


def i9(act: Act) -> str | None:
    """What we remove or restart never costs PD its majority."""
    part, ordinals = act.restarts
    names = {f"{NAME}-pd-{ordinal}" for ordinal in ordinals} if part == "pd" else set()
    removed = act.removed_member
    if not names and not removed:
        return None
    members = act.before.members
    healthy = sum(each.healthy for each in members)
    if healthy <= len(members) // 2:
        return None
    total = len(members) - any(each.name == removed for each in members)
    # a partition restarts its pods one after another
    lost = any(each.healthy and each.name in {*names, removed} for each in members)
    if healthy - lost > total // 2:
        return None
    return f"{act.call} leaves {healthy - lost} healthy of {total} PD members"


def i10(act: Act) -> str | None:
    """No Ready pod is restarted while another one of its component is not Ready."""
    part, ordinals = act.restarts
    pods = act.before.pods(part) if part else {}
    if part == "tidb" and len(pods) < 2:
        return None
    live = act.before.stateful_set(part) if part else None
    for ordinal in ordinals:
        if ordinal not in pods or not is_ready(pods[ordinal]):
            continue
        # a missing pod is as bad as one that is not Ready
        wanted = range(replicas(live)) if live else ()
        others = [each for each in wanted if each != ordinal and not (each in pods and is_ready(pods[each]))]
        if others and not _stood_in_for(act, part, len(wanted), len(others)):
            return f"{act.call} restarts {NAME}-{part}-{ordinal} while {NAME}-{part}-{others[0]} is not Ready"
    return None


def i11(act: Act) -> str | None:
    """A TiKV pod is restarted only without leaders, or when its eviction timed out, or alone, or not Ready."""
    part, ordinals = act.restarts
    if part != "tikv" or len(act.before.stores) <= 1:
        return None
    pods = act.before.pods("tikv")
    for ordinal in ordinals:
        stores = act.before.stores_of(f"{NAME}-tikv-{ordinal}")
        leaders = sum(store.leaders for store in stores)
        if leaders and is_ready(pods[ordinal]) and not _eviction_expired(act, pods[ordinal]):
            return f"{act.call} restarts {NAME}-tikv-{ordinal}, whose store leads {leaders} regions"
    return None


def i12(act: Act) -> str | None:
    """The PD leader is neither restarted nor removed while another healthy member could lead."""
    part, ordinals = act.restarts
    names = {f"{NAME}-pd-{ordinal}" for ordinal in ordinals} if part == "pd" else set()
    leader = act.before.leader
    others = any(each.healthy and each.name != leader for each in act.before.members)
    if leader and others and leader in {*names, act.removed_member}:
        return f"{act.call} hits the leader {leader}"
    return None


def i14(act: Act) -> str | None:
    """The partition never rises during one revision, and passes only pods that are done."""
    if act.live is None or act.changes_template:
        return None
    before, after = act.partition
    status = act.live.get("status", {})
    rolling = status.get("currentRevision") != status.get("updateRevision")
    # OnDelete holds all pods back
    if rolling and before < after < NEVER and act.replicas[0] == act.replicas[1]:
        return f"the partition of {act.part} rises from {before} to {after} in the middle of a roll"
    if after >= before:
        return None
    pods = act.before.pods(act.part)
    hit = [ordinal for ordinal in act.restarts[1] if is_ready(pods[ordinal])]
    undone = [o for o, pod in pods.items() if o >= before and (is_outdated(act.live, pod) or not is_ready(pod))]
    if hit and undone:
        return f"the partition of {act.part} drops to {after} while {NAME}-{act.part}-{undone[0]} is not done"
    return None


def i15(act: Act) -> str | None:
    """The partition drops by one pod at a time; TiKV's pods without a store do not count."""
    if act.live is None:
        return None
    part, ordinals = act.restarts
    if part == "tikv":
        ordinals = [each for each in ordinals if act.before.stores_of(f"{NAME}-tikv-{each}")]
    if len(ordinals) <= 1:
        return None
    return f"{act.call} restarts {len(ordinals)} pods of {part} at once: {ordinals}"


def i16(act: Act) -> str | None:
    """No Ready pod is rolled while a component that goes first is being rolled."""
    part, ordinals = act.restarts
    if act.live is None or part not in PARTS:
        return None
    pods = act.before.pods(part)
    if not any(is_ready(pods[each]) for each in ordinals):
        return None
    for earlier in PARTS[: PARTS.index(part)]:
        other = act.before.stateful_set(earlier)
        if other and any(is_outdated(other, pod) for pod in act.before.pods(earlier).values()):
            return f"{act.call} rolls {part} while {earlier} is being upgraded"
    return None


def i17(act: Act) -> str | None:
    """Replicas change by one in a round, or by the configured parallelism."""
    if act.live is None:
        return None
    before, after = act.replicas
    spec = ((act.seen or {}).get("spec") or {}).get(act.part) or {}
    policy = spec.get("scalePolicy") or {}
    limit = policy.get("scaleOutParallelism" if after > before else "scaleInParallelism") or 1
    suspended = after == 0
    if act.part == "pd":
        limit = 1
    if abs(after - before) <= limit or suspended:
        return None
    return f"replicas of {act.part} go from {before} to {after}, more than {limit} at once"


def i19(act: Act) -> str | None:
    """A component is not scaled and rolled by one write."""
    if act.live is None or act.changes_template:
        return None
    if act.replicas[0] != act.replicas[1] and act.restarts[1]:
        return f"{act.call} scales and restarts {act.part}"
    return None


def i20(act: Act) -> str | None:
    """A component is created only when what it needs serves."""
    if not act.creates(STATEFUL_SETS):
        return None
    members = act.before.members
    if act.part == "tikv" and sum(each.healthy for each in members) <= len(members) // 2:
        return "TiKV is created while PD has no majority of healthy members"
    if act.part == "tidb" and not any(act.before.store_state(each) == "Up" for each in act.before.stores):
        return "TiDB is created while no TiKV store is Up"
    return None


def i21(act: Act) -> str | None:
    """There are never more failure records than maxFailoverCount."""
    for part in PARTS:
        records, limit = _records(act, part)
        if len(records) > limit:
            return f"{len(records)} failure records of {part}, maxFailoverCount is {limit}"
    return None


def i22(act: Act) -> str | None:
    """A failure record is made only of a pod that Kubernetes, too, has called not Ready for the whole period (I25)."""
    periods = {"pd": act.failover.pd_period, "tikv": act.failover.tikv_period, "tidb": act.failover.tidb_period}
    for part in PARTS:
        for record in _new_records(act, part):
            pod, since = record.get("podName", ""), act.before.unready.get(record.get("podName", ""))
            lasted = act.before.now - since if since is not None else 0.0
            if not act.failover.auto or lasted < periods[part] - _TOLERANCE:
                return f"a failure record of {pod}, which is not Ready for {lasted:.0f} of {periods[part]:.0f} s"
    return None


def i24(act: Act) -> str | None:
    """A PD member is removed only by a majority of healthy members."""
    members = act.before.members
    if act.removed_member and sum(each.healthy for each in members) <= len(members) // 2:
        return f"{act.call} without a majority of healthy members"
    return None


def i26(act: Act) -> str | None:
    """While the cluster is paused nothing of it is written, and nothing of PD."""
    if ((act.seen or {}).get("spec") or {}).get("paused") and not _is_talk(act):
        return f"{act.call} though the cluster is paused"
    return None


def i27(act: Act) -> str | None:
    """While the cluster is being deleted nothing is written."""
    if ((act.seen or {}).get("metadata") or {}).get("deletionTimestamp"):
        return f"{act.call} though the cluster is being deleted"
    return None


def i28(act: Act) -> str | None:
    """While the spec is invalid nothing but the status is written."""
    if act.seen is None or _is_talk(act):
        return None
    try:
        problems = [str(each) for each in validate(with_defaults(decode(act.seen, TidbCluster)))]
    except InvalidField as error:
        problems = [str(error.problem)]
    return f"{act.call} though the spec is invalid: {problems[0]}" if problems else None


def i30(act: Act) -> str | None:
    """The user's spec is never written."""
    if act.creates(TIDB_CLUSTERS) or act.deletes(TIDB_CLUSTERS):
        return f"{act.call}: only users create and delete clusters"
    if act.patches(TIDB_CLUSTERS) and "spec" in act.body:
        return f"{act.call} writes the spec: {act.body['spec']}"
    return None


def o5(act: Act) -> str | None:
    """What destroys was preceded by a live read in the same round and carries a precondition."""
    call = act.call
    if call.port is Port.KUBERNETES and call.method == "DELETE":
        given = act.body.get("preconditions") or {}
        if not given.get("uid") or not given.get("resourceVersion"):
            return f"{call} without preconditions"
        if not act.read_before(str(call.target)):
            return f"{call} without a live read of it in the same round"
    if (act.removed_member or act.removed_store) and not any(
        each.port is Port.DATA_PLANE and not each.is_write for each in act.earlier
    ):
        return f"{call} without a live read of PD in the same round"
    shrinks = act.live is not None and act.replicas[1] < act.replicas[0]
    lowers = act.live is not None and act.partition[1] < act.partition[0]
    if (shrinks or lowers) and not (act.body.get("metadata") or {}).get("resourceVersion"):
        return f"{call} without a resourceVersion"
    return None


def i36(state: State) -> str | None:
    """Ready=True says that every component was observed and is as it should be, in the very same status."""
    status = (state.cluster or {}).get("status") or {}
    if not any((each["type"], each["status"]) == ("Ready", "True") for each in status.get("conditions") or ()):
        return None
    for part in PARTS:
        seen = status.get(part) or {}
        revisions = seen.get("statefulSet") or {}
        if part != "tidb" and not seen.get("synced"):
            return f"Ready=True though {part} could not be observed"
        if revisions.get("currentRevision") != revisions.get("updateRevision"):
            return f"Ready=True though {part} is in the middle of a roll"
    ill = [each["name"] for each in ((status.get("pd") or {}).get("members") or {}).values() if not each.get("health")]
    ill += [s["podName"] for s in ((status.get("tikv") or {}).get("stores") or {}).values() if s.get("state") != "Up"]
    return f"Ready=True though {', '.join(ill)} is not well" if ill else None


def one_pd(state: State) -> str | None:
    """I7, R01: a cluster's PD never becomes another one."""
    known = ((state.cluster or {}).get("status") or {}).get("clusterID")
    if known and state.pd is not None and str(state.pd.id) != known:
        return f"PD's cluster id is {state.pd.id}, the cluster was bootstrapped as {known}"
    return None


def bounded(state: State) -> str | None:
    """I21: StatefulSets never ask for more than the spec and the failover limit allow."""
    spec = (state.cluster or {}).get("spec") or {}
    for part in PARTS:
        live, wanted = state.stateful_set(part), spec.get(part) or {}
        spare = 1 if part != "tidb" else 0
        if live and wanted and replicas(live) > max(_highest(state, part), wanted["replicas"]) + spare:
            limit = int(wanted.get("maxFailoverCount", 3))
            if replicas(live) > wanted["replicas"] + limit + spare:
                return f"{part} has {replicas(live)} replicas, the spec asks for {wanted['replicas']} + {limit} at most"
    return None


def _highest(state: State, part: str) -> int:
    """Pods that are still there after the spec was lowered."""
    return max(state.pods(part), default=-1) + 1


def _is_talk(act: Act) -> bool:
    """Status, events and labels: what only says something."""
    return act.patches(TIDB_CLUSTERS) or act.call.target.resource == "events" or not act.call.counts


def _records(act: Act, part: str) -> tuple[Json, int]:
    """The failure records as they will be after the write, and how many are allowed."""
    if not act.status:
        return {}, 0
    kind = "failureStores" if part == "tikv" else "failureMembers"
    stored = (((act.before.cluster or {}).get("status") or {}).get(part) or {}).get(kind) or {}
    patch = (act.status.get(part) or {}).get(kind, {})
    merged = {} if patch is None else {name: value for name, value in (stored | patch).items() if value is not None}
    wanted = ((act.seen or {}).get("spec") or {}).get(part) or {}
    # records from before a limit was lowered stay until they are resolved
    return (merged if len(merged) > len(stored) else {}), int(wanted.get("maxFailoverCount", 3))


def _stood_in_for(act: Act, part: str, wanted: int, unready: int) -> bool:
    """Whether substitutes serve in the place of all that are not Ready."""
    cluster = act.before.cluster or {}
    status = (cluster.get("status") or {}).get(part) or {}
    records = status.get("failureStores" if part == "tikv" else "failureMembers") or {}
    asked_for = int(((cluster.get("spec") or {}).get(part) or {}).get("replicas", 0))
    return unready <= len(records) and wanted - unready >= asked_for


def _new_records(act: Act, part: str) -> list[Json]:
    """The failure records that a write adds."""
    kind = "failureStores" if part == "tikv" else "failureMembers"
    stored = (((act.before.cluster or {}).get("status") or {}).get(part) or {}).get(kind) or {}
    sent = (act.status.get(part) or {}).get(kind) or {}
    return [record for key, record in sent.items() if key not in stored and record]


def _eviction_expired(act: Act, pod: Json) -> bool:
    annotations = pod["metadata"].get("annotations") or {}
    begun = next((value for key, value in annotations.items() if "evictLeaderBeginTime" in key), "")
    if not begun:
        return False
    spec = ((act.seen or {}).get("spec") or {}).get("tikv") or {}
    if spec.get("evictLeaderTimeout"):
        return True
    return datetime.fromisoformat(begun).timestamp() + _EVICT_TIMEOUT < act.before.wall


ON_WRITE: dict[str, OnWrite] = {
    "I1": i1,
    "I2": i2,
    "I3": i3,
    "I4": i4,
    "I5": i5,
    "I7": i7,
    "I8": i8,
    "I9": i9,
    "I10": i10,
    "I11": i11,
    "I12": i12,
    "I14": i14,
    "I15": i15,
    "I16": i16,
    "I17": i17,
    "I19": i19,
    "I20": i20,
    "I21": i21,
    "I22": i22,
    "I24": i24,
    "I26": i26,
    "I27": i27,
    "I28": i28,
    "I30": i30,
    "O5": o5,
}

ON_STATE: dict[str, OnState] = {"I7": one_pd, "I21": bounded, "I36": i36}
