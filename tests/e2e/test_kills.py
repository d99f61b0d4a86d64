"""A controller-manager that is killed at any write of a bring-up continues after its restart (reliability.md FP1). In
the sandbox the simulator kills it at writes of every workload."""

import itertools
import threading

import pytest

from kube.resources import LEASES, PERSISTENT_VOLUME_CLAIMS
from tests.e2e import operators
from tests.e2e.gate import Call, HungUp
from tests.e2e.marks import ON_THE_REAL_ONE
from tests.e2e.operators import QUICK_LEASE, Operator
from tests.e2e.pictures import differences, picture
from tests.e2e.waiting import eventually
from tests.e2e.worlds import OPERATOR_NAMESPACE, Place, await_ready, create_cluster, delete_cluster, sample

pytestmark = [pytest.mark.slow, pytest.mark.thorough, pytest.mark.timeout(300)]

_KILLS = 10
_NAME = "advanced"


class _Killer:
    """Kills the operator at chosen writes: in turns before the server sees it, and before the operator hears of it."""

    def __init__(self, targets: list[int]) -> None:
        self._targets = iter(targets)
        self._numbers = itertools.count(1)
        self._lock = threading.Lock()
        self._next = next(self._targets)
        self._before = True
        self._due = False
        self.victim: Operator | None = None
        self.kills: list[str] = []
        self.is_done = False

    def __call__(self, call: Call) -> None:
        """Called before and after each write. Raises HungUp at a kill."""
        if call.resource == "events":
            return
        with self._lock:
            if self.is_done:
                return
            if self.victim is None:
                raise HungUp
            if not call.status:
                self._due = self._due or next(self._numbers) >= self._next
            if self._due and self._before == (not call.status):
                self._kill(call)

    def _kill(self, call: Call) -> None:
        assert self.victim is not None
        self.victim.kill()
        self.victim = None
        self.kills.append(f"{'before' if self._before else 'after'} {call.verb} {call.resource} {call.name}")
        self._before, self._due = not self._before, False
        self._next = next(self._targets, 0)
        self.is_done = not self._next
        raise HungUp


@ON_THE_REAL_ONE
@pytest.mark.rule("FP1")
def test_ten_kills_during_the_bring_up_change_nothing_in_the_end(place: Place, namespace: str) -> None:
    with place.gate() as gate:
        with operators.running(place.new_log(), place.environment(gate), *QUICK_LEASE) as operator:
            create_cluster(place.client, sample(_NAME), namespace)
            await_ready(place, operator, _NAME, namespace)
            gate.await_quiet()
        expected = picture(place.client, namespace)
        writes = len([call for call in gate.writes if call.resource != "events"])
    _start_over(place, namespace)

    # an operator that is killed writes less: states of the status pass by while it is away
    killer = _Killer([1 + writes * step // (_KILLS + 5) for step in range(_KILLS)])
    with place.gate() as gate:
        gate.hook = killer
        environment = place.environment(gate)
        create_cluster(place.client, sample(_NAME), namespace)
        while not killer.is_done:
            with operators.running(place.new_log(), environment, *QUICK_LEASE) as operator:
                killer.victim = operator
                eventually(lambda: not operator.is_running, told=lambda: (killer.kills, operator.said[-2000:]))
            if not killer.is_done:
                # waiting until the Lease of the dead runs out is tested once, at the end
                place.client.delete(LEASES, operators.lease_name(environment), OPERATOR_NAMESPACE)
        with operators.running(place.new_log(), environment, *QUICK_LEASE) as operator:
            await_ready(place, operator, _NAME, namespace)
            gate.await_quiet()
        actual = picture(place.client, namespace)
    assert _KILLS == len(killer.kills)
    assert {} == differences(expected, actual)


def _start_over(place: Place, namespace: str) -> None:
    """Leave nothing behind, so that the next cluster of that name is a new one."""
    client = place.client
    delete_cluster(client, _NAME, namespace)
    for claim in client.list_page(PERSISTENT_VOLUME_CLAIMS, namespace).items:
        client.delete(PERSISTENT_VOLUME_CLAIMS, claim.metadata.name, namespace)
    eventually(lambda: not picture(client, namespace), told=lambda: picture(client, namespace).keys())
