"""TLS in the sandbox: successful handshakes, and the errors of failed ones (objects.md 9)."""

from datetime import UTC, datetime, timedelta

import pytest

from dataplane.http_transport import HttpTransport
from dataplane.tls import TlsMaterial
from ports.clock import FakeClock
from ports.randomness import SeededRandomness
from ports.transport import Request, Response, TlsError
from sandbox.dataplane.network import Origin
from sandbox.dataplane.processes import Answer, Exit, Launch
from sandbox.dataplane.program import Program
from sandbox.dataplane.runtime import DataPlane
from sandbox.dataplane.server_program import ServerProgram
from sandbox.dataplane.tls import PROVEN, Certificate, Handshakes, ServerSide
from sandbox.forward_proxy import ForwardProxy
from sandbox.notifier import Notifier
from sandbox.timings import Timings
from tests.certificates import TODAY, Authority, Pair
from tests.sandbox.test_data_plane import ByFirstLabel

_HOST = "basic-pd-0.basic-pd-peer.default.svc"
_AUTHORITY, _ANOTHER = Authority(), Authority()
_SERVER = _AUTHORITY.of("pd")
_DAY = timedelta(days=1)


def failure(
    client: Pair | None, server: Pair = _SERVER, host: str = _HOST, days: float = 0, *, demands: bool = True
) -> str:
    """The client's error, some days from now."""
    clock = FakeClock()
    clock.step(days * 86400.0)
    side = ServerSide(Certificate.of(server), demands)
    return Handshakes(clock).failure(Certificate.of(client) if client else Certificate(), side, host)


@pytest.mark.rule("objects-9.1")
def test_a_handshake_succeeds_between_sides_that_trust_each_other() -> None:
    assert "" == failure(_AUTHORITY.pair())
    assert "" == failure(_AUTHORITY.pair(), host="127.0.0.1")


@pytest.mark.parametrize(
    ("client", "server", "said"),
    [
        (_ANOTHER.pair(), _SERVER, "self-signed certificate in certificate chain"),
        (_ANOTHER.pair(trusts=_AUTHORITY.ca), _SERVER, "unknown ca"),
        (_AUTHORITY.pair(), _AUTHORITY.of("tikv"), f"certificate is not valid for '{_HOST}'"),
        (_AUTHORITY.pair(ends=TODAY - _DAY, begins=TODAY - 2 * _DAY), _SERVER, "alert certificate expired"),
        (_AUTHORITY.pair(begins=TODAY + _DAY), _SERVER, "alert bad certificate"),
        (_AUTHORITY.pair(), _AUTHORITY.of("pd", ends=TODAY - _DAY, begins=TODAY - 2 * _DAY), "certificate has expired"),
        (_AUTHORITY.pair(), _AUTHORITY.of("pd", begins=TODAY + _DAY), "certificate is not yet valid"),
        (Pair(_AUTHORITY.ca, b"", b""), _SERVER, "alert certificate required"),
    ],
    ids=["CA of the server", "CA of the client", "name", "old client", "early client", "old", "early", "no client"],
)
@pytest.mark.rule("objects-9.1")
def test_rejects_an_untrusted_side(client: Pair, server: Pair, said: str) -> None:
    assert said in failure(client, server)


@pytest.mark.rule("objects-9.1")
def test_the_clock_of_the_world_ages_certificates() -> None:
    assert "" == failure(_AUTHORITY.pair(), days=364)
    assert "certificate has expired" in failure(_AUTHORITY.pair(), days=366)


@pytest.mark.rule("objects-9.1")
def test_a_server_may_accept_clients_without_certificates() -> None:
    assert "" == failure(Pair(_AUTHORITY.ca, b"", b""), demands=False)


@pytest.mark.rule("objects-9.1")
def test_a_server_may_accept_a_single_name() -> None:
    handshakes, client = Handshakes(FakeClock()), Certificate.of(_AUTHORITY.pair())
    assert "" == handshakes.failure(client, ServerSide(Certificate.of(_SERVER), names=("TiDB",)), _HOST)
    assert "bad certificate" in handshakes.failure(
        client, ServerSide(Certificate.of(_SERVER), names=("Another",)), _HOST
    )


def test_a_handshake_fails_if_one_side_has_no_tls() -> None:
    handshakes, client = Handshakes(FakeClock()), Certificate.of(_AUTHORITY.pair())
    assert "" == handshakes.failure(None, None, _HOST)
    assert "wrong version number" in handshakes.failure(client, None, _HOST)
    assert "" != handshakes.failure(None, ServerSide(Certificate.of(_SERVER)), _HOST)


class _Greeting(Program):
    """Answers every request."""

    concurrent = False

    def handle(self, port: int, request: Request) -> Answer:
        return Answer(Response(200, {}, b"hello"))


_GREETER = ServerProgram(
    name="greeter", start=lambda launch, _: _Greeting(launch, None), certificates=("tls.ca", "tls.cert", "tls.key")
)
_FILES = {
    "/etc/greeter.toml": "[tls]\nca = '/tls/ca.crt'\ncert = '/tls/tls.crt'\nkey = '/tls/tls.key'",
    "/tls/ca.crt": _SERVER.ca.decode(),
    "/tls/tls.crt": _SERVER.cert.decode(),
    "/tls/tls.key": _SERVER.key.decode(),
}


def started(clock: FakeClock, **changed: str) -> tuple[DataPlane, Launch, Exit | None]:
    plane = DataPlane(
        clock=clock,
        randomness=SeededRandomness(1),
        timings=Timings(),
        notifier=Notifier(clock),
        directory=ByFirstLabel(),
        identity=lambda _, __: plane.transport(),
        programs={},
        servers=[_GREETER],
        pause=clock.step,
    )
    running = plane.start(
        Launch(
            namespace="default",
            pod="basic-pd-0",
            pod_uid="basic-pd-0",
            image="greeter:v1",
            command=("/greeter-server", "--config=/etc/greeter.toml"),
            files=_FILES | {f"/tls/{name.replace('_', '.')}": text for name, text in changed.items()},
            ports=frozenset({443}),
        )
    )
    return plane, running.launch, running.process.exit


def ask(plane: DataPlane, pair: Pair | None, url: str = f"https://{_HOST}:443/") -> Response:
    certificate = Certificate.of(pair) if pair else None
    return plane.transport(Origin(certificate=certificate)).request(Request("GET", url))


def test_requests_pass_a_handshake(clock: FakeClock) -> None:
    plane, _, _ = started(clock)
    assert b"hello" == ask(plane, _AUTHORITY.pair()).body
    assert 400 == ask(plane, None, f"http://{_HOST}:443/").status
    with pytest.raises(TlsError, match="self-signed certificate in certificate chain"):
        ask(plane, _ANOTHER.pair())
    with pytest.raises(TlsError):
        ask(plane, None)


def test_a_renewed_certificate_is_read_by_the_next_connection_but_the_ca_is_not(clock: FakeClock) -> None:
    plane, launch, _ = started(clock)
    new = _AUTHORITY.pair("another")
    launch.renewed.update({"/tls/tls.crt": new.cert.decode(), "/tls/tls.key": new.key.decode()})
    with pytest.raises(TlsError, match="certificate is not valid for"):
        ask(plane, _AUTHORITY.pair())
    launch.renewed.clear()
    launch.renewed["/tls/ca.crt"] = _ANOTHER.ca.decode()
    assert b"hello" == ask(plane, _AUTHORITY.pair()).body


def test_a_server_does_not_start_with_a_key_that_is_not_its_own(clock: FakeClock) -> None:
    _, _, ended = started(clock, tls_key=_ANOTHER.pair("a").key.decode())
    assert ended is not None
    assert "key values mismatch" in ended.message


@pytest.mark.rule("14.1")
def test_the_proxy_performs_the_handshake_for_the_server(clock: FakeClock) -> None:
    # here OpenSSL uses the machine's clock
    long_ago, far_ahead = datetime(2001, 1, 1, tzinfo=UTC), datetime(2037, 1, 1, tzinfo=UTC)
    server = _AUTHORITY.of("pd", begins=long_ago, ends=far_ahead)
    plane, _, _ = started(clock, tls_crt=server.cert.decode(), tls_key=server.key.decode())
    proxy = ForwardProxy(plane.transport(Origin(certificate=PROVEN)), plane.network.server_side)
    proxy.start()
    request = Request("GET", f"https://{_HOST}:443/")
    client = _AUTHORITY.pair(begins=long_ago, ends=far_ahead)
    try:
        environ = {"HTTPS_PROXY": f"http://127.0.0.1:{proxy.port}"}
        assert b"hello" == over_http(environ, client, request).body
        with pytest.raises(TlsError, match="self-signed certificate in certificate chain"):
            over_http(environ, _ANOTHER.pair(begins=long_ago, ends=far_ahead), request)
        with pytest.raises(TlsError, match="Hostname mismatch"):
            over_http(environ, client, Request("GET", "https://basic-pd-0.elsewhere:443/"))
    finally:
        proxy.stop()


def over_http(environ: dict[str, str], pair: Pair, request: Request) -> Response:
    transport = HttpTransport(environ, TlsMaterial(pair.ca, pair.cert, pair.key))
    try:
        return transport.request(request)
    finally:
        transport.close()
