"""What the API server prunes from a status, since a definition has no room for it, is not sent in each sync (I29)."""

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
    """Objects of a kind whose definition has no room for conditions, or has by now; `subresource`: has it that?"""

    def __init__(self, *, subresource: bool) -> None:
        self.api = FakeApi()
        self.has_room = False
        self._served = ["backupschedules", *(["backupschedules/status"] if subresource else [])]

    def request(self, request: Request) -> Response:
        """See `Transport`."""
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
        """See `Transport`."""
        return self.api.stream(request, idle_timeout)


class Writer:
    """Writes statuses as a sync does: what differs from the status that is known."""

    def __init__(self, server: PruningApi, clock: FakeClock) -> None:
        self.server = server
        self.applier = Applier(Client(server), clock)
        for name in ("a", "b"):
            server.api.put(f"{ROOT}/namespaces/ns/backupschedules/{name}", {"metadata": {"name": name, "uid": name}})

    def there(self, name: str) -> Object:
        """An object as the server has it."""
        return Object(msgspec.json.encode(self.server.api.objects[f"{ROOT}/namespaces/ns/backupschedules/{name}"]))

    def known(self, name: str = "a") -> Json:
        """Its status as it is known."""
        return self.applier.status_of(BACKUP_SCHEDULES, self.there(name))

    def write(self, name: str = "a", **status: object) -> list[str]:
        """Have its status be this; the requests."""
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


def test_I29_what_was_pruned_is_sent_once_and_known(writer: Writer) -> None:
    assert writer.write(**SAID)
    assert SAID == writer.known()
    assert "status" not in writer.there("a").decode() or {} == writer.there("a").decode()["status"]
    assert [] == writer.write(**SAID)


def test_it_is_sent_again_when_it_changes_and_so_is_all_else(writer: Writer) -> None:
    writer.write(**SAID)
    other: Json = {"conditions": [{"type": "Ready", "status": "False"}]}
    assert writer.write(**other, lastBackup="x")
    assert other | {"lastBackup": "x"} == writer.known()
    assert [] == writer.write(**other, lastBackup="x")
    assert writer.write(lastBackup="x"), "what is wanted no more"
    assert {"lastBackup": "x"} == writer.known()


def test_one_object_tries_again_after_a_while(writer: Writer, clock: FakeClock) -> None:
    for name in ("a", "b"):
        writer.write(name, **SAID)
    clock.step(601.0)
    assert writer.write(**SAID)
    assert [] == writer.write("b", **SAID)
    assert SAID == writer.known()


def test_once_there_is_room_each_object_gets_what_it_lacks(writer: Writer, clock: FakeClock) -> None:
    for name in ("a", "b"):
        writer.write(name, **SAID)
    writer.server.has_room = True
    clock.step(601.0)
    for name in ("a", "b"):
        assert writer.write(name, **SAID)
        assert SAID == writer.there(name).decode()["status"]
        assert [] == writer.write(name, **SAID)


def test_what_another_writes_there_is_not_hidden(writer: Writer) -> None:
    writer.write(**SAID)
    theirs: Json = {"conditions": [{"type": "Theirs", "status": "True"}]}
    path = f"{ROOT}/namespaces/ns/backupschedules/a"
    writer.server.api.put(path, writer.server.api.objects[path] | {"status": theirs})
    assert theirs == writer.known()
    assert writer.write(**SAID)


def test_another_object_of_the_name_has_lost_nothing(writer: Writer) -> None:
    writer.write(**SAID)
    path = f"{ROOT}/namespaces/ns/backupschedules/a"
    writer.server.api.objects[path]["metadata"]["uid"] = "another"
    assert {} == writer.known()


def test_what_is_known_is_a_fresh_tree_of_its_own_kind(writer: Writer) -> None:
    writer.write(**SAID)
    writer.known()["conditions"].clear()
    assert SAID == writer.known()
    assert {} == writer.applier.status_of(TIDB_MONITORS, writer.there("a"))
