"""Changes that no watch reported reach the owners all the same (R11)."""

from collections.abc import Mapping

import pytest

from controllers.enqueueing import enqueue_owner
from informers.consistency import digest
from kube.objects import Json, Object
from kube.reading import IndexFunc
from kube.resources import PODS, SERVICES, TIDB_CLUSTERS
from ports.clock import FakeClock
from tests.informers.fake_source import FakeSource, pod
from tests.informers.support import as_object, eventually, informer_of, running


class _Owners:
    """Every TidbCluster that is requested by name."""

    changes = 0

    def get(self, namespace: str, name: str) -> Object | None:
        return as_object({"metadata": {"namespace": namespace, "name": name, "uid": name}})

    def by_index(self, function: IndexFunc, value: str) -> list[Object]:
        raise NotImplementedError

    def list(self, namespace: str = "", labels: Mapping[str, str] | None = None) -> list[Object]:
        raise NotImplementedError


def _owned(number: int) -> Json:
    """An object with its own owner."""
    name, tree = f"owner-{number}", pod(str(number))
    owner = {"apiVersion": "pingcap.com/v1alpha1", "kind": "TidbCluster", "name": name, "uid": name, "controller": True}
    return tree | {"metadata": tree["metadata"] | {"ownerReferences": [owner]}}


def _keys(*numbers: int) -> set[str]:
    return {f"ns/owner-{number}" for number in numbers}


@pytest.mark.rule("R11")
def test_changes_from_before_every_watch_expired_are_found_by_one_list_each(clock: FakeClock) -> None:
    sources, enqueued = (FakeSource(PODS), FakeSource(SERVICES)), set[str]()
    informers = [informer_of(source, clock) for source in sources]

    def enqueue(key: str, /, priority: int = 0) -> None:
        enqueued.add(key)

    def told(*numbers: int) -> bool:
        clock.step(2)
        return enqueued == _keys(*numbers)

    for first, source, informer in zip((0, 1000), sources, informers, strict=True):
        informer.add_event_handler(enqueue_owner(TIDB_CLUSTERS, _Owners(), enqueue))
        for number in range(100):
            source.add(_owned(first + number))
    with running(informers[0]), running(informers[1]):
        eventually(lambda: told(*range(100), *range(1000, 1100)))
        enqueued.clear()
        for first, source in zip((0, 1000), sources, strict=True):
            source.wait_for_open_watches()
            for number in range(first, first + 40):
                source.delete_drop_watch(f"ns/{number}")
                source.modify_drop_watch(_owned(number + 40))
            for number in range(first + 100, first + 120):
                source.add_drop_watch(_owned(number))
        for source in sources:
            source.send_error(410, "Expired")
        changed = [*range(80), *range(100, 120)]
        eventually(lambda: told(*changed, *(1000 + number for number in changed)))

    for source, informer in zip(sources, informers, strict=True):
        assert digest(map(as_object, source.objects().values())) == digest(informer.store.list())
        assert 2 == source.count("LIST"), "the first one, and one more"
