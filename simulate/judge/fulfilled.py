"""What a user has at the end of a plan from overlays, hooks, classes of volumes, full-text search, a newer operator,
and restores of a log."""

from collections.abc import Iterator
from urllib.parse import parse_qs, urlsplit

import msgspec

from apis.cluster import CHANGES_PENDING
from apis.components import component_type
from apis.graceful_stop import GRACEFUL_STOP
from apis.overlays import overlay_annotation
from kube.objects import Json
from kube.resources import RESTORES, VOLUME_ATTRIBUTES_CLASSES
from sandbox.conditions import condition
from sandbox.dataplane.ticdc.book import Book
from simulate.engine.engine import NEWER
from simulate.engine.plan import Newer, Plan
from simulate.engine.state import State
from simulate.engine.worlds import ON_EBS, STORAGE
from simulate.invariants.facts import annotations, spec_of

_FEED = "tici-replication-task"


def unfulfilled(state: State, plan: Plan) -> Iterator[str]:
    """What a cluster at rest lacks."""
    cluster = state.cluster
    if cluster is None:
        return
    for component in state.components:
        yield from _overlay(state, component, annotations(cluster).get(overlay_annotation(component), "{}"))
        if component_type(component).has_graceful_stop and annotations(cluster).get(GRACEFUL_STOP) == "true":
            yield from _hooks(state, component)
        yield from _class(state, component, spec_of(cluster, component).get("storageClassName"))
    if "tici" in cluster["spec"]:
        yield from _feed(state, cluster["spec"]["tici"]["s3"]["secretKey"])
    for store in state.stores:
        if state.pd is not None and store.id in state.pd.stores.evicting:
            yield f"the leaders of store {store.id} at {store.address} are still evicted"
    if any(isinstance(event, Newer) for event in plan.events):
        yield from _pending(state, cluster)
    for restore in state.all(RESTORES):
        if (phase := (restore.get("status") or {}).get("phase")) != "Complete":
            yield f"Restore {restore['metadata']['name']} is {phase or 'new'}"


def _overlay(state: State, component: str, text: str) -> Iterator[str]:
    """Pods with another `hostIPC`, which only the plans' overlays set, than the component's overlay."""
    asked = msgspec.json.decode(text).get("template", {}).get("spec", {}).get("hostIPC", False)
    for pod in state.pods(component).values():
        if pod["spec"].get("hostIPC", False) != asked:
            yield f"{pod['metadata']['name']} has not the hostIPC of {component}'s overlay {text}"


def _hooks(state: State, component: str) -> Iterator[str]:
    """Pods that do not stop gracefully."""
    for pod in state.pods(component).values():
        if not any("preStop" in (each.get("lifecycle") or {}) for each in pod["spec"]["containers"]):
            yield f"{pod['metadata']['name']} has no hook"


def _class(state: State, component: str, wanted: str | None) -> Iterator[str]:
    """Volumes of a component that perform differently from the storage class of the spec."""
    asked = {each["metadata"]["name"]: each["parameters"]["iops"] for each in STORAGE.get(ON_EBS, ())}.get(wanted or "")
    given = {each["metadata"]["name"]: each["parameters"] for each in state.all(VOLUME_ATTRIBUTES_CLASSES)}
    for claim in state.claims() if asked else ():
        name, current = claim["metadata"]["name"], claim["status"].get("currentVolumeAttributesClassName", "")
        born = claim["spec"]["storageClassName"] == wanted
        if f"-{component}-" in name and not born and given.get(current, {}).get("iops") != asked:
            yield f"{name} performs as {current or 'at first'}, not as {wanted}"


def _feed(state: State, key: str) -> Iterator[str]:
    feed = Book(state.pd.etcd, state.now).feed(_FEED) if state.pd else None
    if feed is None or [key] != parse_qs(urlsplit(feed["sink"]).query).get("secret-access-key"):
        yield f"TiCDC's feed of TiCI has not the key of the spec, {key}: {feed}"


def _pending(state: State, cluster: Json) -> Iterator[str]:
    """A condition that names other components than those without the newer operator's label."""
    shown = condition(cluster["status"].get("conditions"), CHANGES_PENDING) or {}
    for component in state.components:
        live = state.stateful_set(component)
        lacks = live is not None and NEWER not in live["spec"]["template"]["metadata"]["labels"]
        if lacks != (f" {component} (" in shown.get("message", "")):
            yield f"{component} {'lacks' if lacks else 'has'} the newer operator's label, and ChangesPending is {shown}"
