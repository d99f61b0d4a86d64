"""Where plans begin: the clusters by name, and worlds with one of them in it."""

from collections.abc import Callable, Mapping
from dataclasses import replace

from apis.crd import TIDB_CLUSTER, definition
from discovery.app import make_handler
from kube.objects import Json
from member.context import FailoverSettings, Settings
from ports.clock import FakeClock
from ports.randomness import SeededRandomness
from sandbox.world import World

NAMESPACE = "default"
NAME = "basic"


def _cluster(pd: int, tikv: int, tidb: int) -> Json:
    storage = {"requests": {"storage": "1Gi"}}
    return {
        "apiVersion": "pingcap.com/v1alpha1",
        "kind": "TidbCluster",
        "metadata": {"name": NAME},
        "spec": {
            "version": "v8.5.2",
            "timezone": "UTC",
            "configUpdateStrategy": "RollingUpdate",
            "pvReclaimPolicy": "Retain",
            "discovery": {},
            "pd": {"baseImage": "pingcap/pd", "replicas": pd, "config": {}, **storage},
            "tikv": {"baseImage": "pingcap/tikv", "replicas": tikv, "config": {}, **storage},
            "tidb": {"baseImage": "pingcap/tidb", "replicas": tidb, "config": {}, "service": {"type": "ClusterIP"}},
        },
    }


def storage_volume(size: str) -> Json:
    """One that TiDB, which has no data of its own, keeps its logs on."""
    return {"name": "logs", "storageSize": size, "mountPath": "/var/log/tidb"}


ROOMY: Mapping[str, int] = {"pd": 4, "tikv": 4, "tidb": 3}
"""The replicas of the cluster of that name."""


def _roomy() -> Json:
    """Every component can get larger and smaller, and has a volume."""
    cluster = _cluster(**ROOMY)
    cluster["spec"]["tidb"]["storageVolumes"] = [storage_volume("1Gi")]
    return cluster


def _brittle() -> Json:
    """3/3/2 whose stores are Down after a minute, and whose lost members come back when they are well again."""
    cluster = _cluster(3, 3, 2)
    cluster["spec"]["pd"]["config"] = {"schedule": {"max-store-down-time": "1m"}}
    cluster["spec"]["tikv"]["recoverFailover"] = True
    return cluster


def _guarded() -> Json:
    """Brittle, and the operator may give up hosts that are down, to the end."""
    cluster = _brittle()
    cluster["metadata"]["annotations"] = {"app.kubernetes.io/auto-failure-recovery": "true"}
    return cluster


CLUSTERS: Mapping[str, Callable[[], Json]] = {
    "tiny": lambda: _cluster(1, 1, 1),
    "small": lambda: _cluster(3, 3, 2),
    "wide": lambda: _cluster(3, 5, 2),
    "big": lambda: _cluster(5, 3, 4),
    "roomy": _roomy,
    "brittle": _brittle,
    "guarded": _guarded,
    "lone": lambda: _cluster(1, 3, 2),
}
"""3/3/2 and the like; `wide` has stores to spare, `big` PD members and TiDBs, `roomy` one of each; `brittle` and
`guarded` fail over within minutes; `lone` has a single PD."""

_BRITTLE = FailoverSettings(pd_period=60.0, tikv_period=60.0, tidb_period=60.0)

SETTINGS: Mapping[str, Settings] = {
    "brittle": Settings("tidb-operator-py:test", _BRITTLE),
    "guarded": Settings("tidb-operator-py:test", replace(_BRITTLE, detect_node_failure=True)),
}
"""What the operator was told at its start, where that is not the default."""


class Reseedable:
    """Draws that can be begun anew from another seed: a saved world is one, its continuations are many."""

    def __init__(self, seed: int) -> None:
        self._draws = SeededRandomness(seed)

    def reseed(self, seed: int) -> None:
        """Go on with the draws of a seed, none of which has been drawn before."""
        self._draws = SeededRandomness(f"continued {seed}")

    def uniform(self, low: float, high: float) -> float:
        """See `Randomness`."""
        return self._draws.uniform(low, high)

    def integer(self, low: int, high: int) -> int:
        """See `Randomness`."""
        return self._draws.integer(low, high)

    def uuid(self) -> str:
        """See `Randomness`."""
        return self._draws.uuid()


def empty_world(clock: FakeClock, randomness: Reseedable, pause: Callable[[float], None]) -> World:
    """Nodes, the CRD, and the programs that run in pods. `pause`: see `World`."""
    return World(
        clock,
        randomness,
        programs={"/usr/local/bin/tidb-discovery": make_handler},
        crds=[definition(TIDB_CLUSTER, status_subresource=True)],
        pause=pause,
    )
