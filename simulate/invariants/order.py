"""Order: what comes first, how much at a time (I14-I20, I37)."""

from apis.components import component_type
from kube.resources import CONFIG_MAPS, STATEFUL_SETS
from simulate.acts import Act
from simulate.components import managed_components
from simulate.invariants.facts import asked_for, is_suspended, parallelism
from simulate.state import NEVER, is_outdated, is_ready
from simulate.worlds import NAME


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
    # a pod that was scaled in, and is not gone yet, is nobody's to wait for
    passed = [(o, pod) for o, pod in pods.items() if before <= o < act.replicas[1]]
    undone = [o for o, pod in passed if is_outdated(act.live, pod) or not is_ready(pod)]
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
    if act.live is None or not part:
        return None
    pods = act.before.pods(part)
    if not any(is_ready(pods[each]) for each in ordinals):
        return None
    for earlier in component_type(part).upgrades_after:
        other = act.before.stateful_set(earlier)
        if other and any(is_outdated(other, pod) for pod in act.before.pods(earlier).values()):
            return f"{act.call} rolls {part} while {earlier} is being upgraded"
    return None


def i17(act: Act) -> str | None:
    """Replicas change by one in a reconcile, or by the configured parallelism."""
    if act.live is None:
        return None
    before, after = act.replicas
    limit = parallelism(act.seen, act.part, out=after > before)
    if abs(after - before) <= limit or after == 0:
        return None
    return f"replicas of {act.part} go from {before} to {after}, more than {limit} at once"


def i18(act: Act) -> str | None:
    """Nothing shrinks below what is asked for, but by the parallelism, nor costs Ready pods that are needed."""
    part, ordinals = act.leaving
    if not ordinals or is_suspended(act.before.cluster, part):
        return None
    wanted, slack = min(asked_for(act.known, part), act.replicas[0]), parallelism(act.seen, part, out=False)
    # what has left the data plane before it was wanted again goes nevertheless
    if act.replicas[1] < (wanted if part == "tidb" else wanted - slack):
        return f"replicas of {part} go from {act.replicas[0]} to {act.replicas[1]}, {wanted} are wanted"
    ready = {ordinal for ordinal, pod in act.before.pods(part).items() if is_ready(pod)}
    staying = ready.intersection(range(act.replicas[1]))
    if part == "tidb" and ready.intersection(ordinals) and len(staying) < wanted - slack:
        return f"{act.call} leaves {len(staying)} Ready pods of {part}, {wanted} are wanted"
    return None


def i19(act: Act) -> str | None:
    """A component is not scaled and rolled by one write."""
    if act.live is None or act.changes_template:
        return None
    if act.replicas[0] != act.replicas[1] and act.restarts[1]:
        return f"{act.call} scales and restarts {act.part}"
    return None


def i20(act: Act) -> str | None:
    """A component is created only when what it needs serves."""
    if not act.creates(STATEFUL_SETS) or not act.part:
        return None
    row, members = component_type(act.part), act.before.members
    if "pd" in row.starts_after and sum(each.healthy for each in members) <= len(members) // 2:
        return f"{row.title} is created while PD has no majority of healthy members"
    if "tikv" in row.starts_after and not any(act.before.store_state(each) == "Up" for each in act.before.stores):
        return f"{row.title} is created while no TiKV store is Up"
    return None


def i37(act: Act) -> str | None:
    """A component goes only when the user suspends it, and after those it serves; its configuration stays."""
    if act.deletes(CONFIG_MAPS):
        return f"{act.call}: configuration outlives everything but the cluster"
    if not act.deletes(STATEFUL_SETS) or act.body.get("propagationPolicy") == "Orphan" or not act.part:
        return None
    cluster = act.before.cluster
    if not is_suspended(cluster, act.part):
        return f"{act.call} though {act.part} is not to be suspended"
    rank = component_type(act.part).suspend_rank
    for served in (each for each in managed_components() if component_type(each).suspend_rank < rank):
        if is_suspended(cluster, served) and (act.before.stateful_set(served) or act.before.pods(served)):
            return f"{act.call} while {served}, which needs {act.part}, is not suspended yet"
    return None
