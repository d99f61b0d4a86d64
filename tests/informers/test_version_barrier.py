import pytest

from informers.version_barrier import VersionBarrier
from kube.resources import NODES, PODS, SERVICES


class Caches:
    """The versions of two caches."""

    def __init__(self) -> None:
        self.pods = self.services = "10"
        self.barrier = VersionBarrier({PODS: lambda: self.pods, SERVICES: lambda: self.services})


@pytest.fixture
def caches() -> Caches:
    return Caches()


def test_EXP_3_a_sync_waits_for_the_caches_that_are_behind(caches: Caches) -> None:
    caches.barrier.wrote_at("ns/a", "uid", PODS, "12")
    caches.barrier.wrote_at("ns/a", "uid", PODS, "11")
    caches.barrier.wrote_at("ns/a", "uid", SERVICES, "9")
    assert ([PODS], []) == (caches.barrier.behind("ns/a"), caches.barrier.behind("ns/b"))
    caches.pods = "11"
    assert [PODS] == caches.barrier.behind("ns/a")
    caches.pods = "12"
    assert [] == caches.barrier.behind("ns/a")
    caches.pods = "1"
    assert [] == caches.barrier.behind("ns/a"), "what was seen is not waited for again"


def test_EXP_3_versions_are_numbers_of_any_length(caches: Caches) -> None:
    caches.pods = "9" * 30
    caches.barrier.wrote_at("ns/a", "uid", PODS, "1" + "0" * 30)
    assert [PODS] == caches.barrier.behind("ns/a")


@pytest.mark.parametrize(("written", "cached"), [("", "10"), ("x1", "10"), ("12", ""), ("12", "v10")])
def test_EXP_3_what_is_no_number_is_not_waited_for(caches: Caches, written: str, cached: str) -> None:
    caches.pods = cached
    caches.barrier.wrote_at("ns/a", "uid", PODS, written)
    caches.barrier.wrote_at("ns/a", "uid", NODES, "99")
    assert [] == caches.barrier.behind("ns/a")


def test_EXP_3_another_uid_is_another_owner(caches: Caches) -> None:
    caches.barrier.wrote_at("ns/a", "old", PODS, "20")
    caches.barrier.wrote_at("ns/a", "new", SERVICES, "20")
    assert [SERVICES] == caches.barrier.behind("ns/a")
    caches.barrier.clear("ns/a", "old")
    assert [SERVICES] == caches.barrier.behind("ns/a")
    caches.barrier.clear("ns/a", "new")
    assert [] == caches.barrier.behind("ns/a")
    caches.barrier.wrote_at("ns/a", "new", PODS, "20")
    caches.barrier.clear("ns/a")
    assert [] == caches.barrier.behind("ns/a")
