"""Requests of informers beyond lists and watches: the list as a stream, and metadata only."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from informers.list_watch import ListWatch
from informers.shared_informer import SharedInformer
from kube.client import METADATA_KIND
from kube.resources import CONFIG_MAPS
from ports.clock import SystemClock
from ports.randomness import SystemRandomness
from ports.stopping import Stop
from tests.contract.objects import config_map
from tests.contract.worlds import Side, eventually


@contextmanager
def following(source: ListWatch, *, streaming: bool) -> Iterator[SharedInformer]:
    """An informer that has synced."""
    stop = Stop()
    informer = SharedInformer(source, SystemClock(), SystemRandomness(), streaming=streaming)
    thread = threading.Thread(target=informer.run, args=(stop,), name="informer")
    thread.start()
    try:
        eventually(informer.has_synced)
        yield informer
    finally:
        stop.set()
        thread.join(5)
    assert not thread.is_alive()


@pytest.mark.parametrize("streaming", [False, True], ids=["list", "stream"])
@pytest.mark.parametrize("metadata_only", [False, True], ids=["whole", "metadata"])
@pytest.mark.rule("REF-40", "REF-40h", "INF-50")
def test_a_cache_follows(world: Side, namespace: str, streaming: bool, metadata_only: bool) -> None:
    world.client.create(CONFIG_MAPS, config_map("a", x="1"), namespace)
    source = ListWatch(world.client, CONFIG_MAPS, namespace, metadata_only=metadata_only)
    with following(source, streaming=streaming) as informer:
        world.client.create(CONFIG_MAPS, config_map("b", x="2"), namespace)
        eventually(lambda: informer.store.get_by_key(f"{namespace}/b"))
        cached = [informer.store.get_by_key(f"{namespace}/{name}") for name in "ab"]
        world.client.delete(CONFIG_MAPS, "a", namespace)
        eventually(lambda: informer.store.get_by_key(f"{namespace}/a") is None)
        assert not informer.check_consistency()

    kind = METADATA_KIND if metadata_only else "ConfigMap"
    data = [None, None] if metadata_only else [{"x": "1"}, {"x": "2"}]
    assert [(kind, each) for each in data] == [(obj.kind, obj.decode().get("data")) for obj in cached if obj]
