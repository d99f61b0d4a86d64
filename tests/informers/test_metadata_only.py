"""Caches without bodies (INF-50)."""

import json

import pytest

from informers.factory import SharedInformerFactory
from kube.client import METADATA_KIND
from kube.errors import ApiError
from kube.objects import Json
from kube.resources import PODS
from ports.clock import FakeClock
from ports.randomness import SeededRandomness
from ports.transport import ByteStream, Request, Response
from tests.informers.fake_source import FakeSource, pod

PARTIAL = "g=meta.k8s.io;v=v1"


class Accepting(FakeSource):
    """A source that serves metadata only on request."""

    def __init__(self) -> None:
        super().__init__()
        self.accepted: list[str] = []

    def request(self, request: Request) -> Response:
        self.accepted.append(request.headers["accept"])
        whole: Json = json.loads(super().request(request).body)
        items = [{"metadata": item["metadata"]} for item in whole["items"]]
        return Response(200, {}, json.dumps(whole | {"kind": f"{METADATA_KIND}List", "items": items}).encode())

    def stream(self, request: Request, idle_timeout: float) -> ByteStream:
        self.accepted.append(request.headers["accept"])
        return super().stream(request, idle_timeout)


@pytest.mark.rule("INF-50")
def test_a_factory_can_leave_out_all_bodies(clock: FakeClock) -> None:
    source = Accepting()
    source.add(pod("a", color="red"))
    factory = SharedInformerFactory(source.client(), clock, SeededRandomness(1), metadata_only=True)
    informer = factory.informer_for(PODS)
    informer.reflector.step()
    informer.reflector.step()
    source.send_event("ADDED", {"kind": METADATA_KIND, "metadata": {"name": "b", "resourceVersion": "12"}})
    source.send_event("ADDED", pod("whole"))
    informer.reflector.step()
    informer.reflector.step()
    while informer.queued():
        informer.step()

    assert [
        f"application/json;as={METADATA_KIND}List;{PARTIAL}",
        f"application/json;as={METADATA_KIND};{PARTIAL}",
    ] == source.accepted
    a, b = informer.store.list()
    assert ["ns/a", "b"] == [a.key, b.key], "what comes whole is not cached"
    assert ("red", METADATA_KIND, None) == (a.metadata.labels["color"], a.kind, a.decode().get("spec"))


@pytest.mark.rule("INF-50")
def test_a_server_that_answers_whole_objects_is_refused() -> None:
    source = FakeSource()
    with pytest.raises(ApiError, match="a PodList instead of a PartialObjectMetadataList"):
        source.client().list_page(PODS, metadata_only=True)
