"""What admission makes of a pod template stays; what another client makes of it does not."""

from collections.abc import Callable

import pytest

from kube.apply import Applier
from kube.client import Client
from kube.objects import Json
from kube.resources import DEPLOYMENTS
from ports.clock import FakeClock
from ports.transport import Request, Response
from tests.kube.fakes import FakeApi

WHERE = DEPLOYMENTS.path("ns", "basic-discovery")


def desired(image: str = "ours:v1", replicas: int = 1) -> Json:
    template = {"spec": {"containers": [{"name": "discovery", "image": image}]}}
    meta = {"name": "basic-discovery", "namespace": "ns"}
    spec = {"replicas": replicas, "template": template}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": meta, "spec": spec}


def mirrored(spec: Json) -> None:
    (container,) = spec["template"]["spec"]["containers"]
    container["image"] = "mirror/" + container["image"].removeprefix("mirror/")


class Admitting:
    """An applier in front of an API server with a webhook."""

    def __init__(self, clock: FakeClock, webhook: Callable[[Json], None]) -> None:
        self.api = FakeApi()
        self._webhook = webhook
        self._applier = Applier(Client(self), clock)
        self._applier.create(DEPLOYMENTS, desired())
        self._admit()

    def request(self, request: Request) -> Response:
        answer = self.api.request(request)
        if request.method == "PATCH":
            self._admit()
            return self.api.request(Request("GET", request.url))
        return answer

    stream = FakeApi.stream

    def _admit(self) -> None:
        self._webhook(self.api.objects[WHERE]["spec"])

    def is_written(self, wish: Json | None = None) -> bool:
        """Whether something is written where a reconcile asks for what it wishes."""
        before = self.api.calls.count("PATCH basic-discovery")
        there = Client(self.api).get(DEPLOYMENTS, "basic-discovery", "ns")
        self._applier.apply(DEPLOYMENTS, wish or desired(), there)
        return self.api.calls.count("PATCH basic-discovery") > before

    @property
    def image(self) -> str:
        """The one that pods get."""
        return str(self.api.objects[WHERE]["spec"]["template"]["spec"]["containers"][0]["image"])


@pytest.fixture
def admitting(clock: FakeClock) -> Admitting:
    return Admitting(clock, mirrored)


def test_what_comes_back_with_a_write_is_written_once(admitting: Admitting) -> None:
    assert [True, False, False] == [admitting.is_written() for _ in range(3)]


def test_another_wish_is_written(admitting: Admitting) -> None:
    admitting.is_written()
    assert [True, False] == [admitting.is_written(desired("ours:v2")) for _ in range(2)]
    assert "mirror/ours:v2" == admitting.image


def test_what_another_client_makes_of_it_is_put_right(admitting: Admitting) -> None:
    admitting.is_written()
    admitting.api.objects[WHERE]["spec"]["template"]["spec"]["containers"][0]["image"] = "theirs"
    assert admitting.is_written()
    assert "mirror/ours:v1" == admitting.image


def test_what_is_no_pod_template_is_a_contest(clock: FakeClock) -> None:
    """Such as the number of pods."""
    admitting = Admitting(clock, lambda spec: spec.update(replicas=2))
    assert [True, True] == [admitting.is_written() for _ in range(2)]
