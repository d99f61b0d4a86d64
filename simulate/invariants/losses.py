"""Losses: the operator does not aggravate them (O11, O12)."""

from collections import Counter
from collections.abc import Collection, Iterator

from apis.times import parse_time
from kube.objects import Json
from kube.resources import STATEFUL_SETS
from member.objects.stateful_set import is_rolling
from member.observed.pod import OF_IMAGES
from simulate.engine.components import profile
from simulate.engine.state import State, component_of, is_outdated, kept_ordinals, pod_of, pod_of_member, replicas
from simulate.invariants.facts import asked_for, is_held, is_replaced, is_suspended, records
from simulate.invariants.operator_write import OperatorWrite


def o11(write: OperatorWrite) -> str | None:
    """No region with a majority loses it by the permanent removal of pods; restarts are I41's."""
    pd, cluster = write.before.pd, write.before.cluster
    taken = _taken(write, "tikv")
    if pd is None or not taken or is_suspended(cluster, "tikv"):
        return None
    hit = {store.id for ordinal in taken for store in write.before.stores_of(write.before.pod_name("tikv", ordinal))}
    dead = write.before.dead_stores
    lost = [region for region in pd.stores.regions if region.has_majority(dead) and not region.has_majority(dead | hit)]
    if not lost:
        return None
    return f"{write.call} takes stores {sorted(hit)} away and leaves {len(lost)} of {len(pd.stores.regions)} regions"


def o12(write: OperatorWrite) -> str | None:
    """No serving or starting member or store is removed while fewer than required would serve without it."""
    before = write.before
    if write.removed_member:
        healthy = {pod_of_member(member) for member in before.members if member.healthy}
        return _too_few(write, "pd", write.removed_member, healthy)
    if write.removed_store:
        given_up = before.store(write.removed_store)
        component = component_of(given_up) if given_up else ""
        kin = (store for store in before.stores if component_of(store) == component)
        up = {pod_of(store) for store in kin if before.store_state(store) == "Up"}
        return _too_few(write, component, pod_of(given_up), up) if given_up else None
    return None


def i46(state: State) -> str | None:
    """At most one member or store is moved to a revision whose image cannot be pulled."""
    known = {"pd": {pod_of_member(member) for member in state.members}}
    for store in state.stores:
        known.setdefault(component_of(store), set()).add(pod_of(store))
    for component, names in known.items():
        live = state.stateful_set(component)
        if live is None or not is_rolling(live):
            continue
        pods = {state.pod_name(component, ordinal): pod for ordinal, pod in state.pods(component).items()}
        # an image that the old revision has, too, is missing on both
        former = {image for pod in pods.values() if is_outdated(live, pod) for image in _images(pod).values()}
        stuck = [name for name in sorted(names & pods.keys()) if _lacks_image(live, pods[name], former)]
        if len(stuck) > 1:
            return f"{', '.join(stuck)} wait for the image of a revision that has never run"
    return None


def _lacks_image(live: Json, pod: Json, former: Collection[str]) -> bool:
    """True if a pod of the newest revision waits for an image that cannot be pulled, and is not a `former` one."""
    images = _images(pod)
    waiting = (
        images[status["name"]]
        for status in pod["status"].get("containerStatuses") or ()
        if (status["state"].get("waiting") or {}).get("reason") in OF_IMAGES
    )
    return not is_outdated(live, pod) and any(image not in former for image in waiting)


def _images(pod: Json) -> dict[str, str]:
    return {container["name"]: container["image"] for container in pod["spec"]["containers"]}


def abandoned(state: State) -> Iterator[str]:
    """O12: members, and stores with regions, whose pods cannot run anywhere."""
    cluster = state.cluster
    members = {"pd": {pod_of_member(member) for member in state.members}}
    holders: dict[str, set[str]] = {}
    for store in state.stores:
        if store.peers:
            holders.setdefault(component_of(store), set()).add(pod_of(store))
    for component, pods in (members | holders).items():
        live = state.stateful_set(component)
        if live is None or is_held(cluster) or is_suspended(cluster, component):
            continue
        places = {state.pod_name(component, ordinal) for ordinal in kept_ordinals(live)}
        for pod in sorted(pods - places):
            if pod.startswith(f"{state.name}-{component}-"):
                yield f"PD counts on {pod}, and its StatefulSet has {replicas(live)} replicas"


def lacking(state: State) -> str:
    """The components with fewer serving members than the spec requires, in words, or empty."""
    return "; ".join(
        f"{serving} of {wanted} {component}"
        for component, serving in _serving(state)
        if serving < (wanted := asked_for(state.cluster, component))
    )


def _serving(state: State) -> Iterator[tuple[str, int]]:
    yield "pd", sum(member.healthy for member in state.members)
    yield from Counter(component_of(store) for store in state.stores if state.store_state(store) == "Up").items()


def _taken(write: OperatorWrite, component: str) -> list[int]:
    """The ordinals of a component's pods that a write ends without replacement."""
    if write.deletes(STATEFUL_SETS) and write.component == component:
        return [] if write.body.get("propagationPolicy") == "Orphan" else list(write.before.pods(component))
    there, ordinals = write.leaving
    return ordinals if there == component else []


def _too_few(write: OperatorWrite, component: str, given_up: str, serving: set[str]) -> str | None:
    """The violation of removing a pod of a component with these serving pods."""
    wanted, left = asked_for(write.known, component), serving - {given_up}
    pod = next((each for each in write.before.pods(component).values() if each["metadata"]["name"] == given_up), None)
    if len(left) >= wanted or is_replaced(pod) or not (given_up in serving or _is_starting(write, component, pod)):
        return None
    return f"{write.call} gives up {given_up}, which is not lost, and leaves {len(left)} of {wanted} {component}"


def _is_starting(write: OperatorWrite, component: str, pod: Json | None) -> bool:
    """True if a pod is too young to count as lost, and not the replacement of a lost one."""
    recorded = {record.get("podName") for record in records(write.before.cluster, component).values()}
    if pod is not None and pod["metadata"]["name"] in recorded:
        return False
    created = parse_time(pod["metadata"]["creationTimestamp"]) if pod else None
    period = profile(component).failover_period(write.failover)
    return created is not None and write.before.wall - created.timestamp() < period
