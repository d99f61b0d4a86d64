"""Changes of admission to a pod template stay; other clients' changes do not."""

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
        """True if a reconcile with this desired state writes."""
        before = self.api.calls.count("PATCH basic-discovery")
        there = Client(self.api).get(DEPLOYMENTS, "basic-discovery", "ns")
        self._applier.apply(DEPLOYMENTS, wish or desired(), there)
        return self.api.calls.count("PATCH basic-discovery") > before

    @property
    def image(self) -> str:
        """The image that pods get."""
        return str(self.api.objects[WHERE]["spec"]["template"]["spec"]["containers"][0]["image"])


@pytest.fixture
def admitting(clock: FakeClock) -> Admitting:
    return Admitting(clock, mirrored)


def test_a_difference_that_admission_restores_is_written_once(admitting: Admitting) -> None:
    assert [True, False, False] == [admitting.is_written() for _ in range(3)]


def test_another_desired_state_is_written(admitting: Admitting) -> None:
    admitting.is_written()
    assert [True, False] == [admitting.is_written(desired("ours:v2")) for _ in range(2)]
    assert "mirror/ours:v2" == admitting.image


def test_a_change_by_another_client_is_corrected(admitting: Admitting) -> None:
    admitting.is_written()
    admitting.api.objects[WHERE]["spec"]["template"]["spec"]["containers"][0]["image"] = "theirs"
    assert admitting.is_written()
    assert "mirror/ours:v1" == admitting.image


def test_admission_outside_the_pod_template_is_a_contest(clock: FakeClock) -> None:
    """For example a change of the number of replicas."""
    admitting = Admitting(clock, lambda spec: spec.update(replicas=2))
    assert [True, True] == [admitting.is_written() for _ in range(2)]
