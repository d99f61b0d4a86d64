"""Dialling through a SOCKS5 proxy, by PySocks."""

import contextlib
import socket
import sys
import threading
from collections.abc import Iterator

import pytest

from ports import socks
from ports.socks import PySocksMissing, dial, require_pysocks
from tests.socks_proxy import socks_proxy

LOST = "basic-pd.default.svc"


@pytest.fixture
def echo() -> Iterator[int]:
    """The port of a server that says one line."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            with contextlib.suppress(OSError):
                while True:
                    connection, _ = listener.accept()
                    with connection:
                        connection.sendall(b"hello\n")

        thread = threading.Thread(target=serve, name="echo")
        thread.start()
        yield listener.getsockname()[1]
        listener.shutdown(socket.SHUT_RDWR)
        thread.join()


@pytest.mark.parametrize("scheme", ["socks5", "socks5h"])
@pytest.mark.parametrize("host", ["basic-pd.default.svc", "10.0.0.1", "fd00::1"])
def test_the_proxy_resolves_names_for_both_schemes(echo: int, scheme: str, host: str) -> None:
    with socks_proxy(echo) as proxy, dial(f"{scheme}://{proxy.address}", host, 2379, 5.0) as connection:
        assert b"hello\n" == connection.recv(6)
    assert [(host, 2379)] == proxy.asked


def test_the_url_has_the_login(echo: int) -> None:
    with socks_proxy(echo, wants_login=True) as proxy:
        dial(f"socks5://user:pa%40ss@{proxy.address}", LOST, 2379, 5.0).close()
    assert [("user", "pa@ss")] == proxy.logins


def test_a_refusal_names_the_proxy_and_not_its_password(echo: int) -> None:
    with socks_proxy(echo, reply=5) as proxy, pytest.raises(OSError, match="Connection refused") as refused:
        dial(f"socks5://user:secret@{proxy.address}", LOST, 2379, 5.0)
    assert f"the SOCKS proxy at {proxy.address}: " in str(refused.value)
    assert "secret" not in str(refused.value)


def test_a_missing_proxy_is_named() -> None:
    with socket.create_server(("127.0.0.1", 0)) as reserved:
        port = reserved.getsockname()[1]
    with pytest.raises(OSError, match=rf"the SOCKS proxy at 127\.0\.0\.1:{port}: .*refused"):
        dial(f"socks5://127.0.0.1:{port}", LOST, 2379, 5.0)


@pytest.mark.parametrize("url", ["socks5://user:sec/ret@h:1", "socks5://h:99999", "socks5://[h"])
def test_an_unusable_url_is_not_quoted(url: str) -> None:
    with pytest.raises(OSError, match=r"the SOCKS proxy is no URL such as socks5://host:1080$"):
        dial(url, LOST, 2379, 5.0)


def test_a_name_that_pysocks_would_garble_is_refused(echo: int) -> None:
    with socks_proxy(echo) as proxy, pytest.raises(OSError, match="at most 127 bytes"):
        dial(f"socks5://{proxy.address}", ".".join(["a" * 31] * 4) + ".", 2379, 5.0)
    assert [] == proxy.asked


def test_answers_that_trickle_share_one_deadline() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        ended = threading.Event()

        def trickle() -> None:
            with contextlib.suppress(OSError):
                connection, _ = listener.accept()
                with connection:
                    # no login, connected, and a name of 255 bytes that takes five seconds
                    connection.sendall(bytes([5, 0, 5, 0, 0, 3, 255]))
                    while not ended.wait(0.02):
                        connection.sendall(b"x")

        thread = threading.Thread(target=trickle, name="trickle")
        thread.start()
        with pytest.raises(TimeoutError):
            dial(f"socks5://127.0.0.1:{listener.getsockname()[1]}", LOST, 2379, 0.1)
        ended.set()
        thread.join()


def test_without_pysocks_the_error_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "socks", None)
    socks._dialling_socket.cache_clear()
    with pytest.raises(PySocksMissing, match=r"PySocks \(the extra `socks`\); install it, or name an HTTP proxy"):
        require_pysocks()
