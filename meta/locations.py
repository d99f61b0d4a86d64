"""The stage `locations`: sends PD the locations of its stores, and servers their own (lifecycle.md 7.9).

PD spreads the replicas of a region over the values of its `location-labels`. Without them, two replicas may share a
host.
"""

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import structlog

from apis import predicates
from apis.accessor import Component, component, workloads
from apis.images import at_least
from apis.shared import WorkloadSpec
from dataplane.errors import DataPlaneError
from kube.actions import Action, Emit
from kube.events import WARNING
from kube.objects import Object
from member import api_clients
from member.actions import SetStoreLabels
from member.components import workload
from member.context import ReconcileContext
from member.observed.pod import Pod
from member.outcome import Done, Outcome

log = structlog.get_logger(__name__)

ZONE = "zone"
_WELL_KNOWN: Mapping[str, Sequence[str]] = {
    "region": ("topology.kubernetes.io/region", "failure-domain.beta.kubernetes.io/region"),
    ZONE: ("topology.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/zone"),
    "host": ("kubernetes.io/hostname",),
}
"""The labels that Kubernetes sets on nodes, by the short names that PD's location labels usually have."""


@dataclass(frozen=True, slots=True)
class _LocationUpdate:
    """Labels to send to a server. `memory` identifies the server's process, which loses its labels when it restarts;
    None if the server itself reports its labels.
    """

    target: str
    memory: Hashable
    labels: Mapping[str, str]
    action: Callable[[], Action[None]]

    @property
    def setting(self) -> Hashable:
        """The part that a server accepts or refuses as a whole."""
        return self.memory, tuple(sorted(self.labels.items()))


async def act(ctx: ReconcileContext) -> Outcome:
    """Send unknown locations. A server that refuses does not stop the others.

    Raises DataPlaneError if PD does not report its location labels, LeaseExpired.
    """
    spec, status = ctx.tc.spec, ctx.status
    if ctx.listers.nodes is None and not any(map(_labels_for, workloads(ctx.tc))):
        return Done("no permission for Nodes")
    if spec.paused:
        return Done("paused")
    servers = _servers(ctx)
    if (spec.pd is not None and not status.pd.synced) or not (status.tikv.stores or status.tiflash.stores or servers):
        return Done()
    configured = ctx.owner.metadata.uid, spec.pd
    keys = ctx.memory.location_labels.of(configured, ctx.deps.clock, partial(_location_labels, ctx))
    for update in (*_of_stores(ctx, keys), *_of_servers(ctx, keys, servers)):
        await _send(ctx, update)
    return Done()


def _labels_for(own: Component) -> Mapping[str, str]:
    return own.spec.labels_of_servers if isinstance(own.spec, WorkloadSpec) else {}


def _location_labels(ctx: ReconcileContext) -> tuple[str, ...]:
    return api_clients.pd_answers(ctx).config().location_labels


def _of_stores(ctx: ReconcileContext, keys: tuple[str, ...]) -> Iterator[_LocationUpdate]:
    """The stores whose labels in PD differ from their nodes' labels."""
    tikv = ctx.tc.spec.tikv
    wanted = tuple(dict.fromkeys((*keys, *(tikv.store_labels if tikv else ()))))
    for store in ctx.stores:
        own, keys_of_it = ctx.status.tikv.stores.get(str(store.id)), wanted
        if own is None:
            own, keys_of_it = ctx.status.tiflash.stores.get(str(store.id)), keys
        found = location(_node_of(ctx, own.pod_name)[1], keys_of_it) if own and keys_of_it else {}
        if found.items() - store.labels.items():
            send = partial(SetStoreLabels, api_clients.pd(ctx), store.id, found)
            yield _LocationUpdate(f"store {store.id}", None, found, send)


def _servers(ctx: ReconcileContext) -> dict[str, str]:
    """The component of each healthy server that accepts labels itself, by pod."""
    found: dict[str, str] = {}
    for own in workloads(ctx.tc):
        status = predicates.status_of(ctx.tc, own.name) if own.type.located_since else None
        if status is not None and at_least(own.version, own.type.located_since):
            found |= {pod: own.name for pod, serves in (status.servers or {}).items() if serves}
    return found


def _of_servers(ctx: ReconcileContext, keys: tuple[str, ...], servers: Mapping[str, str]) -> Iterator[_LocationUpdate]:
    """Updates for servers, which keep their labels only in memory and lose them in a restart."""
    for name, kind in servers.items():
        labels, locate = _labels_for(component(ctx.tc, kind)), workload(kind).locate
        if locate is None or not (labels or keys):
            continue
        pod, node = _node_of(ctx, name)
        if pod is None or (ctx.listers.nodes is not None and not node):
            continue
        if found := {**labels, **(location(node, keys) if labels else {}), **with_zone(node, keys)}:
            restarts = tuple(status.restart_count for status in pod.decode_as(Pod).status.container_statuses)
            yield _LocationUpdate(name, (pod.metadata.uid, restarts), found, partial(locate, ctx, name, found))


def _node_of(ctx: ReconcileContext, name: str) -> tuple[Object | None, Mapping[str, str]]:
    """A pod and the labels of its node, as far as they are cached."""
    listers = ctx.listers
    pod = listers.pods.get(ctx.namespace, name)
    host = pod.decode_as(Pod).spec.node_name if pod else ""
    node = listers.nodes.get("", host) if listers.nodes and host else None
    return pod, node.metadata.labels if node else {}


async def _send(ctx: ReconcileContext, update: _LocationUpdate) -> None:
    settings, clock = ctx.memory.accepted_settings, ctx.deps.clock
    if not settings.is_new(update.target, update.setting, clock):
        return
    try:
        await update.action()
    except DataPlaneError as error:
        settings.refused(update.target, update.setting, clock)
        log.warning("could not set location labels", target=update.target, labels=dict(update.labels), error=str(error))
        message = f"could not set location labels {dict(update.labels)} of {update.target}: {error}"
        await Emit(ctx.owner, WARNING, "FailedSetStoreLabels", message)
    else:
        if update.memory is None:
            settings.forget(update.target)
        else:
            settings.accepted(update.target, update.setting, clock)


def location(node: Mapping[str, str], keys: Sequence[str]) -> dict[str, str]:
    """The values of `keys` among the labels of a node, without keys that the node lacks."""
    found = {key: next((node[name] for name in (key, *_WELL_KNOWN.get(key, ())) if node.get(name)), "") for key in keys}
    return {key: value for key, value in found.items() if value}


def with_zone(node: Mapping[str, str], keys: Sequence[str]) -> dict[str, str]:
    """The location of a server that prefers replicas in its own zone; empty if `keys` contain no zone."""
    zone = next((key for key in (ZONE, *_WELL_KNOWN[ZONE]) if key in keys), "")
    found = location(node, keys) if zone else {}
    return found | {ZONE: found[zone]} if zone in found else {}
