"""TidbMonitors in the world of the operator, and what tests ask of them."""

from typing import Any

from kube.objects import Json, condition_of
from kube.resources import TIDB_MONITORS
from tests.operator_world import NAMESPACE, OperatorWorld

CONTAINERS: Json = {
    "prometheus": {"baseImage": "prom/prometheus", "version": "v2.49.1"},
    "grafana": {"baseImage": "grafana/grafana", "version": "7.5.11"},
    "reloader": {"baseImage": "pingcap/tidb-monitor-reloader", "version": "v1.0.1"},
    "prometheusReloader": {"baseImage": "quay.io/prometheus-operator/prometheus-config-reloader", "version": "v0.49.0"},
    "initializer": {"baseImage": "pingcap/tidb-monitor-initializer", "version": "v8.5.2"},
}


def monitor(name: str = "basic", annotations: Json | None = None, **spec: Any) -> Json:
    """The smallest monitor of the cluster `basic`, or one with more; None leaves a part out."""
    given = {"clusters": [{"name": "basic"}]} | CONTAINERS | spec
    return {
        "apiVersion": TIDB_MONITORS.api_version,
        "kind": TIDB_MONITORS.kind,
        "metadata": {"name": name, "annotations": annotations or {}},
        "spec": {key: value for key, value in given.items() if value is not None},
    }


class Monitors:
    """The world, and its monitors."""

    def __init__(self, world: OperatorWorld) -> None:
        self.world = world

    def create(self, body: Json, namespace: str = NAMESPACE) -> None:
        """Create a monitor."""
        self.world.admin.create(TIDB_MONITORS, body, namespace)

    def change(self, name: str = "basic", /, **spec: Any) -> None:
        """Merge into the spec; None removes."""
        self.world.admin.patch(TIDB_MONITORS, name, NAMESPACE, {"spec": spec})

    def annotate(self, name: str = "basic", /, **annotations: Any) -> None:
        """Set annotations by the part behind `tidb.pingcap.com/`, `_` for `-`; None removes."""
        keys = {f"tidb.pingcap.com/{key.replace('_', '-')}": value for key, value in annotations.items()}
        self.world.admin.patch(TIDB_MONITORS, name, NAMESPACE, {"metadata": {"annotations": keys}})

    def status(self, name: str = "basic") -> Json:
        """The status, empty while there is none."""
        found: Json = self.world.get(TIDB_MONITORS, name).get("status") or {}
        return found

    def condition(self, kind: str = "Progressing", name: str = "basic") -> tuple[str, str, str]:
        """Status, reason and message of a condition."""
        found = condition_of(self.status(name).get("conditions") or (), kind)
        return found.get("status", ""), found.get("reason", ""), found.get("message", "")

    def is_ready(self, name: str = "basic") -> bool:
        """True if its Ready condition is True."""
        return self.condition("Ready", name)[0] == "True"

    def run_until_ready(self, name: str = "basic", within: float = 120.0) -> None:
        """Run world and operator until the monitor is Ready."""
        self.world.run_until(lambda: self.is_ready(name), within)

    def resync(self) -> None:
        """As the informer of monitors does at a resync."""
        self.world.operator.caches[TIDB_MONITORS].resync()
        self.world.operator.work()
