"""The webhook's server, and how replicas keep its certificate (in a Secret) and the caBundle in agreement."""

import base64
import contextlib
import http.client
import ssl
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import msgspec
import pytest
import urllib3
from cryptography import x509

from controller_manager.admission import PATH, Gate, Keeper, Webhook, new_pair
from controller_manager.health import ListenError
from controllers.admission import Judge, Verdict
from kube.client import Client
from kube.objects import Json, Object
from kube.resources import SECRETS, TIDB_CLUSTERS, VALIDATING_WEBHOOK_CONFIGURATIONS
from ports.clock import FakeClock
from ports.transport import Request
from tests.controllers.test_admission import asked
from tests.kube.fakes import FakeApi, status

NAME, NAMESPACE = "gate", "admin"
SECRET = SECRETS.path(NAMESPACE, NAME)
CONFIGURATION = VALIDATING_WEBHOOK_CONFIGURATIONS.path("", NAME)
SERVICE = "gate.admin.svc"
_MINUTES = 300.0
_NO_CHECK_TIME = ssl.VerifyFlags(0x200000)
"""OpenSSL's X509_V_FLAG_NO_CHECK_TIME."""


@pytest.fixture
def api() -> FakeApi:
    found = FakeApi()
    configure(found, {"service": {"name": NAME, "namespace": NAMESPACE}})
    return found


def configure(api: FakeApi, *clients: Json) -> None:
    webhooks = [{"name": f"a{index}.b.c", "clientConfig": each} for index, each in enumerate(clients)]
    api.put(CONFIGURATION, {"metadata": {"name": NAME}, "webhooks": webhooks})


def keeper_in(api: FakeApi, clock: FakeClock) -> Keeper:
    return Keeper(Client(api), NAME, NAMESPACE, clock)


def data(api: FakeApi) -> dict[str, bytes]:
    return {key: base64.b64decode(value) for key, value in api.objects[SECRET]["data"].items()}


def bundles(api: FakeApi) -> list[bytes]:
    found = api.objects[CONFIGURATION]["webhooks"]
    return [base64.b64decode(each["clientConfig"].get("caBundle", "")) for each in found]


def trusting(authorities: bytes) -> ssl.SSLContext:
    """A client that trusts these authorities, whatever the time: the clock of the tests is not the machine's."""
    context = ssl.create_default_context(cadata=authorities.decode())
    context.verify_flags |= _NO_CHECK_TIME
    return context


def shakes_hands(keeper: Keeper, authorities: bytes, host: str = SERVICE) -> bool:
    """True if a client that trusts `authorities` accepts the keeper's certificate."""
    inside, outside = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = trusting(authorities).wrap_bio(inside, outside, server_hostname=host)
    server_in, server_out = ssl.MemoryBIO(), ssl.MemoryBIO()
    server = keeper.context().wrap_bio(server_in, server_out, server_side=True)
    for _ in range(5):
        for side in (client, server):
            try:
                side.do_handshake()
            except ssl.SSLWantReadError:
                pass
            except ssl.SSLError:
                return False
            server_in.write(outside.read())
            inside.write(server_out.read())
    return client.version() is not None


def test_creates_the_secret_and_patches_the_bundle_in_which_the_certificate_is_valid(
    api: FakeApi, clock: FakeClock
) -> None:
    configure(api, {"service": {"name": NAME, "namespace": NAMESPACE}}, {"url": "https://127.0.0.1:1/validate"})
    keeper = keeper_in(api, clock)
    assert _MINUTES == keeper.step()
    assert {"ca.crt", "tls.crt", "tls.key"} == set(data(api))
    assert [data(api)["ca.crt"]] * 2 == bundles(api)
    (names,) = (
        each.value
        for each in x509.load_pem_x509_certificate(data(api)["tls.crt"]).extensions
        if isinstance(each.value, x509.SubjectAlternativeName)
    )
    assert [SERVICE, "127.0.0.1"] == [str(each.value) for each in names]
    api.requests.clear()
    assert _MINUTES == keeper.step()
    assert {"GET"} == {each.method for each in api.requests}


def test_every_replica_serves_the_same_certificate(api: FakeApi, clock: FakeClock) -> None:
    first, second = (keeper_in(api, clock) for _ in range(2))
    first.step()
    made = data(api)
    second.step()
    assert made == data(api)
    assert [True, True] == [shakes_hands(each, bundles(api)[0]) for each in (first, second)]
    assert not shakes_hands(first, bundles(api)[0], "other.admin.svc")


def test_renews_before_the_end_and_keeps_the_earlier_authority(api: FakeApi, clock: FakeClock) -> None:
    first, second = (keeper_in(api, clock) for _ in range(2))
    first.step()
    second.step()
    earlier = data(api)
    clock.step(timedelta(days=244).total_seconds())
    first.step()
    assert earlier == data(api)
    clock.step(timedelta(days=2).total_seconds())
    first.step()
    renewed = data(api)
    assert renewed["tls.crt"] != earlier["tls.crt"]
    assert renewed["ca.crt"].endswith(earlier["ca.crt"])
    assert [renewed["ca.crt"]] == bundles(api)
    # the other replica has not looked yet, and is trusted all the same
    assert [True, True] == [shakes_hands(each, bundles(api)[0]) for each in (first, second)]
    clock.step(timedelta(days=300).total_seconds())
    second.step()
    assert 2 == data(api)["ca.crt"].count(b"BEGIN CERTIFICATE")


@pytest.mark.parametrize(
    "damage",
    [
        {"tls.key": "bm8ga2V5"},
        {"tls.crt": ""},
        {"ca.crt": "bm9uZQ=="},
        {"ca.crt": None},
    ],
    ids=["key", "certificate", "authority", "no authority"],
)
def test_replaces_a_pair_that_is_of_no_use(api: FakeApi, clock: FakeClock, damage: Json) -> None:
    keeper = keeper_in(api, clock)
    keeper.step()
    before = data(api)
    Client(api).patch(SECRETS, NAME, NAMESPACE, {"data": damage})
    keeper.step()
    assert before["tls.crt"] != data(api)["tls.crt"]
    assert shakes_hands(keeper, bundles(api)[0])


def test_replaces_a_certificate_for_another_key_another_authority_or_other_names(
    api: FakeApi, clock: FakeClock
) -> None:
    keeper = keeper_in(api, clock)
    for change in ("key", "authority", "names"):
        keeper.step()
        before = data(api)
        if change == "names":
            configure(api, {"url": "https://elsewhere:1/"})
        else:
            other = new_pair([SERVICE], clock.wall())
            name, value = ("tls.key", other.key) if change == "key" else ("ca.crt", other.authorities)
            Client(api).patch(SECRETS, NAME, NAMESPACE, {"data": {name: base64.b64encode(value).decode()}})
        keeper.step()
        assert before["tls.crt"] != data(api)["tls.crt"], change
        assert [data(api)["ca.crt"]] == bundles(api)


def test_repairs_a_bundle_that_another_client_has_emptied(api: FakeApi, clock: FakeClock) -> None:
    keeper = keeper_in(api, clock)
    keeper.step()
    before = data(api)
    configure(api, {"service": {"name": NAME, "namespace": NAMESPACE}})
    keeper.step()
    assert (before, [before["ca.crt"]]) == (data(api), bundles(api))


def test_leaves_the_secret_of_another_program_alone(api: FakeApi, clock: FakeClock) -> None:
    api.put(SECRET, {"metadata": {"name": NAME}, "data": {}})
    assert 10.0 == keeper_in(api, clock).step()
    assert ({}, [b""]) == (data(api), bundles(api))


@pytest.mark.parametrize("reason", ["AlreadyExists", "Conflict"])
def test_looks_again_at_once_if_another_replica_was_faster(api: FakeApi, clock: FakeClock, reason: str) -> None:
    keeper = keeper_in(api, clock)
    api.failures = [None, None, status(409, reason)]
    assert 1.0 == keeper.step()
    assert _MINUTES == keeper.step()


def test_tries_again_while_the_configuration_is_missing_or_forbidden(api: FakeApi, clock: FakeClock) -> None:
    keeper = keeper_in(api, clock)
    configuration = api.objects.pop(CONFIGURATION)
    assert 10.0 == keeper.step()
    api.put(CONFIGURATION, configuration)
    api.failures = [status(403, "Forbidden")]
    assert 10.0 == keeper.step()
    assert _MINUTES == keeper.step()


class _Judge:
    """Refuses every object by its name."""

    def __init__(self, error: Exception | None = None) -> None:
        self._error = error

    def verdict(self, new: Object, _old: Object | None) -> Verdict:
        if self._error:
            raise self._error
        return Verdict(f"no {new.metadata.name}")


def gate_with(judge: Any) -> Gate:
    judges: dict[tuple[str, str], Judge[Any]] = {(TIDB_CLUSTERS.group, TIDB_CLUSTERS.plural): judge}
    return Gate(judges, lambda _: True)


@pytest.mark.parametrize(
    ("request_", "status", "said"),
    [
        (Request("POST", PATH, {}, asked({"metadata": {"name": "a"}})), 200, b'"message":"no a"'),
        (Request("POST", f"{PATH}?timeout=3s", {}, asked({"metadata": {"name": "a"}})), 200, b'"allowed":false'),
        (Request("GET", PATH), 405, b"only POST"),
        (Request("POST", "/", {}, b"{}"), 404, b"try /validate"),
        (Request("POST", PATH), 400, b""),
        (Request("POST", PATH, {}, b"no json"), 400, b"JSON"),
    ],
)
def test_answers_reviews_and_nothing_else(request_: Request, status: int, said: bytes) -> None:
    response = gate_with(_Judge()).handle(request_)
    assert (status, True) == (response.status, said in response.body)


def test_a_defect_of_a_judge_is_no_refusal() -> None:
    """The API server then follows the failurePolicy."""
    found = gate_with(_Judge(ZeroDivisionError())).handle(Request("POST", PATH, {}, asked({"metadata": {"name": "a"}})))
    assert 500 == found.status


def test_only_so_many_reviews_are_judged_at_once() -> None:
    review = Request("POST", PATH, {}, asked({"metadata": {"name": "a"}}))
    busy: list[int] = []

    class Nested(_Judge):
        def verdict(self, new: Object, old: Object | None) -> Verdict:
            busy.append(gate.handle(review).status)
            return super().verdict(new, old)

    gate = gate_with(Nested())
    assert 200 == gate.handle(review).status
    assert [503, *[200] * 7] == busy
    assert 200 == gate.handle(review).status


@pytest.fixture
def webhook(api: FakeApi, clock: FakeClock) -> Iterator[tuple[Webhook, Keeper]]:
    keeper = keeper_in(api, clock)
    found = Webhook(gate_with(_Judge()), keeper, "127.0.0.1:0")
    yield found, keeper
    found.stop()


def test_serves_with_the_certificate_once_it_has_one(api: FakeApi, webhook: tuple[Webhook, Keeper]) -> None:
    configure(api, {"url": "https://127.0.0.1:1/validate"})
    server, keeper = webhook
    keeper.step()
    server.start()
    context = trusting(bundles(api)[0])
    url = f"https://127.0.0.1:{server.port}{PATH}"
    with urllib3.PoolManager(ssl_context=context, retries=False, timeout=5.0) as pool:
        answer = pool.request("POST", url, body=asked({"metadata": {"name": "a"}}))
        assert "no a" == msgspec.json.decode(answer.data)["response"]["status"]["message"]
    connection = http.client.HTTPSConnection("127.0.0.1", server.port, timeout=5.0, context=context)
    with contextlib.closing(connection):
        connection.putrequest("POST", PATH)
        connection.putheader("content-length", str((8 << 20) + 1))
        connection.endheaders()
        assert 413 == connection.getresponse().status


def test_a_taken_port_names_the_flag(webhook: tuple[Webhook, Keeper]) -> None:
    server, keeper = webhook
    server.start()
    with pytest.raises(ListenError, match="--admission-webhook-addr"):
        Webhook(gate_with(_Judge()), keeper, f"127.0.0.1:{server.port}").start()
