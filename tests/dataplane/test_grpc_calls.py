"""Flushes of log backups over gRPC, against a server of grpcio on loopback."""

import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from dataplane.addresses import Address
from dataplane.errors import ApiError, Unavailable
from dataplane.grpc_calls import GrpcCalls
from dataplane.log_backups import Flush, LogBackupServer, is_not_offered
from dataplane.read_only import NoGrpc
from dataplane.tls import TlsMaterial
from ports.fencing import Fence, LeaseExpired, OpenFence
from ports.protobuf import message
from ports.transport import ConnectionLost, RequestTimeout
from tests.dataplane.certificates import Authority

grpc: Any = import_module("grpc")

Handler = Callable[[bytes, Any], bytes]
_PATIENCE = 10.0
_DONE = message([(1, message([(1, b"demo"), (2, 1)]))])


@contextmanager
def serving(handler: Handler, credentials: Any = None, *, method: str = "FlushNow") -> Iterator[Address]:
    """A server whose log backup service answers by `handler`."""
    server = grpc.server(ThreadPoolExecutor(2))
    answers = {method: grpc.unary_unary_rpc_method_handler(handler)}
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("logbackup.LogBackup", answers),))
    if credentials is None:
        port = server.add_insecure_port("127.0.0.1:0")
    else:
        port = server.add_secure_port("127.0.0.1:0", credentials)
    server.start()
    try:
        yield Address(f"{'https' if credentials else 'http'}://127.0.0.1:{port}")
    finally:
        server.stop(None).wait(_PATIENCE)


def begin(url: Address, tls: TlsMaterial | None = None, **environ: str) -> Flush:
    return LogBackupServer(GrpcCalls(environ), url, tls, OpenFence()).begin_flush()


def outcome(flush: Flush) -> tuple[str, ...]:
    """The outcome of a flush, once there is one."""
    end = threading.Event()
    for _ in range(int(_PATIENCE / 0.02)):
        if (found := flush.tasks()) is not None:
            return found
        end.wait(0.02)
    raise AssertionError("the flush has no outcome")


def test_an_empty_request_flushes_all_tasks() -> None:
    received = []

    def answer(request: bytes, _: Any) -> bytes:
        received.append(request)
        return _DONE

    with serving(answer) as url:
        assert ("demo",) == outcome(begin(url))
    assert [b""] == received


def test_no_tasks_are_no_failure() -> None:
    with serving(lambda *_: b"") as url:
        assert () == outcome(begin(url))


def test_a_flush_is_under_way_until_the_server_answers() -> None:
    may_answer = threading.Event()

    def answer(*_: Any) -> bytes:
        may_answer.wait(_PATIENCE)
        return _DONE

    with serving(answer) as url:
        flush = begin(url)
        assert flush.tasks() is None
        may_answer.set()
        assert ("demo",) == outcome(flush)


def test_a_failed_task_is_named_in_printable_characters() -> None:
    failed = message([(1, message([(1, b"fine"), (2, 1)])), (1, message([(1, b"demo"), (3, b"no\x1b space")]))])
    with (
        serving(lambda *_: failed) as url,
        pytest.raises(ApiError, match=r"the flush of task demo failed: no\S? space"),
    ):
        outcome(begin(url))


def test_a_tikv_without_the_method_offers_no_flush() -> None:
    with serving(lambda *_: b"", method="Other") as url, pytest.raises(ApiError) as raised:
        outcome(begin(url))
    assert is_not_offered(raised.value)


@pytest.mark.parametrize("answer", [b"\x0a\x7fabc", b"\x0a\x02\x0a\x7f", b"\xff" * 20])
def test_a_malformed_answer_is_no_success(answer: bytes) -> None:
    with serving(lambda *_: answer) as url, pytest.raises(ApiError, match="malformed answer"):
        outcome(begin(url))


def test_an_answer_that_is_too_long_is_refused() -> None:
    with serving(lambda *_: _DONE * 10_000) as url, pytest.raises(ApiError, match="status 8"):
        outcome(begin(url))


def test_a_refused_connection_is_unavailable() -> None:
    with serving(lambda *_: b"") as url:
        pass
    with pytest.raises(Unavailable) as raised:
        outcome(begin(url))
    assert isinstance(raised.value.cause, ConnectionLost)


def test_a_flush_that_is_given_up_has_timed_out() -> None:
    may_answer = threading.Event()
    with serving(lambda *_: _DONE if may_answer.wait(_PATIENCE) else b"") as url:
        flush = begin(url)
        flush.give_up()
        with pytest.raises(Unavailable) as raised:
            outcome(flush)
        may_answer.set()
    assert isinstance(raised.value.cause, RequestTimeout)


def test_the_client_shows_its_certificate_and_checks_the_servers(tmp_path: Path) -> None:
    ours, theirs = Authority(_directory(tmp_path / "ours")), Authority(_directory(tmp_path / "theirs"))
    pair = [(ours.read("server.key"), ours.read("server.crt"))]
    demanding = grpc.ssl_server_credentials(pair, ours.read("ca.crt"), require_client_auth=True)
    with serving(lambda *_: _DONE, demanding) as url:
        assert ("demo",) == outcome(begin(url, ours.material("client")))
        for material in (theirs.material("client"), None):
            with pytest.raises(Unavailable):
                outcome(begin(url, material))


def _directory(path: Path) -> Path:
    path.mkdir()
    return path


def test_loopback_is_reached_without_the_proxy() -> None:
    with serving(lambda *_: _DONE) as url:
        assert ("demo",) == outcome(begin(url, http_proxy="http://127.0.0.1:1"))


def test_other_servers_are_reached_through_the_proxy() -> None:
    with serving(lambda *_: _DONE), pytest.raises(Unavailable, match=r"127\.0\.0\.1:1"):
        outcome(begin(Address("http://basic-tikv-0.basic-tikv-peer.default:20160"), http_proxy="http://127.0.0.1:1"))


def test_a_socks_proxy_is_refused_with_the_way_out() -> None:
    with pytest.raises(ApiError, match=r"gRPC goes through http:// proxies only; name the host in NO_PROXY") as raised:
        begin(Address("http://basic-tikv-0.basic-tikv-peer.default:20160"), http_proxy="socks5://127.0.0.1:1")
    assert is_not_offered(raised.value)


def test_names_the_package_that_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "grpc", None)
    with pytest.raises(ApiError, match="the Python package grpcio is not installed") as raised:
        begin(Address("http://127.0.0.1:1"))
    assert is_not_offered(raised.value)


def test_an_operator_that_only_observes_sends_nothing() -> None:
    planned: list[tuple[str, str]] = []
    calls = NoGrpc(GrpcCalls(), lambda *told: planned.append(told))
    with serving(lambda *_: _DONE) as url:
        with pytest.raises(Unavailable, match="this process only observes"):
            LogBackupServer(calls, url, None, OpenFence()).begin_flush()
        assert [("gRPC", f"{url}/logbackup.LogBackup/FlushNow")] == planned


def test_a_former_leader_sends_nothing() -> None:
    class Expired(OpenFence):
        def check(self) -> None:
            raise LeaseExpired

    fence: Fence = Expired()
    with pytest.raises(LeaseExpired):
        LogBackupServer(GrpcCalls(), Address("http://127.0.0.1:1"), None, fence).begin_flush()
