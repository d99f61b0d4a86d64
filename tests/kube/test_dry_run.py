"""Dry runs of writes (docs/migration.md)."""

import msgspec
import pytest

from kube.client import Client
from kube.dry_run import DryRunTransport, PlannedWrite
from kube.errors import Conflict, Invalid, NotFound
from kube.objects import Json
from kube.resources import CONFIG_MAPS, EVENTS, PODS
from ports.clock import FakeClock
from ports.randomness import SeededRandomness
from ports.transport import ByteStream, Request, Response, TransportError
from sandbox.world import World


class Observed:
    """An API server, a client that writes to it, and a client that only observes."""

    def __init__(self) -> None:
        self.world = World(FakeClock(), SeededRandomness(1), nodes=())
        self.admin = self.world.client()
        self.planned: list[PlannedWrite] = []
        self.transport = DryRunTransport(self.world.transport(), self.planned.append)
        self.client = Client(self.transport)
        self.admin.create(CONFIG_MAPS, config_map("there"), "default")

    @property
    def version(self) -> int:
        """A number that grows with each change of any object."""
        return self.world.server.storage.version


def config_map(name: str, **data: str) -> Json:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


@pytest.fixture
def observed() -> Observed:
    return Observed()


def test_a_create_is_answered_but_not_stored(observed: Observed) -> None:
    before = observed.version
    made = observed.client.create(CONFIG_MAPS, config_map("new", a="1"), "default")
    assert ("new", before) == (made.metadata.name, observed.version)
    (planned,) = observed.planned
    assert ("create", "configmaps", "default", "new") == planned_place(planned)
    assert (None, {"a": "1"}) == (planned.before, (planned.after or {})["data"])


def test_a_patch_and_a_replacement_show_before_and_after(observed: Observed) -> None:
    before = observed.version
    observed.client.patch(CONFIG_MAPS, "there", "default", {"data": {"a": "1"}})
    observed.client.replace(CONFIG_MAPS, "there", "default", config_map("there", a="2"))
    assert before == observed.version
    assert ["patch", "update"] == [each.verb for each in observed.planned]
    assert [None, None] == [(each.before or {}).get("data") for each in observed.planned]
    assert [{"a": "1"}, {"a": "2"}] == [(each.after or {})["data"] for each in observed.planned]


@pytest.mark.parametrize("options", [{}, {"grace_period_seconds": 0}, {"propagation": "Foreground"}])
def test_a_deletion_is_not_carried_out(observed: Observed, options: Json) -> None:
    before = observed.version
    observed.client.delete(CONFIG_MAPS, "there", "default", **options)
    observed.transport.request(Request("DELETE", CONFIG_MAPS.path("default", "there")))
    assert before == observed.version
    assert [("delete", "configmaps", "default", "there")] * 2 == [planned_place(each) for each in observed.planned]
    assert [None, None] == [each.after for each in observed.planned]


def test_a_planned_status_names_its_subresource(observed: Observed) -> None:
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {"containers": [_CONTAINER]}}
    observed.admin.create(PODS, pod, "default")
    observed.client.patch(PODS, "p", "default", {"status": {"phase": "Failed"}}, subresource="status")
    assert "status" == observed.planned[0].subresource
    assert "Failed" != observed.admin.get(PODS, "p", "default").decode()["status"].get("phase")


def test_a_rejected_write_is_not_planned(observed: Observed) -> None:
    with pytest.raises(Invalid):
        observed.client.create(CONFIG_MAPS, config_map("No_Name"), "default")
    with pytest.raises(NotFound):
        observed.client.delete(CONFIG_MAPS, "absent", "default")
    with pytest.raises(Conflict):
        observed.client.patch(CONFIG_MAPS, "there", "default", {"metadata": {"resourceVersion": "1"}})
    assert [] == observed.planned


def test_events_are_dropped(observed: Observed) -> None:
    before = observed.version
    observed.client.create(EVENTS, {"metadata": {"name": "e"}}, "default")
    assert (before, []) == (observed.version, observed.planned)


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", "/api/v1/namespaces/default/pods/p/eviction"),
        ("POST", "/api/v1/namespaces/default/pods/p"),
        ("CONNECT", "/api/v1/namespaces/default/pods/p"),
        ("POST", "/"),
        ("PUT", "/api/v1/namespaces/default/pods/p/proxy/some/path"),
    ],
)
def test_does_not_send_a_write_that_may_not_support_dry_run(method: str, path: str) -> None:
    transport = DryRunTransport(_Untouched(), lambda _: None)
    with pytest.raises(TransportError, match="not sent: this process only observes"):
        transport.request(Request(method, path, body=msgspec.json.encode({})))


class _Untouched:
    def request(self, request: Request) -> Response:
        raise AssertionError(request)

    def stream(self, request: Request, idle_timeout: float) -> ByteStream:
        raise AssertionError(request, idle_timeout)


_CONTAINER = {"name": "c", "image": "i"}


def planned_place(planned: PlannedWrite) -> tuple[str, str, str, str]:
    return planned.verb, planned.resource, planned.namespace, planned.name
