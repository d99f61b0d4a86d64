"""Discovery over real sockets: the API, mutual TLS, the dashboard proxy, the process (objects.md 9.4, 10.2)."""

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import pytest
import structlog

from dataplane.http_transport import HttpTransport
from discovery.main import DashboardProxy, answer_through, main
from ports.http_server import ListenError, Server, answer_with, mutual_tls
from ports.transport import ByteStream, Request, Response, Transport, TransportError
from tests.dataplane.certificates import Authority

HERE = "127.0.0.1"


def echo(request: Request) -> Response:
    """Answer with the request's URL."""
    told = {"method": request.method, "url": request.url, "body": (request.body or b"").decode()}
    headers = {"content-type": "application/json", "x-host": request.headers.get("host", "")}
    return Response(201, headers, json.dumps(told).encode())


@contextlib.contextmanager
def client() -> Iterator[Transport]:
    transport = HttpTransport({})
    yield transport
    transport.close()


@pytest.mark.rule("objects-10.2")
def test_serves_an_app() -> None:
    server = Server("api", (HERE, 0), answer_with(echo))
    with server.serving(), client() as transport:
        answer = transport.request(Request("POST", f"http://{HERE}:{server.port}/new/x?y=z", body=b"body"))
    assert 201 == answer.status
    assert {"method": "POST", "url": "/new/x?y=z", "body": "body"} == json.loads(answer.body)


def test_names_a_port_that_is_taken() -> None:
    with socket.create_server((HERE, 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(ListenError, match=f"api: cannot listen on port {port}: Address already in use"):
            Server("api", (HERE, port), answer_with(echo))


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("ca"))


@pytest.fixture
def certificates(authority: Authority, tmp_path: Path) -> Path:
    """Discovery's Secret as it is mounted."""
    for name, file in (("ca.crt", "ca.crt"), ("tls.crt", "server.crt"), ("tls.key", "server.key")):
        (tmp_path / name).write_bytes(authority.read(file))
    return tmp_path


@pytest.mark.slow
@pytest.mark.rule("objects-9.4")
def test_clients_must_present_a_certificate(authority: Authority, certificates: Path) -> None:
    server = Server("api", (HERE, 0), answer_with(echo), mutual_tls(certificates))
    request = Request("GET", f"https://{HERE}:{server.port}/x", timeout=5)
    identified = HttpTransport({}, authority.material("client"))
    anonymous = HttpTransport({})
    with server.serving(), contextlib.closing(identified), contextlib.closing(anonymous):
        # a silent client blocks no other client
        with socket.create_connection((HERE, server.port)):
            assert 201 == identified.request(request).status
        with pytest.raises(TransportError):
            anonymous.request(request)


@pytest.mark.rule("objects-9.4")
def test_names_missing_certificates(tmp_path: Path) -> None:
    with pytest.raises(ListenError, match=r"cannot use .*tls\.crt, .*tls\.key, .*ca\.crt for TLS"):
        mutual_tls(tmp_path)


@contextlib.contextmanager
def proxied(transport: Transport | None = None) -> Iterator[tuple[int, int]]:
    """The ports of a proxy and of the PD behind it."""
    pd = Server("pd", (HERE, 0), answer_with(echo))
    with client() as http:
        proxy = Server(
            "proxy", (HERE, 0), answer_through(DashboardProxy(transport or http, f"http://{HERE}:{pd.port}"))
        )
        with pd.serving(), proxy.serving():
            yield proxy.port, pd.port


@pytest.mark.rule("objects-10.2")
def test_the_proxy_sends_pds_host_name() -> None:
    with proxied() as (port, pd_port), client() as browser:
        request = Request(
            "POST", f"http://{HERE}:{port}/dashboard/api?x=1", {"connection": "x-hop", "x-hop": "1"}, b"b"
        )
        answer = browser.request(request)
    assert (201, f"{HERE}:{pd_port}") == (answer.status, answer.headers["x-host"])
    assert {"method": "POST", "url": "/dashboard/api?x=1", "body": "b"} == json.loads(answer.body)


@pytest.mark.parametrize("path", ["/", "/pd/api/v1/members", "/dashboard/../pd/api/v1/members"])
@pytest.mark.rule("objects-10.2")
def test_the_proxy_rejects_other_paths(path: str) -> None:
    with proxied() as (port, _), socket.create_connection((HERE, port)) as browser:
        browser.settimeout(5)
        browser.sendall(f"GET {path} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        assert browser.recv(4096).startswith(b"HTTP/1.1 502 ")


@pytest.mark.rule("objects-10.2")
def test_without_pd_the_answer_is_502() -> None:
    class Nowhere:
        def request(self, request: Request) -> Response:
            raise NotImplementedError

        def stream(self, request: Request, idle_timeout: float) -> ByteStream:
            raise TransportError(request.method, request.url, "no PD")

    with proxied(Nowhere()) as (port, _), client() as browser:
        answer = browser.request(Request("GET", f"http://{HERE}:{port}/dashboard"))
    assert (502, b"no PD\n") == (answer.status, answer.body[-6:])


@pytest.fixture
def logs_restored() -> Iterator[None]:
    """Restore the log configuration, which the process changes."""
    yield
    structlog.reset_defaults()


@pytest.mark.usefixtures("logs_restored")
@pytest.mark.parametrize(
    ("environ", "reason"),
    [
        ({}, "TC_NAME is not set"),
        ({"TC_NAME": "demo"}, "MY_POD_NAMESPACE is not set"),
        ({"TC_NAME": "demo", "MY_POD_NAMESPACE": "ns"}, "KUBERNETES_SERVICE_HOST"),
        ({"TC_NAME": "demo", "MY_POD_NAMESPACE": "ns", "KUBECONFIG": "/nowhere"}, "/nowhere"),
    ],
)
@pytest.mark.rule("objects-10.2")
def test_names_missing_settings_at_the_start(
    environ: dict[str, str], reason: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert 1 == main([], environ)
    assert reason in capsys.readouterr().err


@pytest.mark.rule("objects-10.2")
def test_prints_the_version(capsys: pytest.CaptureFixture[str]) -> None:
    try:
        version("tidb-operator-py")
    except PackageNotFoundError:
        pytest.skip("the project is not installed, only imported")
    assert 0 == main(["-V"], {})
    assert capsys.readouterr().out.startswith("tidb-discovery ")


@pytest.mark.slow
@pytest.mark.rule("objects-10.2")
def test_the_process_serves_until_a_signal(tmp_path: Path) -> None:
    cluster = {"apiVersion": "pingcap.com/v1alpha1", "metadata": {"name": "demo", "namespace": "ns"}, "spec": {}}
    api = Server("kubernetes", (HERE, 0), answer_with(lambda _: Response(200, {}, json.dumps(cluster).encode())))
    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.write_text(
        f"""\
current-context: c
contexts: [{{name: c, context: {{cluster: k}}}}]
clusters: [{{name: k, cluster: {{server: "http://{HERE}:{api.port}"}}}}]
"""
    )
    environ = os.environ | {"TC_NAME": "demo", "MY_POD_NAMESPACE": "ns", "KUBECONFIG": str(kubeconfig)}
    command = [sys.executable, "-m", "discovery", "-port", "0", "-proxy-port", "0"]
    with api.serving(), subprocess.Popen(command, env=environ, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        api_port, _ = json.loads(process.stderr.readline())["ports"]
        with client() as transport:
            answer = transport.request(Request("GET", f"http://{HERE}:{api_port}/verify/ZGVtby1wZDoyMzc5Cg=="))
        process.send_signal(signal.SIGTERM)
        assert (b"demo-pd:2379", 0) == (answer.body, process.wait(10))
