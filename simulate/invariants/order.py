"""Order and pace of changes (I14-I20, I37)."""

import json
from collections.abc import Iterator

from apis.components import component_type
from kube.objects import Json
from kube.resources import CONFIG_MAPS, STATEFUL_SETS
from member.labels import RESTART_PRIORITY
from simulate.engine.components import managed_components
from simulate.engine.state import NEVER, State, is_outdated, is_ready, kept_ordinals, partition
from simulate.invariants.facts import (
    COMMANDS,
    annotations,
    asked_for,
    is_held,
    is_rolled_by_hand,
    is_suspended,
    parallelism,
    spec_of,
)
from simulate.invariants.operator_write import OperatorWrite


def i14(write: OperatorWrite) -> str | None:
    """The partition never rises during one revision, and passes only pods that are finished."""
    if write.live is None or write.changes_template:
        return None
    before, after = write.partition
    status = write.live.get("status", {})
    rolling = status.get("currentRevision") != status.get("updateRevision")
    ours = _partition_written(write.live)
    # OnDelete holds all pods, and a partition that another client lowered is corrected
    if rolling and before < after < NEVER and after > ours and write.replicas[0] == write.replicas[1]:
        return f"the partition of {write.component} rises from {before} to {after} in the middle of a roll"
    if after >= before:
        return None
    pods = write.before.pods(write.component)
    hit = [ordinal for ordinal in write.restarts[1] if is_ready(pods[ordinal])]
    # a scaled-in pod that still exists need not be waited for
    passed = [(o, pod) for o, pod in pods.items() if before <= o and o in write.ordinals[1]]
    undone = [o for o, each in passed if is_outdated(write.live, each) or not is_ready(each)]
    if hit and undone:
        pod = write.before.pod_name(write.component, undone[0])
        return f"the partition of {write.component} drops to {after} while {pod} is not done"
    return None


def _partition_written(live: Json) -> int:
    """The partition that the operator last gave a StatefulSet, by its own record, even if a client has spoilt the
    object.
    """
    try:
        record = json.loads(annotations(live).get("pingcap.com/last-applied-configuration", "null"))
    except ValueError:
        return NEVER
    return partition(record.get("updateStrategy") or {}) if record else NEVER


def i15(write: OperatorWrite) -> str | None:
    """The partition drops by one pod at a time; TiKV and TiFlash pods without a store do not count."""
    if write.live is None:
        return None
    component, ordinals = write.restarts
    if component and component_type(component).is_store:
        ordinals = [
            ordinal for ordinal in ordinals if write.before.stores_of(write.before.pod_name(component, ordinal))
        ]
    if len(ordinals) <= 1:
        return None
    return f"{write.call} restarts {len(ordinals)} pods of {component} at once: {ordinals}"


def by_priority(write: OperatorWrite) -> str | None:
    """7.1.1: no roll restarts a Ready pod before another outdated, Ready one to which the user gave a higher priority.

    A pod that its StatefulSet's controller restarts anyway counts as restarted. While a pod lacks a new volume,
    Kubernetes dictates the order.
    """
    component, ordinals = write.restarts
    live = write.before.stateful_set(component) if component else None
    if live is None or write.changes_template or is_rolled_by_hand(write.before.cluster, component):
        return None
    pods, reached = write.before.pods(component), partition(live["spec"].get("updateStrategy") or {})
    if any(_lacks_claims(live, pod) for pod in pods.values()):
        return None
    rolled = {
        ordinal: _priority(pod)
        for ordinal, pod in pods.items()
        if is_outdated(live, pod) and is_ready(pod) and ordinal in kept_ordinals(live)
    }
    for ordinal in (each for each in ordinals if each in rolled and each < reached):
        if any(command in annotations(pods[ordinal]) for command in COMMANDS):
            continue
        if above := [each for each, priority in rolled.items() if priority > rolled[ordinal]]:
            pod, other = (write.before.pod_name(component, each) for each in (ordinal, above[0]))
            return f"{write.call} restarts {pod} before {other}, whose priority is higher"
    return None


def _lacks_claims(live: Json, pod: Json) -> bool:
    wanted = {each["metadata"]["name"] for each in live["spec"].get("volumeClaimTemplates") or ()}
    return bool(wanted - {each["name"] for each in pod["spec"].get("volumes") or ()})


def _priority(pod: Json) -> int:
    text = str(annotations(pod).get(RESTART_PRIORITY, "0"))
    return int(text) if text.removeprefix("-").isdecimal() else 0


def left_on_delete(state: State) -> Iterator[str]:
    """7.1.1: a StatefulSet with OnDelete that the user does not ask for, and whose pods all run its newest revision."""
    for component in state.components:
        live, pods = state.stateful_set(component), state.pods(component)
        if live is None or live["spec"]["updateStrategy"].get("type") != "OnDelete":
            continue
        if is_held(state.cluster) or is_rolled_by_hand(state.cluster, component):
            continue
        kept = kept_ordinals(live)
        whole = all(each in pods and is_ready(pods[each]) and not is_outdated(live, pods[each]) for each in kept)
        if kept and whole:
            yield f"all pods of {component} are updated, and its StatefulSet still has the strategy OnDelete"


def i16(write: OperatorWrite) -> str | None:
    """No Ready pod is rolled while an earlier component is being rolled."""
    component, ordinals = write.restarts
    if write.live is None or not component:
        return None
    pods = write.before.pods(component)
    if not any(is_ready(pods[ordinal]) for ordinal in ordinals):
        return None
    for earlier in component_type(component).upgrades_after:
        other = write.before.stateful_set(earlier)
        if other and any(is_outdated(other, pod) for pod in write.before.pods(earlier).values()):
            return f"{write.call} rolls {component} while {earlier} is being upgraded"
    return None


def i17(write: OperatorWrite) -> str | None:
    """Replicas change by one in a reconcile, or by the configured parallelism."""
    if write.live is None:
        return None
    before, after = write.replicas
    limit = parallelism(write.seen, write.component, out=after > before)
    if abs(after - before) <= limit or after == 0:
        return None
    return f"replicas of {write.component} go from {before} to {after}, more than {limit} at once"


def i18(write: OperatorWrite) -> str | None:
    """Nothing shrinks below the required number, except by the parallelism, nor costs Ready pods that are needed."""
    component, ordinals = write.leaving
    if not ordinals or write.live is None or is_suspended(write.before.cluster, component):
        return None
    wanted, slack = (
        min(asked_for(write.known, component), write.replicas[0]),
        parallelism(write.seen, component, out=False),
    )
    # a member that has left the data plane goes even if it is required again
    if write.replicas[1] < (wanted if component == "tidb" else wanted - slack):
        return f"replicas of {component} go from {write.replicas[0]} to {write.replicas[1]}, {wanted} are wanted"
    ready = {ordinal for ordinal, pod in write.before.pods(component).items() if is_ready(pod)}
    staying = ready.intersection(write.ordinals[1])
    if component == "tidb" and ready.intersection(ordinals) and len(staying) < wanted - slack:
        return f"{write.call} leaves {len(staying)} Ready pods of {component}, {wanted} are wanted"
    return None


def i19(write: OperatorWrite) -> str | None:
    """No write both scales and rolls a component."""
    if write.live is None or write.changes_template:
        return None
    if write.replicas[0] != write.replicas[1] and write.restarts[1]:
        return f"{write.call} scales and restarts {write.component}"
    return None


def _stay(write: OperatorWrite) -> bool:
    """True if a component has pods that are not deleted."""
    pods = write.before.pods(write.component).values()
    return any(not pod["metadata"].get("deletionTimestamp") for pod in pods)


def _has_run(pod: Json) -> bool:
    """True if a container of a pod runs or has run."""
    kinds = ("initContainerStatuses", "containerStatuses")
    containers = [each for kind in kinds for each in (pod.get("status") or {}).get(kind) or ()]
    return any(
        container.get("restartCount") or (container.get("state") or {}).keys() - {"waiting"} for container in containers
    )


_UNNOTICED = 40.0
"""Seconds for which the operator may take a dead store for Up."""


def i20(write: OperatorWrite) -> str | None:
    """A component is created only if its dependencies serve; a PD elsewhere is not checked (lifecycle.md 3.1).

    A component whose pods run and that only lacks its StatefulSet gets it back at any time.
    """
    if not write.creates(STATEFUL_SETS) or not write.component or _stay(write):
        return None
    row, members = component_type(write.component), write.before.members
    lacks_quorum = sum(member.healthy for member in members) <= len(members) // 2
    if "pd" in row.starts_after and spec_of(write.seen, "pd") and lacks_quorum:
        return f"{row.title} is created while PD has no majority of healthy members"
    of_tikv = (store for store in write.before.stores if not store.is_tiflash)
    # a store of another cluster is Up again once PD, which may just have restarted, has its heartbeat. a dead one is Up
    # to PD for 20 s, to an operator with a slow PD for as long as PD takes to answer, and to a lagging member for good
    up = write.before.pd_repeats_answers or any(
        write.before.store_state(store) == "Up"
        or store.died_at is None
        or write.before.now - store.died_at <= _UNNOTICED
        for store in of_tikv
    )
    if "tikv" in row.starts_after and not up:
        return f"{row.title} is created while no TiKV store is Up"
    if "tso" in row.starts_after and write.before.pd is not None and not write.before.pd.gives_timestamps():
        return f"{row.title} is created while PD gives no timestamps"
    takes_binlogs = any(node["state"] == "online" for node in write.before.pump_nodes)
    if "pump" in row.starts_after and asked_for(write.seen, "pump") and not takes_binlogs:
        return f"{row.title} is created while no Pump node is online"
    return None


def i37(write: OperatorWrite) -> str | None:
    """A component is removed only if the user suspends it, and after the components that it serves; its configuration
    stays.

    One whose pods have never run may be recreated with them.
    """
    if write.deletes(CONFIG_MAPS):
        return f"{write.call}: configuration outlives everything but the cluster"
    if not write.deletes(STATEFUL_SETS) or write.body.get("propagationPolicy") == "Orphan" or not write.component:
        return None
    cluster = write.before.cluster
    if not is_suspended(cluster, write.component) and not any(
        map(_has_run, write.before.pods(write.component).values())
    ):
        return None
    if not is_suspended(cluster, write.component):
        return f"{write.call} though {write.component} is not to be suspended"
    rank = component_type(write.component).suspend_rank
    for served in (component for component in managed_components() if component_type(component).suspend_rank < rank):
        if is_suspended(cluster, served) and (write.before.stateful_set(served) or write.before.pods(served)):
            return f"{write.call} while {served}, which needs {write.component}, is not suspended yet"
    return None
