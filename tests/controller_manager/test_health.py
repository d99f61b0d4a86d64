"""Metrics and checks over HTTP, on a real socket."""

import gc
import gzip
import socket
import threading
from collections.abc import Iterator
from contextlib import closing, suppress
from http.client import HTTPConnection

import pytest
from prometheus_client import CollectorRegistry, Counter
from prometheus_client.core import Metric
from prometheus_client.registry import Collector

from controller_manager.addresses import parse_address
from controller_manager.health import HealthServer, ListenError
from tests.informers.support import eventually


@pytest.fixture
def registry() -> CollectorRegistry:
    return CollectorRegistry()


@pytest.fixture
def server(registry: CollectorRegistry) -> Iterator[HealthServer]:
    server = HealthServer("127.0.0.1:0", registry)
    server.start()
    yield server
    server.stop()
    gc.collect()  # an unclosed socket warns here, and fails the test that left it


def get(server: HealthServer, path: str, method: str = "GET") -> tuple[int, str]:
    connection = HTTPConnection("127.0.0.1", server.port, timeout=5)
    try:
        connection.request(method, path)
        answer = connection.getresponse()
        return answer.status, answer.read().decode()
    finally:
        connection.close()


@pytest.mark.rule("5")
def test_metrics_of_the_registry_are_served(server: HealthServer, registry: CollectorRegistry) -> None:
    Counter("syncs", "Syncs.", registry=registry).inc()

    status, text = get(server, "/metrics")

    assert 200 == status
    assert "syncs_total 1.0" in text.splitlines()


@pytest.mark.rule("5")
def test_metrics_have_the_format_of_v1_6(server: HealthServer) -> None:
    with closing(HTTPConnection("127.0.0.1", server.port, timeout=5)) as connection:
        connection.request("GET", "/metrics", headers={"accept": "application/openmetrics-text;version=1.0.0"})
        assert "text/plain; version=0.0.4; charset=utf-8" == connection.getresponse().headers["content-type"]


@pytest.mark.parametrize("method", ["GET", "HEAD"])
def test_a_long_answer_is_compressed_for_clients_that_accept_it(
    server: HealthServer, registry: CollectorRegistry, method: str
) -> None:
    syncs = Counter("syncs", "Syncs.", ["name"], registry=registry)
    for number in range(1000):
        syncs.labels(f"basic-{number}").inc()
    with closing(HTTPConnection("127.0.0.1", server.port, timeout=5)) as connection:
        connection.request(method, "/metrics", headers={"accept-encoding": "deflate, gzip"})
        answer = connection.getresponse()
        assert "gzip" == answer.headers["content-encoding"]
        assert 20_000 > int(answer.headers["content-length"])
        body = answer.read()
    assert (get(server, "/metrics")[1] if method == "GET" else "") == (gzip.decompress(body).decode() if body else "")


def test_many_who_connect_and_say_nothing_keep_no_probe_waiting(server: HealthServer) -> None:
    idle = [socket.create_connection(("127.0.0.1", server.port)) for _ in range(130)]
    try:
        assert (200, "ok\n") == get(server, "/healthz")
        eventually(lambda: sum(each.name == "health-request" for each in threading.enumerate()) <= 100)
    finally:
        for connection in idle:
            connection.close()


@pytest.mark.parametrize(
    "request_line", ["GARBAGE", "GET /metrics HTTP/9.9", "POST /metrics HTTP/1.1", f"GET /{'a' * 70_000} HTTP/1.1"]
)
def test_garbage_ends_nothing(server: HealthServer, request_line: str) -> None:
    with socket.create_connection(("127.0.0.1", server.port), timeout=5) as connection, suppress(OSError):
        connection.sendall(f"{request_line}\r\n\r\n".encode())
        while connection.recv(65536):
            pass
    assert (200, "ok\n") == get(server, "/healthz")


@pytest.mark.rule("3.3")
def test_checks_decide_each_page_by_itself(server: HealthServer) -> None:
    server.live.add("lease", lambda: None)
    server.ready.add("api", lambda: None)
    server.ready.add("caches", lambda: "2 caches are not synced: pods, services")

    assert (200, "[+] lease\nok\n") == get(server, "/healthz")
    assert (503, "[+] api\n[-] caches: 2 caches are not synced: pods, services\nfailed\n") == get(server, "/readyz")


def test_a_check_can_be_replaced_while_serving(server: HealthServer) -> None:
    server.ready.add("caches", lambda: "not yet")
    assert 503 == get(server, "/readyz")[0]
    server.ready.add("caches", lambda: None)
    assert 200 == get(server, "/readyz?verbose")[0]


def test_a_check_that_raises_has_failed(server: HealthServer) -> None:
    def broken() -> str | None:
        raise RuntimeError("boom")

    server.live.add("broken", broken)

    assert (503, "[-] broken: the check itself failed: RuntimeError('boom')\nfailed\n") == get(server, "/healthz")


class BrokenCollector(Collector):
    def collect(self) -> Iterator[Metric]:
        raise RuntimeError("boom")


def test_a_broken_collector_is_a_server_error(server: HealthServer, registry: CollectorRegistry) -> None:
    registry.register(BrokenCollector())
    assert (500, "failed, see the log\n") == get(server, "/metrics")


def test_an_unknown_path_names_the_known_ones(server: HealthServer) -> None:
    assert (404, "try one of /metrics, /healthz, /readyz\n") == get(server, "/")


def test_head_has_no_body(server: HealthServer) -> None:
    assert (200, "") == get(server, "/healthz", "HEAD")


def test_a_port_in_use_is_named_with_its_flag(server: HealthServer, registry: CollectorRegistry) -> None:
    second = HealthServer(f"127.0.0.1:{server.port}", registry)
    expected = rf"cannot listen on 127.0.0.1:{server.port}: Address already in use; .*--metrics-addr"
    with pytest.raises(ListenError, match=expected):
        second.start()


def test_an_idle_connection_does_not_delay_the_stop(registry: CollectorRegistry) -> None:
    server = HealthServer("127.0.0.1:0", registry)
    server.start()
    with socket.create_connection(("127.0.0.1", server.port)):
        assert 200 == get(server, "/healthz")[0]  # by now the idle connection is accepted, too
        assert {"health-server", "health-request"} <= {thread.name for thread in threading.enumerate()}

        stopping = threading.Thread(target=server.stop)
        stopping.start()
        stopping.join(2)
        assert not stopping.is_alive()
    server.stop()


@pytest.mark.parametrize(
    ("text", "address"),
    [
        (":6060", ("", 6060)),
        ("127.0.0.1:0", ("127.0.0.1", 0)),
        ("[::1]:6060", ("::1", 6060)),
        ("localhost:80", ("localhost", 80)),
    ],
)
def test_addresses(text: str, address: tuple[str, int]) -> None:
    assert address == parse_address(text)


@pytest.mark.parametrize("text", ["", "6060", "host", ":port", ":65536", "::1:6060"])
def test_refuses_an_invalid_address(text: str) -> None:
    with pytest.raises(ValueError, match="not an address to listen on"):
        parse_address(text)
