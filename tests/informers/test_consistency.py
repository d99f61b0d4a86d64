import pytest

from informers.consistency import Difference, compare, digest
from informers.factory import SharedInformerFactory
from kube.resources import PODS
from ports.clock import FakeClock
from ports.randomness import SeededRandomness
from tests.informers.fake_source import FakeSource, pod
from tests.informers.support import pod_object


def test_every_kind_of_difference_is_named() -> None:
    listed = [pod_object("a", "1"), pod_object("b", "2"), pod_object("c", "3")]
    cached = [pod_object("a", "1"), pod_object("b", "1"), pod_object("d", "4")]
    assert Difference(("ns/c",), ("ns/d",), ("ns/b",)) == compare(cached, listed)
    assert not compare(reversed(listed), listed)


def test_a_digest_depends_on_objects_and_versions_and_not_on_their_order() -> None:
    a, b = pod_object("a", "1"), pod_object("b", "2")
    assert digest([a, b]) == digest([b, a])
    assert 3 == len({digest([a, b]), digest([a]), digest([a, pod_object("b", "3")])})


@pytest.mark.rule("REF-40h")
def test_a_cache_is_compared_with_the_server_at_its_own_version(clock: FakeClock) -> None:
    source = FakeSource()
    source.add(pod("a"))
    factory = SharedInformerFactory(source.client(), clock, SeededRandomness(1))
    informer = factory.informer_for(PODS)
    assert {} == factory.check_consistency()
    informer.reflector.step()
    informer.step()
    assert {PODS: Difference()} == factory.check_consistency()
    source.add_drop_watch(pod("b"))
    assert {PODS: Difference(missing=("ns/b",))} == factory.check_consistency()
    assert ["", "Exact", "Exact"] == source.params("LIST", "resourceVersionMatch")
    assert ["0", "11", "11"] == source.params("LIST", "resourceVersion")
