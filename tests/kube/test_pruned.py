"""Status fields that the API server prunes, because the CRD lacks them, are not sent in each sync (I29)."""

import msgspec
import pytest

from kube.apply import Applier
from kube.client import Client
from kube.objects import Json, Object
from kube.resources import BACKUP_SCHEDULES, TIDB_MONITORS
from ports.clock import FakeClock
from ports.transport import ByteStream, Request, Response
from tests.kube.fakes import FakeApi

ROOT = "/apis/pingcap.com/v1alpha1"
SAID: Json = {"conditions": [{"type": "Ready", "status": "True"}]}


class PruningApi:
    """Objects whose CRD lacks conditions until the test adds them; `subresource` is True if the CRD has a status
    subresource.
    """

    def __init__(self, *, subresource: bool) -> None:
        self.api = FakeApi()
        self.has_room = False
        self._served = ["backupschedules", *(["backupschedules/status"] if subresource else [])]

    def request(self, request: Request) -> Response:
        if request.url == ROOT:
            self.api.requests.append(request)
            return Response(200, {}, msgspec.json.encode({"resources": [{"name": each} for each in self._served]}))
        if request.body and not self.has_room:
            body = msgspec.json.decode(request.body)
            status = {key: value for key, value in body["status"].items() if key != "conditions"}
            body = msgspec.json.encode(body | {"status": status})
            request = Request(request.method, request.url, request.headers, body)
        return self.api.request(request)

    def stream(self, request: Request, idle_timeout: float) -> ByteStream:
        return self.api.stream(request, idle_timeout)


class Writer:
    """Writes statuses like a sync: the difference from the known status."""

    def __init__(self, server: PruningApi, clock: FakeClock) -> None:
        self.server = server
        self.applier = Applier(Client(server), clock)
        for name in ("a", "b"):
            server.api.put(f"{ROOT}/namespaces/ns/backupschedules/{name}", {"metadata": {"name": name, "uid": name}})

    def there(self, name: str) -> Object:
        """An object on the server."""
        return Object(msgspec.json.encode(self.server.api.objects[f"{ROOT}/namespaces/ns/backupschedules/{name}"]))

    def known(self, name: str = "a") -> Json:
        """Its status as the operator knows it."""
        return self.applier.status_of(BACKUP_SCHEDULES, self.there(name))

    def write(self, name: str = "a", **status: object) -> list[str]:
        """Write this status; returns the requests."""
        self.server.api.requests.clear()
        self.applier.patch_status(
            BACKUP_SCHEDULES,
            name,
            "ns",
            uid=name,
            resource_version=self.there(name).metadata.resource_version,
            old=self.known(name),
            new=status,
            subresource=self.applier.has_status_subresource(BACKUP_SCHEDULES),
        )
        return self.server.api.calls


@pytest.fixture(params=[True, False], ids=["subresource", "plain"])
def writer(request: pytest.FixtureRequest, clock: FakeClock) -> Writer:
    return Writer(PruningApi(subresource=request.param), clock)


@pytest.mark.rule("I29")
def test_sends_pruned_fields_once(writer: Writer) -> None:
    assert writer.write(**SAID)
    assert SAID == writer.known()
    assert "status" not in writer.there("a").decode() or {} == writer.there("a").decode()["status"]
    assert [] == writer.write(**SAID)


def test_sends_pruned_fields_again_when_the_status_changes(writer: Writer) -> None:
    writer.write(**SAID)
    other: Json = {"conditions": [{"type": "Ready", "status": "False"}]}
    assert writer.write(**other, lastBackup="x")
    assert other | {"lastBackup": "x"} == writer.known()
    assert [] == writer.write(**other, lastBackup="x")
    assert writer.write(lastBackup="x"), "what is wanted no more"
    assert {"lastBackup": "x"} == writer.known()


def test_one_object_sends_its_pruned_fields_periodically(writer: Writer, clock: FakeClock) -> None:
    for name in ("a", "b"):
        writer.write(name, **SAID)
    clock.step(601.0)
    assert writer.write(**SAID)
    assert [] == writer.write("b", **SAID)
    assert SAID == writer.known()


def test_restores_pruned_fields_once_the_crd_has_them(writer: Writer, clock: FakeClock) -> None:
    for name in ("a", "b"):
        writer.write(name, **SAID)
    writer.server.has_room = True
    clock.step(601.0)
    for name in ("a", "b"):
        assert writer.write(name, **SAID)
        assert SAID == writer.there(name).decode()["status"]
        assert [] == writer.write(name, **SAID)


def test_shows_fields_that_another_client_writes(writer: Writer) -> None:
    writer.write(**SAID)
    theirs: Json = {"conditions": [{"type": "Theirs", "status": "True"}]}
    path = f"{ROOT}/namespaces/ns/backupschedules/a"
    writer.server.api.put(path, writer.server.api.objects[path] | {"status": theirs})
    assert theirs == writer.known()
    assert writer.write(**SAID)


def test_a_recreated_object_has_no_pruned_fields(writer: Writer) -> None:
    writer.write(**SAID)
    path = f"{ROOT}/namespaces/ns/backupschedules/a"
    writer.server.api.objects[path]["metadata"]["uid"] = "another"
    assert {} == writer.known()


def test_a_known_status_is_a_fresh_tree_per_kind(writer: Writer) -> None:
    writer.write(**SAID)
    writer.known()["conditions"].clear()
    assert SAID == writer.known()
    assert {} == writer.applier.status_of(TIDB_MONITORS, writer.there("a"))
