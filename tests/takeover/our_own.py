"""The objects that this version of the operator leaves for later versions: `python -m tests.takeover.our_own` records
them. A recording does not change once its version is released; the next version gets a new file."""

import json
from pathlib import Path

from kube.objects import Json
from kube.resources import (
    CONFIG_MAPS,
    DEPLOYMENTS,
    PERSISTENT_VOLUME_CLAIMS,
    ROLE_BINDINGS,
    ROLES,
    SERVICE_ACCOUNTS,
    SERVICES,
    STATEFUL_SETS,
    TIDB_CLUSTERS,
)
from ports.clock import FakeClock
from tests.operator_world import OperatorWorld, sample

DIRECTORY = Path(__file__).parent / "versions"
CURRENT = "0.1"

_RECORDED = (
    *(TIDB_CLUSTERS, ROLES, SERVICE_ACCOUNTS, ROLE_BINDINGS, DEPLOYMENTS, SERVICES, CONFIG_MAPS, STATEFUL_SETS),
    PERSISTENT_VOLUME_CLAIMS,
)
_LEFT_OUT = ("resourceVersion", "managedFields", "creationTimestamp", "generation")


def record() -> list[Json]:
    """A cluster with one of everything, and with all settings that change ConfigMaps and scripts."""
    world = OperatorWorld(clock=FakeClock())
    for name in ("basic", "advanced"):
        world.apply(sample(name))
        world.run_until_ready(sample(name)["metadata"]["name"], within=300.0)
    items = [_as_recorded(each) for resource in _RECORDED for each in world.every(resource)]
    world.stop()
    return [item for item in items if item["metadata"]["name"] != "kube-root-ca.crt"]


def _as_recorded(item: Json) -> Json:
    meta = {key: value for key, value in item["metadata"].items() if key not in _LEFT_OUT}
    kept = item["kind"] == "TidbCluster"
    return {key: value for key, value in item.items() if key != "status" or kept} | {"metadata": meta}


if __name__ == "__main__":
    DIRECTORY.mkdir(exist_ok=True)
    text = json.dumps({"items": record()}, indent=1)
    (DIRECTORY / f"{CURRENT}.json").write_text(f"{text}\n")
