"""The starting points of plans: the clusters by name, and worlds with one of them."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cache, partial
from itertools import combinations

import msgspec
import yaml

from apis.components import component_type
from apis.consent import ALLOWED_FROM
from apis.decoding import decode
from apis.ordinals import desired_replicas, slots_annotation
from apis.tidbcluster import TidbCluster
from kube.objects import Json
from kube.resources import STORAGE_CLASSES
from member.context import FailoverSettings, Settings
from member.labels import with_annotation
from ports.clock import FakeClock
from ports.randomness import SeededRandomness
from rehearsal.world import new_world
from sandbox.controllers.volumes import standard_storage_class
from sandbox.directory import CLUSTER_DOMAIN
from sandbox.kubelet.nodes import NodeSpec
from sandbox.timings import Timings
from sandbox.world import World
from simulate.engine.components import managed_components

NAMESPACE = "default"
NAME = "basic"
SLOTTED, SWITCHED = "slotted", "switched"
ON_EBS = "on-ebs"
KEY = f"{NAMESPACE}/{NAME}"
"""The cluster of a plan."""


_SMALL = msgspec.json.encode(
    yaml.safe_load("""
apiVersion: pingcap.com/v1alpha1
kind: TidbCluster
metadata: {name: basic}
spec:
  version: v8.5.2
  timezone: UTC
  configUpdateStrategy: RollingUpdate
  pvReclaimPolicy: Retain
  discovery: {}
  pd: {baseImage: pingcap/pd, replicas: 3, config: {}, requests: {storage: 1Gi}}
  tikv: {baseImage: pingcap/tikv, replicas: 3, config: {}, requests: {storage: 1Gi}}
  tidb: {baseImage: pingcap/tidb, replicas: 2, config: {}, service: {type: ClusterIP}}
""")
)


def _cluster(**replicas: int) -> Json:
    """A cluster of 3/3/2, or with other numbers of some components."""
    cluster: Json = msgspec.json.decode(_SMALL)
    for component, count in replicas.items():
        cluster["spec"][component]["replicas"] = count
    return cluster


def _tiny() -> Json:
    """One of each."""
    return _cluster(pd=1, tikv=1, tidb=1)


def storage_volume(size: str) -> Json:
    """A volume for the logs of TiDB, which has no data of its own."""
    return {"name": "logs", "storageSize": size, "mountPath": "/var/lib/logs"}


def _roomy() -> Json:
    """Every component can be scaled, and has a volume."""
    cluster = _cluster(pd=4, tikv=4, tidb=3)
    cluster["spec"]["tidb"]["storageVolumes"] = [storage_volume("1Gi")]
    return cluster


def _brittle() -> Json:
    """3/3/2 whose stores are Down after a minute, and whose lost members return when they recover."""
    cluster = _cluster()
    cluster["spec"]["pd"]["config"] = {"schedule": {"max-store-down-time": "1m"}}
    cluster["spec"]["tikv"]["recoverFailover"] = True
    return cluster


def _guarded() -> Json:
    """Brittle, and the operator may give up hosts that are down."""
    cluster = _brittle()
    cluster["metadata"]["annotations"] = {"app.kubernetes.io/auto-failure-recovery": "true"}
    return cluster


def _on_ebs() -> Json:
    """3/3/2 whose TiKVs have volumes that their driver can change."""
    cluster = _cluster()
    cluster["spec"]["tikv"]["storageClassName"] = "slow"
    return cluster


def _ebs_class(name: str, iops: str) -> Json:
    return standard_storage_class() | {
        "metadata": {"name": name},
        "provisioner": "ebs.csi.aws.com",
        "parameters": {"type": "gp3", "iops": iops},
    }


STORAGE: Mapping[str, Sequence[Json]] = {ON_EBS: (_ebs_class("slow", "3000"), _ebs_class("fast", "6000"))}
"""The storage classes of a world beside the default one, by the cluster."""


def _stores() -> Json:
    """Two TiKVs and a TiDB without PD, for a cluster that joins another."""
    cluster = _cluster(tikv=2, tidb=1)
    del cluster["spec"]["pd"]
    return cluster


def _analytic() -> Json:
    """3/3/2 with two TiFlash."""
    cluster = _cluster()
    claim = {"resources": {"requests": {"storage": "1Gi"}}}
    cluster["spec"]["tiflash"] = {"baseImage": "pingcap/tiflash", "replicas": 2, "storageClaims": [claim]}
    return cluster


def _with_binlogs() -> Json:
    """One TiKV, and two TiDBs that write binlogs to two Pumps."""
    cluster = _cluster(pd=1, tikv=1)
    cluster["spec"]["pump"] = {"replicas": 2, "config": {}, "requests": {"storage": "1Gi"}}
    return cluster


def _of_microservices() -> Json:
    """A PD that uses two pods of tso and one of scheduling."""
    cluster = _cluster(pd=1, tikv=1, tidb=1)
    cluster["spec"]["pd"]["mode"] = "ms"
    cluster["spec"]["pdms"] = microservices(tso=2, scheduling=1)
    return cluster


def microservices(*, version: str = "", **replicas: int) -> list[Json]:
    """`spec.pdms` with the given number of pods of each."""
    own: Json = {"version": version} if version else {}
    return [{"name": name, "replicas": count, "config": {}} | own for name, count in replicas.items()]


def _with_password() -> Json:
    """One of each, with a password for root."""
    cluster = _cluster(pd=1, tikv=1, tidb=1)
    cluster["spec"]["tidb"]["initializer"] = {"createPassword": True}
    return cluster


def _of_a_domain() -> Json:
    """3/3/2 whose members have names under the domain."""
    cluster = _cluster()
    cluster["spec"]["clusterDomain"] = CLUSTER_DOMAIN
    return cluster


def _mortal(pd: int, tikv: int) -> Callable[[], Json]:
    """A cluster on six machines in three zones, whose losses are noticed within half a minute."""

    def cluster() -> Json:
        found = _cluster(pd=pd, tikv=tikv, tidb=1)
        found["spec"]["pd"]["config"] = {"schedule": {"max-store-down-time": "30s"}}
        return found

    return cluster


def _mortal_with_tiflash() -> Json:
    """The smallest mortal one with three TiFlash."""
    cluster = _mortal(3, 3)()
    cluster["spec"]["tiflash"] = _analytic()["spec"]["tiflash"] | {"replicas": 3}
    return cluster


def _mortal_with_zones() -> Json:
    """Six stores, with no two peers of a region in one zone."""
    cluster = _mortal(3, 6)()
    cluster["spec"]["pd"]["config"]["replication"] = {"location-labels": ["zone"]}
    return cluster


def _mortal_with_slots() -> Json:
    """Three PDs and four stores, of which none has the ordinal 1."""
    cluster = _mortal(3, 4)()
    cluster["metadata"]["annotations"] = {slots_annotation("pd"): "[1]", slots_annotation("tikv"): "[1]"}
    return cluster


def _proxied() -> Json:
    """3/3/2 behind two proxies."""
    cluster = _cluster()
    cluster["spec"]["tiproxy"] = {"baseImage": "pingcap/tiproxy", "replicas": 2, "version": "v1.3.0", "config": {}}
    return cluster


def _replicating() -> Json:
    """3/3/2 with three captures."""
    cluster = _cluster()
    cluster["spec"]["ticdc"] = {"baseImage": "pingcap/ticdc", "replicas": 3, "config": {"log-level": "info"}}
    return cluster


def _with_search(cluster: Json) -> Json:
    """The same cluster with full-text search, and with the components that it needs."""
    servers: Json = {"baseImage": "pingcap/tici", "replicas": 2, "version": "v9.0.0"}
    s3 = {"endpoint": "http://minio:9000", "bucket": "fts", "accessKey": "minio", "secretKey": "a+b&c"}
    for each in (_analytic(), _replicating()):
        cluster["spec"] |= {name: part for name, part in each["spec"].items() if name not in cluster["spec"]}
    cluster["spec"]["tici"] = {"meta": servers, "worker": servers, "s3": s3}
    return cluster


def _mortal_with(cluster: Callable[[], Json], part: str) -> Callable[[], Json]:
    """The smallest mortal one with a part of another cluster."""

    def whole() -> Json:
        found = _mortal(3, 3)()
        found["spec"][part] = cluster()["spec"][part]
        return found

    return whole


MORTAL_SLOTTED = "mortal-slots"
"""The one in Advanced StatefulSets."""

SIDECAR: Json = {"name": "shipper", "image": "shipper:1"}
"""A user's container."""


def _with_sidecars(cluster: Callable[[], Json]) -> Json:
    """The same cluster with a user's container beside each server."""
    found = cluster()
    for part in found["spec"].values():
        if isinstance(part, dict) and "replicas" in part:
            part["additionalContainers"] = [SIDECAR]
    return found


MORTAL: Mapping[str, Callable[[], Json]] = {
    name: partial(_with_sidecars, cluster)
    for name, cluster in {
        **{f"mortal-{pd}-{tikv}": _mortal(pd, tikv) for pd, tikv in ((3, 3), (5, 3), (3, 4), (3, 5))},
        "mortal-tidb": _mortal_with(_cluster, "tidb"),
        "mortal-tiflash": _mortal_with_tiflash,
        "mortal-pump": _mortal_with(_with_binlogs, "pump"),
        "mortal-tiproxy": _mortal_with(_proxied, "tiproxy"),
        "mortal-ticdc": _mortal_with(_replicating, "ticdc"),
        "mortal-zones": _mortal_with_zones,
        MORTAL_SLOTTED: _mortal_with_slots,
    }.items()
}
"""By the number of PDs and stores; losses in them are permanent (`simulate.families.loss_and_edit`)."""


SINGLE_PD = "mortal-1-3"
"""The smallest of these with a single PD."""

BESIDE_DM = "mortal-dm"
"""The cluster that is replaced by a DMCluster with permanent losses."""


def _complete() -> Json:
    """3/3/2 with all other components."""
    cluster = _cluster()
    for each in (_proxied(), _analytic(), _replicating(), _with_binlogs(), _of_microservices()):
        cluster["spec"] |= {name: part for name, part in each["spec"].items() if name not in cluster["spec"]}
    cluster["spec"]["pd"]["mode"] = "ms"
    return cluster


def _with_tls(cluster: Json) -> Json:
    """The same cluster with TLS among its components and with clients."""
    cluster["spec"]["tlsCluster"] = {"enabled": True}
    cluster["spec"]["tidb"]["tlsClient"] = {"enabled": True}
    return cluster


_MIXED_IN: Json = {name: part for name, part in _complete()["spec"].items() if name not in _cluster()["spec"]}
"""The components that a cluster may have beside PD, TiKV and TiDB."""


def _mixed(parts: tuple[str, ...], *, tls: bool) -> Json:
    """One PD and one TiKV, two TiDBs, and the given components."""
    cluster = _cluster(pd=1, tikv=1)
    cluster["spec"] |= {part: _complete()["spec"][part] for part in parts}
    if "pdms" in parts:
        cluster["spec"]["pd"]["mode"] = "ms"
    return _with_tls(cluster) if tls else cluster


MIXED: Mapping[str, Callable[[], Json]] = {
    "+".join(("mix", *parts, *["tls"] * tls)): partial(_mixed, parts, tls=tls)
    for count in range(len(_MIXED_IN) + 1)
    for parts in combinations(_MIXED_IN, count)
    for tls in (False, True)
}
"""Every mix of components, with and without TLS."""

ROOMY = "roomy"


def _roomy_with(part: str) -> Json:
    """The roomy one with a part of the complete one."""
    cluster = _roomy()
    cluster["spec"][part] = _complete()["spec"][part]
    if part == "pdms":
        cluster["spec"]["pd"]["mode"] = "ms"
    return cluster


CLUSTERS: Mapping[str, Callable[[], Json]] = {
    "tiny": _tiny,
    "small": _cluster,
    "wide": lambda: _cluster(tikv=5),
    "big": lambda: _cluster(pd=5, tidb=4),
    ROOMY: _roomy,
    **{f"{ROOMY}+{part}": partial(_roomy_with, part) for part in _MIXED_IN},
    "brittle": _brittle,
    "guarded": _guarded,
    "analytic": _analytic,
    "stores": _stores,
    "lone": lambda: _cluster(pd=1),
    "domain": _of_a_domain,
    "proxied": _proxied,
    "binlog": _with_binlogs,
    "micro": _of_microservices,
    "replicating": _replicating,
    "searching": lambda: _with_search(_cluster()),
    f"{ROOMY}+tici": lambda: _with_search(_roomy()),
    "mix+tici": lambda: _with_search(_cluster(pd=1, tikv=1)),
    "complete": _complete,
    "password": _with_password,
    "tls": lambda: _with_tls(_cluster()),
    "complete-tls": lambda: _with_tls(_complete()),
    BESIDE_DM: _tiny,
    **MORTAL,
    SINGLE_PD: partial(_with_sidecars, _mortal(1, 3)),
    **MIXED,
    SLOTTED: _brittle,
    SWITCHED: _cluster,
    ON_EBS: _on_ebs,
}
"""Clusters by name, with three PD members, three stores and two TiDBs unless stated differently.

- `tiny` has one of each; `wide` has spare stores, `big` spare PD members and TiDBs, `roomy` one spare of each.
- `brittle` and `guarded` fail over within minutes.
- `lone` has a single PD; `stores` has none and joins another cluster.
- `analytic` has TiFlash, `proxied` two TiProxies, `binlog` a Pump, `micro` PD's microservices, `replicating` three
  captures of TiCDC, and `complete` all of these. `searching` has full-text search.
- `domain` names the domain of its Kubernetes, `password` a password for root.
- `tls` and `complete-tls` use TLS.
- `slotted` is in Advanced StatefulSets, `switched` may move into them.
- `on-ebs` has volumes of the storage class `slow`, which can change to `fast` in place.
"""


def neighbour(key: str, kind: str, *, joins: bool) -> Json:
    """A cluster `namespace/name` beside the plan's own; one that joins has its own PD or none."""
    cluster = CLUSTERS[kind]()
    cluster["metadata"]["name"] = key.partition("/")[2]
    if joins:
        cluster["spec"]["cluster"] = {"name": NAME, "namespace": NAMESPACE}
    return cluster


def consenting(cluster: Json, joined: Sequence[str]) -> Json:
    """A cluster that the given clusters of other namespaces may join."""
    namespaces = sorted({key.partition("/")[0] for key in joined} - {NAMESPACE})
    return with_annotation(cluster, ALLOWED_FROM, ",".join(namespaces)) if namespaces else cluster


@cache
def replicas_of(cluster: str) -> Mapping[str, int]:
    """The replicas of each component of a cluster, in the order of the table."""
    tc = decode(CLUSTERS[cluster](), TidbCluster)
    there = (
        component for component in managed_components() if component_type(component).slot.spec(tc.spec) is not None
    )
    return {each: desired_replicas(tc, each) for each in there}


_BRITTLE = FailoverSettings(pd_period=60.0, tikv_period=60.0, tidb_period=60.0, tiflash_period=60.0)
_HASTY = FailoverSettings(
    pd_period=30.0,
    tikv_period=30.0,
    tidb_period=30.0,
    tiflash_period=30.0,
    dm_master_period=30.0,
    dm_worker_period=30.0,
)

SETTINGS: Mapping[str, Settings] = {
    "brittle": Settings("tidb-operator-py:test", _BRITTLE),
    "guarded": Settings("tidb-operator-py:test", replace(_BRITTLE, detect_node_failure=True)),
    **dict.fromkeys((*MORTAL, SINGLE_PD, BESIDE_DM), Settings("tidb-operator-py:test", _HASTY)),
    MORTAL_SLOTTED: Settings("tidb-operator-py:test", _HASTY, advanced_stateful_sets=True),
    SLOTTED: Settings("tidb-operator-py:test", _BRITTLE, advanced_stateful_sets=True),
    ON_EBS: Settings("tidb-operator-py:test", modifies_volumes=True),
}
"""The operator's settings, if not the default."""

ADVANCED = frozenset({SLOTTED, SWITCHED, MORTAL_SLOTTED})
"""The clusters in whose worlds the controller of Advanced StatefulSets runs."""

_SIX_NODES = tuple(NodeSpec(f"node-{index}", f"192.168.0.{index + 10}", f"zone-{index % 3}") for index in range(6))

NODES: Mapping[str, Sequence[NodeSpec]] = dict.fromkeys((*MORTAL, SINGLE_PD, BESIDE_DM), _SIX_NODES)
"""The machines of a world, if not three in three zones."""


class Reseedable:
    """Draws that can continue from another seed: one saved world has many continuations."""

    def __init__(self, seed: int) -> None:
        self._draws = SeededRandomness(seed)

    def reseed(self, seed: int) -> None:
        """Continue with the draws of a new seed."""
        self._draws = SeededRandomness(f"continued {seed}")

    def uniform(self, low: float, high: float) -> float:
        return self._draws.uniform(low, high)

    def integer(self, low: int, high: int) -> int:
        return self._draws.integer(low, high)

    def uuid(self) -> str:
        return self._draws.uuid()


TIMINGS = Timings(node_monitor_grace=50.0)
"""As fast as possible, except that a lost machine is noticed late, which decides what happens meanwhile."""


def empty_world(
    clock: FakeClock,
    randomness: Reseedable,
    pause: Callable[[float], None],
    nodes: Sequence[NodeSpec] | None = None,
    *,
    advanced: bool = False,
    storage: Iterable[Json] = (),
) -> World:
    """Nodes, the CRDs, and the programs of pods. `storage` are further storage classes.

    For `pause` and `nodes` see `World`, for `advanced` `new_world`.
    """
    world = new_world(clock, randomness, TIMINGS, nodes, pause, advanced=advanced)
    for storage_class in storage:
        world.client().create(STORAGE_CLASSES, storage_class)
    return world
