"""Films of clusters: a frame of each at every moment at which something has changed."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Protocol

from apis.accessor import COMPONENT_LABEL
from apis.cluster import WITHOUT_EFFECT
from apis.components import component_type
from kube.objects import Json, condition_of
from kube.resources import PODS, TIDB_CLUSTERS, Resource
from ports.clock import Clock
from rehearsal.forecast import Frame, Pod, Regions
from rehearsal.recording import WORKLOADS, reference_of
from sandbox.dataplane.pd.cluster import PdCluster
from sandbox.dataplane.runtime import DataPlane
from sandbox.mirror import Mirror

PATIENCE = 11 * 60.0
"""The seconds without progress after which a change counts as stuck: longer than a failover takes, and than the ten
minutes after which the operator calls a roll stuck.
"""
REFUSED = 60.0
"""The seconds for which a refusal must last."""
_RECORDS = ("failureMembers", "failureStores")
"""The fields of a component's status with the lost pods."""


class Filmed(Protocol):
    """A world, simulated as a whole or behind a real control plane."""

    @property
    def mirror(self) -> Mirror:
        """The clusters of the API server, their StatefulSets and pods, and possibly more."""

    @property
    def data_plane(self) -> DataPlane:
        """The servers in the pods, and their clock."""


class Film:
    """The frames of one cluster."""

    sees_servers = False
    """True if a pod whose server does not listen is not Ready, whatever Kubernetes still believes."""

    def __init__(self, world: Filmed, resource: Resource, namespace: str, name: str, began: float) -> None:
        """`began`: the time of the world's clock from which the frames count."""
        self._world = world
        self._resource, self._namespace, self._name = resource, namespace, name
        self._began = began
        self._pd: PdCluster | None = None
        self.frames: list[Frame] = []
        self.frames.append(self._frame())

    def look(self) -> bool:
        """Add a frame if something has changed; return True if more than words have."""
        frame, last = self._frame(), self.frames[-1]
        is_news = not frame.looks_like(last)
        words, last_words = (frame.message, frame.warnings), (last.message, last.warnings)
        if is_news or words != last_words or frame.is_ready != last.is_ready:
            self.frames.append(frame)
        return is_news

    def see_servers(self) -> None:
        """From now on, look at servers and regions, too; the first frame is taken again."""
        self.sees_servers = True
        self.frames[-1] = self._frame()

    @property
    def pd(self) -> PdCluster | None:
        """The cluster's PD, also while no member of it runs; None if none has run yet."""
        tree = self._tree
        own = self._namespace, self._name
        joined = reference_of(tree) if tree and self._resource is TIDB_CLUSTERS else None
        self._pd = self._world.data_plane.pd_cluster(*(joined or own)) or self._pd
        return self._pd

    def beyond_kubernetes(self) -> list[object]:
        """What frames with servers depend on and no object shows: it differs after each change."""
        changes, stores = self._world.data_plane.visible_changes, self.pd.stores if self.pd else None
        return [changes, stores.regions, [store.died_at for store in stores.all()]] if stores else [changes]

    @property
    def _tree(self) -> Json:
        return self._world.mirror.get(self._resource, self._namespace, self._name) or {}

    def _frame(self) -> Frame:
        mirror, tree = self._world.mirror, self._tree
        uid = (tree.get("metadata") or {}).get("uid")
        sets = [stateful_set for stateful_set in self._stateful_sets() if uid and _controller(stateful_set) == uid]
        by_uid = {
            stateful_set["metadata"]["uid"]: stateful_set["metadata"]["labels"][COMPONENT_LABEL]
            for stateful_set in sets
        }
        by_name = {stateful_set["metadata"]["name"]: by_uid[stateful_set["metadata"]["uid"]] for stateful_set in sets}
        of_pods = {
            each["metadata"]["name"]: (each, component)
            for each in mirror.list(PODS, self._namespace)
            if (component := by_uid.get(_controller(each)) or self._orphaned(each))
        }
        status = tree.get("status") or {}
        conditions = status.get("conditions") or ()
        progressing = condition_of(conditions, "Progressing")
        without_effect = (condition_of(conditions, kind) for kind in WITHOUT_EFFECT)
        return Frame(
            at=round(self._world.data_plane.clock.now() - self._began, 3),
            pods={name: self._pod(each, component) for name, (each, component) in of_pods.items()},
            replicas=self._replicas_kept(component for _, component in of_pods.values())
            | {by_uid[stateful_set["metadata"]["uid"]]: stateful_set["spec"]["replicas"] for stateful_set in sets},
            is_ready=condition_of(conditions, "Ready").get("status") == "True",
            is_waiting=progressing.get("status") == "True",
            reason=str(progressing.get("reason") or ""),
            message=str(progressing.get("message") or ""),
            warnings=[str(each.get("message")) for each in without_effect if each.get("status") == "True"],
            lost={pod: by_name[of] for pod in _lost(status) if (of := pod.rpartition("-")[0]) in by_name},
            regions=_regions(self.pd) if self.sees_servers else None,
        )

    def _stateful_sets(self) -> Iterator[Json]:
        """Native and Advanced StatefulSets of the namespace."""
        mirror = self._world.mirror
        for resource in WORKLOADS:
            if resource in mirror.resources:
                yield from mirror.list(resource, self._namespace)

    def _orphaned(self, pod: Json) -> str:
        """The component of a pod whose StatefulSet is being recreated; empty for any other."""
        before = self.frames[-1].pods.get(pod["metadata"]["name"]) if self.frames else None
        stays = before is not None and before.uid == pod["metadata"]["uid"] and not _controller(pod)
        return before.component if before and stays else ""

    def _replicas_kept(self, components: Iterable[str]) -> dict[str, int]:
        """The last known replicas of components that have pods, for those whose StatefulSet is being recreated."""
        before = self.frames[-1].replicas if self.frames else {}
        return {component: before[component] for component in components if component in before}

    def _pod(self, tree: Json, component: str) -> Pod:
        meta = tree["metadata"]
        conditions = (tree.get("status") or {}).get("conditions") or ()
        is_ready = condition_of(conditions, "Ready").get("status") == "True"
        if is_ready and self.sees_servers:
            is_ready = self._listens(meta["name"], component)
        node = str(tree["spec"].get("nodeName") or "")
        return Pod(meta["uid"], component, node, is_ready, meta.get("deletionTimestamp") is not None)

    def _listens(self, pod: str, component: str) -> bool:
        row = component_type(component)
        running = self._world.data_plane.running(self._namespace, pod)
        return any(each.process.listens(row.ports[row.metrics_port]) for each in running)


def _controller(tree: Json) -> str:
    owners = tree["metadata"].get("ownerReferences") or ()
    return next((str(owner["uid"]) for owner in owners if owner.get("controller")), "")


def _lost(status: Mapping[str, Any]) -> Iterator[str]:
    """The names of the pods that a cluster's status records as lost."""
    for part in status.values():
        for kind in _RECORDS if isinstance(part, dict) else ():
            yield from (str(each["podName"]) for each in (part.get(kind) or {}).values())


def _regions(pd: PdCluster | None) -> Regions | None:
    if pd is None or not pd.stores.bootstrapped:
        return None
    dead = {store.id for store in pd.stores.all() if store.died_at is not None}
    alive = [(sum(peer not in dead for peer in region.peers), region) for region in pd.stores.regions]
    return Regions(
        total=len(alive),
        without_spare=sum(2 * (count - 1) <= len(each.peers) for count, each in alive),
        without_majority=sum(not each.has_majority(dead) for _, each in alive),
        without_copy=sum(not count for count, _ in alive),
        leaderless=sum(each.has_majority(dead) and each.leader in {None, *dead} for _, each in alive),
    )


class Watcher:
    """Decides when nothing more will happen: all is done, refused, or has stood still for long."""

    def __init__(self, clock: Clock, films: Sequence[Film]) -> None:
        self._clock = clock
        self._films = films
        self._since = clock.now()

    @property
    def quiet(self) -> float:
        """The seconds since the last change."""
        return self._clock.now() - self._since

    def look(self) -> None:
        """Look at all clusters."""
        is_news = [film.look() for film in self._films]
        if any(is_news):
            self._since = self._clock.now()

    def is_over(self) -> bool:
        """True if nothing more will happen."""
        last = [film.frames[-1] for film in self._films]
        if all(frame.is_over or frame.is_held or frame.is_refused for frame in last):
            return self.quiet >= REFUSED
        return self.quiet >= PATIENCE
