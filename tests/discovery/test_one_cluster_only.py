"""No two pods ever hold data of different clusters, whatever happens during the bootstrap (F40, R01)."""

import contextlib

import pytest

from apis.tidbcluster import TidbCluster
from dataplane.errors import Unavailable
from dataplane.pd import Membership
from discovery.asking import Refused
from discovery.service import Discovery
from ports.clock import FakeClock
from ports.randomness import SeededRandomness
from ports.transport import RequestTimeout
from tests.discovery.worlds import address, cluster, member, refused

_SEEDS = 1000
_STEPS = 60
_WEIGHTS = {
    "ask": 45,
    "obey": 25,
    "crash": 5,
    "restart": 8,
    "lose_volume": 5,
    "restart_discovery": 3,
    "toggle_black_hole": 3,
    "wait_a_moment": 3,
    "wait_a_minute": 1,
    "publish_id": 1,
}


class Beginning:
    """Three pods with volumes, their PDs, the status and discovery, and the faults that can occur."""

    def __init__(self) -> None:
        self.clock = FakeClock()
        self.tc: TidbCluster = cluster()
        self.data: dict[int, int] = {}
        self.up: set[int] = set()
        self.told: dict[int, str] = {}
        self.begun = 0
        self.black_hole = False
        self.restart_discovery(0)

    def get(self, namespace: str, name: str) -> TidbCluster:
        return self.tc

    def doubt(self, namespace: str, workload: str, pod: str, source: str) -> str:
        return ""

    def is_given_up(self, namespace: str, claim: str) -> bool:
        return False

    def claimed(self, tc: TidbCluster) -> frozenset[str]:
        return frozenset()

    def members(self, tc: TidbCluster, url: str, timeout: float) -> Membership:
        if self.black_hole:
            raise Unavailable("GET", url, "timeout", RequestTimeout("GET", url, "timeout"))
        serving = self.serving()
        if not serving:
            raise refused(url)
        cluster_id = self.data[serving[0]]
        ours = sorted(pod for pod, its in self.data.items() if its == cluster_id)
        return Membership(cluster_id, tuple(map(member, ours)), None, None)

    def serving(self) -> list[int]:
        return sorted(self.up & self.data.keys())

    def ask(self, pod: int) -> None:
        if pod not in self.data and pod not in self.told:
            with contextlib.suppress(Refused):
                self.told[pod] = self.discovery.new(address(pod), "10.0.0.1")

    def obey(self, pod: int) -> None:
        answer = self.told.pop(pod, "")
        if answer.startswith("--initial-cluster="):
            self.begun += 1
            self.data[pod] = self.begun
            self.up.add(pod)
        through = [other for other in self.serving() if f"demo-pd-{other}." in answer]
        if answer.startswith("--join=") and through:
            self.data[pod] = self.data[through[0]]
            self.up.add(pod)

    def crash(self, pod: int) -> None:
        self.told.pop(pod, None)
        self.up.discard(pod)

    def restart(self, pod: int) -> None:
        if pod in self.data:
            self.up.add(pod)

    def lose_volume(self, pod: int) -> None:
        self.crash(pod)
        self.data.pop(pod, None)

    def restart_discovery(self, _pod: int) -> None:
        self.discovery = Discovery(self, self, self.clock, "default")

    def toggle_black_hole(self, _pod: int) -> None:
        self.black_hole = not self.black_hole

    def wait_a_moment(self, _pod: int) -> None:
        self.clock.step(20)

    def wait_a_minute(self, _pod: int) -> None:
        self.clock.step(61)

    def publish_id(self, _pod: int) -> None:
        if serving := self.serving():
            self.tc.status.cluster_id = str(self.data[serving[0]])

    def check(self) -> None:
        beginners = [answer for answer in self.told.values() if answer.startswith("--initial-cluster=")]
        assert len(beginners) <= 1
        assert len(set(self.data.values())) <= 1


@pytest.mark.slow
@pytest.mark.rule("F40")
def test_no_order_of_events_creates_two_clusters() -> None:
    events = [name for name, weight in _WEIGHTS.items() for _ in range(weight)]
    begun = 0
    for seed in range(_SEEDS):
        chance, world, history = SeededRandomness(seed), Beginning(), []
        for _ in range(_STEPS):
            event, pod = events[chance.integer(0, len(events) - 1)], chance.integer(0, 2)
            getattr(world, event)(pod)
            world.clock.step(0.5)
            history.append(f"{event} {pod}")
            try:
                world.check()
            except AssertionError:
                pytest.fail(f"seed {seed}: two clusters after {', '.join(history)}")
        begun += world.begun
    # otherwise the test would prove nothing
    assert begun > _SEEDS / 2
