"""Writes that another client undoes each time are not repeated without pause."""

import msgspec
import pytest

from kube import contests
from kube.apply import Applier
from kube.client import Client
from kube.contests import BACK_AND_FORTH, LATELY, PACE, Contests, DeletedEachTime
from kube.objects import Json, Object
from kube.resources import JOBS, PODS, SERVICES, STATEFUL_SETS, Resource
from ports.clock import FakeClock
from ports.observation import observing
from tests.kube.fakes import FakeApi

AT_ONCE, EVERY = PACE.at_once, PACE.first

WHERE = "/api/v1/namespaces/ns/services/basic-pd"


def desired(kind: str = "Service", port: int = 2379) -> Json:
    group = "v1" if kind == "Service" else "apps/v1"
    meta = {"name": "basic-pd", "namespace": "ns"}
    return {"apiVersion": group, "kind": kind, "metadata": meta, "spec": {"port": port}}


class Fight:
    """An applier, and another client that undoes each write."""

    def __init__(self, clock: FakeClock) -> None:
        self.clock = clock
        self._api = FakeApi()
        self._applier = Applier(Client(self._api), clock)

    def round(self, resource: Resource = SERVICES, *, undone: bool = True, port: int = 2379) -> bool:
        """Apply again, one second later; True if a request was sent. `undone` is whether the other client undid the
        last write.
        """
        path = resource.path("ns", "basic-pd")
        tree = desired(resource.kind, port)
        there = self._api.put(path, tree | {"spec": {"port": 1 if undone else port}})
        before = len(self._api.calls)
        self._applier.apply(resource, tree, Object(msgspec.json.encode(there)))
        self.clock.step(1.0)
        return len(self._api.calls) > before


@pytest.fixture
def fight(clock: FakeClock) -> Fight:
    return Fight(clock)


def test_a_contested_write_is_repeated_a_few_times_then_once_a_minute(fight: Fight) -> None:
    rounds = [fight.round() for _ in range(600)]
    assert [True] * AT_ONCE == rounds[:AT_ONCE]
    assert AT_ONCE + 600 // EVERY - 1 <= sum(rounds) <= AT_ONCE + 600 // PACE.longest


def test_reports_a_contest_to_the_reconcile_until_it_is_over(fight: Fight) -> None:
    for _ in range(AT_ONCE):
        fight.round()
    with contests.collecting() as found:
        fight.round()
    assert ["Service basic-pd: spec.port: 1 → 2379"] == [each.what for each in found]
    assert 0 < found[0].look_again <= EVERY

    with contests.collecting() as found:
        fight.round(undone=False)
    assert 1 == len(found), "it may be undone the next moment"
    fight.clock.step(2 * EVERY)
    with contests.collecting() as found:
        fight.round(undone=False)
    assert [] == found


def test_another_difference_is_written_immediately(fight: Fight) -> None:
    assert [True] * AT_ONCE + [False] == [fight.round() for _ in range(AT_ONCE + 1)]
    assert fight.round(port=4000)


def test_a_write_that_is_rarely_undone_is_repeated_each_time(fight: Fight) -> None:
    for _ in range(2 * AT_ONCE):
        assert fight.round()
        fight.clock.step(LATELY)


def test_changes_back_and_forth_are_written_once_a_minute_after_a_few_turns(clock: FakeClock) -> None:
    """A server whose answers change with each request must not make the operator write without end."""
    written, pod = [], Object(msgspec.json.encode({"metadata": {"name": "basic-tikv-1", "uid": "1"}}))
    found = Contests(clock, lambda: False)
    for number in range(600):
        since = f"2026-01-01T00:{number // 60:02}:{number % 60:02}Z" if number % 2 else None
        patch = {"metadata": {"annotations": {"no-store-since": since}}}
        if found.allows(PODS, pod, patch):
            found.wrote(pod, patch)
            written.append(number)
        clock.step(1.0)
    assert written[: BACK_AND_FORTH + 2] == list(range(BACK_AND_FORTH + 2))
    assert BACK_AND_FORTH + 2 < len(written) <= BACK_AND_FORTH + 2 + 600 // PACE.longest


def test_a_stateful_set_is_written_each_time(fight: Fight) -> None:
    assert all(fight.round(STATEFUL_SETS) for _ in range(2 * AT_ONCE))


def test_an_observer_has_no_contests(fight: Fight) -> None:
    with observing(only=True):
        assert all(fight.round() for _ in range(2 * AT_ONCE))


class Deletions:
    """An applier, and another client that deletes what it creates."""

    def __init__(self, clock: FakeClock) -> None:
        self._clock = clock
        self._api = FakeApi()
        self._applier = Applier(Client(self._api), clock)

    def round(self, resource: Resource = SERVICES, owner: str = "uid-1") -> bool:
        """Create again, one second after the deletion; True if a request was sent."""
        self._api.objects.clear()
        tree = desired(resource.kind)
        tree["metadata"]["ownerReferences"] = [{"apiVersion": "v1", "kind": "Owner", "name": "basic", "uid": owner}]
        self._clock.step(1.0)
        try:
            self._applier.create(resource, tree)
        except DeletedEachTime as error:
            return not 0.0 < error.look_again <= EVERY
        return True


def test_a_contested_creation_is_repeated_a_few_times_then_once_a_minute(clock: FakeClock) -> None:
    deletions = Deletions(clock)
    rounds = [deletions.round() for _ in range(600)]
    assert [True] * AT_ONCE == rounds[:AT_ONCE]
    assert AT_ONCE + 600 // EVERY - 1 <= sum(rounds) <= AT_ONCE + 600 // PACE.longest


def test_a_recreated_owner_starts_without_contests(clock: FakeClock) -> None:
    deletions = Deletions(clock)
    assert [True, True, True, False] == [deletions.round() for _ in range(AT_ONCE + 1)]
    assert deletions.round(owner="uid-2")


@pytest.mark.parametrize("resource", [STATEFUL_SETS, JOBS], ids=str)
def test_objects_that_pods_need_are_created_without_pause(clock: FakeClock, resource: Resource) -> None:
    deletions = Deletions(clock)
    assert all(deletions.round(resource) for _ in range(20))


def test_an_object_that_is_rarely_deleted_is_created_immediately(clock: FakeClock) -> None:
    deletions = Deletions(clock)
    for _ in range(20):
        assert deletions.round()
        clock.step(LATELY)
