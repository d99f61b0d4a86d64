"""The members and stores of running clusters, from their statuses, on the volumes of a twin.

A status does not list the regions: a sample stands for them, with leaders in proportion.
"""

import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import urlsplit

from apis.cluster import Cluster
from apis.dmcluster import DMCluster
from apis.shared import PDMember
from apis.tidbcluster import TidbCluster
from dataplane.addresses import DM_MASTER_PEER_PORT, PD_PEER_PORT
from dataplane.pd import OFFLINE
from kube.objects import Json
from meta.locations import location
from ports.clock import Clock
from ports.randomness import SeededRandomness
from sandbox.dataplane.membership import StoreData
from sandbox.dataplane.pd.cluster import Member, PdCluster
from sandbox.dataplane.pd.config import Config
from sandbox.dataplane.pd.process import PdData
from sandbox.dataplane.pd.regions import Place, Region, Rules, schedule
from sandbox.dataplane.pd.stores import Heartbeat, NodeState, Store
from sandbox.dataplane.processes import Disk
from sandbox.dataplane.runtime import DataPlane
from sandbox.timings import Timings

_REGIONS = 30
"""The least number of regions in the sample; a store has at least three."""
_TIFLASH = {"engine": "tiflash"}
"""The label of its stores."""
_TIFLASH_DATA = "/data0/db"
_EVERYWHERE = 10**6


@dataclass(frozen=True, slots=True)
class Volumes:
    """The volumes of the pods of clusters: pods and claims by namespace and name, ConfigMaps likewise."""

    data_plane: DataPlane
    pods: Mapping[tuple[str, str], Json]
    claims: Mapping[tuple[str, str], Json]
    config_maps: Mapping[tuple[str, str], Json]

    def has(self, namespace: str, pod: str) -> bool:
        """True if the pod exists, or its StatefulSet is about to create it."""
        return (namespace, pod) in self.pods

    def disk(self, namespace: str, pod: str, path: str) -> Disk | None:
        """The disk at a path of a pod's containers; None if no claim is mounted there."""
        spec = self.pods[namespace, pod]["spec"]
        claims = {
            volume["name"]: volume["persistentVolumeClaim"]["claimName"]
            for volume in spec.get("volumes") or ()
            if "persistentVolumeClaim" in volume
        }
        mounts = {
            mount["mountPath"].rstrip("/"): claims[mount["name"]]
            for container in spec["containers"]
            for mount in container.get("volumeMounts") or ()
            if mount["name"] in claims and f"{path}/".startswith(f"{mount['mountPath'].rstrip('/')}/")
        }
        if not mounts:
            return None
        mount = max(mounts, key=len)
        claim = self.claims.get((namespace, mounts[mount]))
        if claim is None:
            return None
        return self.data_plane.disk(claim["metadata"]["uid"]).directory(path[len(mount) :].strip("/"))

    def configuration(self, namespace: str, pod: str) -> str:
        """The configuration of a pod's server, from the ConfigMap that it mounts; empty if there is none."""
        for volume in self.pods[namespace, pod]["spec"].get("volumes") or ():
            source = volume.get("configMap") or {}
            data = (self.config_maps.get((namespace, source.get("name", ""))) or {}).get("data") or {}
            for name in ("config-file", "config_templ.toml"):
                if name in data:
                    return str(data[name])
        return ""

    def version(self, namespace: str, pod: str) -> str:
        """The version in a pod's image."""
        image: str = self.pods[namespace, pod]["spec"]["containers"][0]["image"]
        return image.rsplit("/", 1)[-1].partition(":")[2].partition("@")[0].removeprefix("v") or "0.0.0"


@dataclass(frozen=True, slots=True)
class Databases:
    """The databases of clusters, to be resumed on their volumes. `nodes` are the labels of nodes by name."""

    volumes: Volumes
    nodes: Mapping[str, Mapping[str, str]]
    clock: Clock
    timings: Timings

    def resume(self, clusters: Sequence[Cluster]) -> None:
        """Write the members and stores in the statuses of clusters to the volumes."""
        for cluster in clusters:
            if isinstance(cluster, DMCluster):
                self._resume_masters(cluster)
            elif isinstance(cluster, TidbCluster) and cluster.status.pd.members:
                others = (other for other in clusters if isinstance(other, TidbCluster))
                self._resume_pd(cluster, [other for other in others if _uses(other, cluster)])

    def _resume_masters(self, dc: DMCluster) -> None:
        status, spec = dc.status.master, dc.spec.master
        quorum = _Quorum(self._cluster(), "/var/lib/dm-master", spec.data_sub_dir if spec else "", DM_MASTER_PEER_PORT)
        self._admit(quorum, dc.metadata.namespace, status.members.values())
        _prefer(quorum, status.leader)

    def _resume_pd(self, tc: TidbCluster, sharing: Sequence[TidbCluster]) -> None:
        namespace, status, spec = tc.metadata.namespace, tc.status.pd, tc.spec.pd
        pods = (name.partition(".")[0] for name in status.members)
        configured = (self.volumes.configuration(namespace, pod) for pod in pods if self.volumes.has(namespace, pod))
        cluster = self._cluster(next(configured, ""))
        cluster.id = int(tc.status.cluster_id or cluster.id)
        quorum = _Quorum(cluster, "/var/lib/pd", spec.data_sub_dir if spec else "", PD_PEER_PORT)
        for each in sharing:
            self._admit(quorum, each.metadata.namespace, each.status.pd.members.values())
        _prefer(quorum, status.leader)
        stores = [store for each in sharing for store in self._stores(each, cluster)]
        cluster.stores.resume(stores, _regions(stores, _leaders(sharing), cluster, self.timings))

    def _cluster(self, toml: str = "") -> PdCluster:
        return PdCluster(self.clock, SeededRandomness(1), self.timings, Config(toml))

    def _admit(self, quorum: "_Quorum", namespace: str, members: Iterable[PDMember]) -> None:
        """Add members to a quorum, and note their membership on their volumes; those without a pod are leaving."""
        for member in members:
            pod, url = member.name.partition(".")[0], urlsplit(member.client_url)
            if not self.volumes.has(namespace, pod):
                continue
            peer_url = f"{url.scheme}://{url.hostname}:{quorum.peer_port}"
            version = self.volumes.version(namespace, pod)
            quorum.cluster.admit(Member(int(member.id), member.name, peer_url, member.client_url, version))
            disk = self.volumes.disk(namespace, pod, _below(quorum.directory, quorum.sub_directory))
            if disk is not None:
                disk.data = PdData(quorum.cluster, int(member.id))
                disk.files["member/wal/0.wal"] = ""

    def _stores(self, tc: TidbCluster, cluster: PdCluster) -> Iterator[Store]:
        """The stores of a TidbCluster, each noted on its volume; removed ones have none. See `_admit`."""
        namespace, own = tc.metadata.namespace, tc.spec.tikv
        keys = (*cluster.config.location_labels, *(own.store_labels if own else ()))
        beat = Heartbeat(self.clock.now(), self.clock.wall().timestamp())
        tikv = _below("/var/lib/tikv", own.data_sub_dir if own else "")
        for status, engine in ((tc.status.tikv, {}), (tc.status.tiflash, _TIFLASH)):
            for store in status.stores.values():
                if not self.volumes.has(namespace, store.pod_name):
                    continue
                node = self.volumes.pods[namespace, store.pod_name]["spec"].get("nodeName", "")
                labels = location(self.nodes.get(node, {}), keys) | engine
                path = self._tiflash_path(namespace, store.pod_name) if engine else tikv
                disk = self.volumes.disk(namespace, store.pod_name, path)
                if disk is not None:
                    disk.data = StoreData(cluster.id, int(store.id))
                version = self.volumes.version(namespace, store.pod_name)
                resumed = Store(int(store.id), store.ip, version, beat.wall, beat, labels=labels)
                if store.state == OFFLINE:
                    resumed.node_state = NodeState.REMOVING
                yield resumed
            for store in status.tombstone_stores.values():
                removed = Store(int(store.id), store.ip, cluster.stores.cluster_version, 0.0, beat, labels=dict(engine))
                removed.node_state = NodeState.REMOVED
                yield removed

    def _tiflash_path(self, namespace: str, pod: str) -> str:
        configured = tomllib.loads(self.volumes.configuration(namespace, pod))
        main = ((configured.get("storage") or {}).get("main") or {}).get("dir") or ()
        path: str = next(iter(main), "") or configured.get("path") or _TIFLASH_DATA
        return path.split(",", maxsplit=1)[0].strip().rstrip("/")


@dataclass(frozen=True, slots=True)
class _Quorum:
    """The members of a PD cluster, or DM's masters: where they keep their data, and the port of their peers."""

    cluster: PdCluster
    directory: str
    sub_directory: str
    peer_port: int


def _uses(cluster: TidbCluster, home: TidbCluster) -> bool:
    """True if the PD of `home` serves a cluster."""
    reference, own = cluster.spec.cluster, home.metadata
    if cluster is home or reference is None or not reference.name:
        return cluster is home
    return (reference.namespace or cluster.metadata.namespace, reference.name) == (own.namespace, own.name)


def _prefer(quorum: _Quorum, leader: PDMember | None) -> None:
    if leader is not None:
        quorum.cluster.prefer(int(leader.id))


def _below(directory: str, name: str) -> str:
    return f"{directory}/{name}" if name else directory


def _leaders(clusters: Iterable[TidbCluster]) -> dict[int, int]:
    """The leaders of the TiKV stores that are Up, by id."""
    stores = (store for cluster in clusters for store in cluster.status.tikv.stores.values())
    return {int(store.id): store.leader_count for store in stores}


def _regions(
    stores: Sequence[Store], leaders: Mapping[int, int], cluster: PdCluster, timings: Timings
) -> Sequence[Region]:
    """A sample of regions: each store leads its share, and peers are placed as PD places them."""
    own = {each.id: each for each in stores}
    leaders = {store: count for store, count in leaders.items() if store in own}
    total = sum(leaders.values())
    if not leaders:
        return []
    size = max(_REGIONS, 3 * len(leaders))
    shares = {store: count * size / total if total else size / len(leaders) for store, count in leaders.items()}
    regions = [Region((store,), store) for store, share in shares.items() for _ in range(round(share))]
    keys = cluster.config.location_labels
    places = [Place(store, location=tuple(own[store].labels.get(key, "") for key in keys)) for store in leaders]
    rules = Rules(cluster.placement.replicas, peer_moves=_EVERYWHERE, leader_moves=0, election=timings.raft_election)
    before: list[Region] = []
    for _ in range(size):
        before, regions = regions, schedule(regions, places, rules)
        if before == regions:
            break
    return regions
