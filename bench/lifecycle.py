"""Durations of operations on one cluster: upgrade, configuration, scaling, growth of volumes, suspension.

The control plane is real; nodes and data plane are the sandbox's. Pods start immediately, leaders leave a store within
a tenth of a second, and a store is Tombstone three seconds after it went Offline. The peer is v1.6.6, as recorded on a
similar machine; it does not run here. A figure is the median of three rounds.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from statistics import median, quantiles

from bench.figures import note, show
from bench.place import QUICK, Place, awaited, cluster, on_a_place
from bench.settled import Pods, are_replaced, is_settled, pods
from bench.timeline import recorded
from kube.objects import Json
from kube.resources import PERSISTENT_VOLUME_CLAIMS, TIDB_CLUSTERS
from member.components import workload_names

_NAME = "lifecycle"
_ROUNDS = 3
_PAUSE = 3.5
"""Seconds between two operations: longer than `store_check`, or PD's next check would already be due."""
_LOOK = 0.02
_PATIENCE = 120.0
_TIMINGS = replace(QUICK, store_check=3.0, region_tick=0.05, leader_moves=200.0)
"""`store_check` is the time from Offline to Tombstone, because the few regions have moved by then."""
_PEERS = {"upgrade_3_3_2": 6.6, "tikv_3_to_4": 2.2, "tikv_4_to_3": 10.6, "pd_3_to_4": 2.0, "pd_4_to_3": 1.4}
_PEER = "v1.6.6, recorded on a like machine, not measured in this run"


def main() -> int:
    """Run it. 1 if no control plane was built."""
    return on_a_place(_measure, _TIMINGS)


def _measure(here: Place) -> None:
    operator = here.operator("--workers=5")
    try:
        awaited(operator.leads, "the operator to lead")
        here.client.create(TIDB_CLUSTERS, _cluster(), "default")
        awaited(lambda: _is_settled(here), "the cluster to be Ready")
        waits: list[float] = []
        measured = _Measured(here)
        for number in range(_ROUNDS):
            with recorded(here, _NAME) as timeline:
                measured.upgrade(number)
            waits += timeline.waits()
            measured.others(number)
    finally:
        operator.stop()
    for name, times in measured.times.items():
        show(f"lifecycle_{name}", median(times), _PEERS.get(name), "s", _PEER)
    note(f"next steps: {len(waits)}, 90 % within {quantiles(waits, n=10)[-1]:.2f} s, longest {max(waits):.2f} s")
    show("lifecycle_ready_and_safe_to_next_step_median", median(waits), 2.0, "s", "aim")


@dataclass(frozen=True, slots=True)
class _Measured:
    """The durations of each operation so far, in seconds."""

    here: Place
    times: dict[str, list[float]] = field(default_factory=dict)

    def upgrade(self, number: int) -> None:
        """Change the version: every pod is recreated."""
        before = _all_pods(self.here)
        version = {"version": f"v8.5.{3 + number}"}
        self._change("upgrade_3_3_2", version, lambda: are_replaced(before, _all_pods(self.here)))

    def others(self, number: int) -> None:
        """All operations but the upgrade."""
        before = _pods(self.here, "tikv")
        config = {"tikv": {"config": f"[log.file]\nmax-days = {number + 1}\n"}}
        self._change("configuration_roll_tikv", config, lambda: are_replaced(before, _pods(self.here, "tikv")))
        self._scale("tikv")
        self._scale("pd")
        if not number:
            # once, because a claim that was just changed is left alone for a minute
            grown = {"tikv": {"requests": {"storage": "2Gi"}}}
            self._change("volume_growth_tikv", grown, lambda: _sizes(self.here) == {"2Gi"})
        suspended = {"suspendAction": {"suspendStatefulSet": True}}
        self._change("suspend_3_3_2", suspended, lambda: not _all_pods(self.here), rest=False)
        self._change("resume_3_3_2", {"suspendAction": None}, lambda: True)

    def _scale(self, component: str) -> None:
        """From three pods to four, and back."""
        for old, new in ((3, 4), (4, 3)):
            name, spec = f"{component}_{old}_to_{new}", {component: {"replicas": new}}
            self._change(name, spec, lambda wanted=new: len(_pods(self.here, component)) == wanted)  # type: ignore[misc]

    def _change(self, name: str, spec: Json, done: Callable[[], bool], rest: bool = True) -> None:
        """Change the spec and wait until it is `done` and, on request, everything is at rest again."""
        time.sleep(_PAUSE)  # noqa: TID251
        started = time.monotonic()  # noqa: TID251  (another process is timed)
        self.here.client.patch(TIDB_CLUSTERS, _NAME, "default", {"spec": spec})
        awaited(lambda: (not rest or _is_settled(self.here)) and done(), name, within=_PATIENCE, every=_LOOK)
        took = time.monotonic() - started  # noqa: TID251
        note(f"{name}: {took:.2f} s")
        self.times.setdefault(name, []).append(took)


def _cluster() -> Json:
    tree = cluster(_NAME)
    tree["spec"]["configUpdateStrategy"] = "RollingUpdate"
    return tree


def _is_settled(here: Place) -> bool:
    return is_settled(here.client, _NAME)


def _all_pods(here: Place) -> Pods:
    return pods(here.client, workload_names())


def _pods(here: Place, component: str) -> Pods:
    return pods(here.client, [component])


def _sizes(here: Place) -> set[str]:
    """The capacities of TiKV's three volumes; a scale-in leaves another one behind."""
    names = [f"tikv-{_NAME}-tikv-{ordinal}" for ordinal in range(3)]
    claims = [here.client.get(PERSISTENT_VOLUME_CLAIMS, name, "default").decode() for name in names]
    return {claim["status"]["capacity"]["storage"] for claim in claims}
