"""SQL over MySQL's protocol against a server scripted byte by byte (dataplane-apis.md 6, A10)."""

import contextlib
import itertools
import socket
import ssl
import struct
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from dataplane.errors import ApiError, Unavailable
from dataplane.mysql import MySqlConnector
from dataplane.sql import AccessDenied, RootClient, quoted
from ports.fencing import OpenFence
from ports.sql import SqlLogin, SqlRefused
from ports.transport import AnswerRefused, ConnectionLost, ConnectionRefused, RequestTimeout, TlsError
from tests.dataplane.certificates import Authority
from tests.socks_proxy import socks_proxy

GREETING = (
    b"\x0a8.0.11-TiDB-v8.5.0\0" + struct.pack("<I", 7) + b"12345678\0" + b"\xff\xf7\x2d\x02\0\xff\xff\x15" + b"\0" * 10
)
GREETING += b"123456789012\0mysql_native_password\0"
OFFERING_TLS = GREETING.replace(b"\xff\xf7\x2d", b"\xff\xff\x2d")
OK = b"\0\0\0\x02\0\0\0"
SWITCH = b"\xfecaching_sha2_password\0" + b"1" * 20 + b"\0"
DENIED = b"\xff" + struct.pack("<H", 1045) + b"#28000Access denied for user 'root'@'10.0.0.1' (using password: NO)"


def packet(number: int, payload: bytes) -> bytes:
    return struct.pack("<I", len(payload))[:3] + bytes([number]) + payload


class Server:
    """Greets, then answers each packet with its next answer; records the packets."""

    def __init__(self, *answers: bytes, tls: ssl.SSLContext | None = None) -> None:
        """With `tls` the client requests TLS before it sends its name."""
        self._tls = tls
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._answers = list(answers)
        self.heard: list[bytes] = []
        self._thread = threading.Thread(target=self._serve, name="mysql", daemon=True)
        self._thread.start()

    @property
    def login(self) -> SqlLogin:
        host, port = self._listener.getsockname()
        return SqlLogin(host, port, "root", timeout=2.0)

    def _serve(self) -> None:
        connection, _ = self._listener.accept()
        connection.sendall(packet(0, self._answers.pop(0)))
        with contextlib.suppress(ssl.SSLError, ConnectionError), self._secured(connection) as connection:
            while header := _read(connection, 4):
                self.heard.append(_read(connection, int.from_bytes(header[:3], "little")))
                if not self._answers:
                    break
                connection.sendall(packet(header[3] + 1, self._answers.pop(0)))

    def _secured(self, connection: socket.socket) -> socket.socket:
        if self._tls is None:
            return connection
        _read(connection, 36)
        return self._tls.wrap_socket(connection, server_side=True)

    def stop(self) -> None:
        self._listener.close()
        self._thread.join(5.0)


def _read(connection: socket.socket, count: int) -> bytes:
    content = b""
    while len(content) < count and (piece := connection.recv(count - len(content))):
        content += piece
    return content


@contextmanager
def serving(*answers: bytes, tls: ssl.SSLContext | None = None) -> Iterator[Server]:
    server = Server(*answers, tls=tls)
    try:
        yield server
    finally:
        server.stop()


def execute(login: SqlLogin, *statements: str) -> None:
    MySqlConnector().execute(login, statements)


def test_a_user_without_a_password_logs_in_and_statements_follow() -> None:
    with serving(GREETING, OK, OK, OK, OK) as server:
        execute(server.login, "SET x = 'é'", "FLUSH PRIVILEGES")
    login, names, first, second, leave = server.heard
    assert login[32:].startswith(b"root\0\0mysql_native_password\0")
    assert names.startswith(b"\x03SET NAMES utf8mb4")
    assert (b"\x03" + "SET x = 'é'".encode(), b"\x03FLUSH PRIVILEGES", b"\x01") == (first, second, leave)


def test_a_login_goes_through_a_socks_proxy() -> None:
    with serving(GREETING, OK, OK, OK, OK) as server, socks_proxy(server.login.port) as proxy:
        login = replace(server.login, host="basic-tidb.default", port=4000)
        MySqlConnector({"ALL_PROXY": f"socks5://{proxy.address}"}).execute(login, ["FLUSH PRIVILEGES"])
    assert [("basic-tidb.default", 4000)] == proxy.asked


def test_another_method_of_authentication_gets_an_empty_answer() -> None:
    with serving(GREETING, SWITCH, OK, OK, OK) as server:
        execute(server.login, "FLUSH PRIVILEGES")
    assert [b"", b"\x03FLUSH PRIVILEGES"] == [server.heard[1], server.heard[3]]


@pytest.mark.parametrize("answers", [(DENIED,), (GREETING, DENIED), (GREETING, OK, OK, DENIED)])
def test_an_sql_error_has_code_and_message(answers: tuple[bytes, ...]) -> None:
    with serving(*answers) as server, pytest.raises(SqlRefused, match="Access denied for user 'root'") as refused:
        execute(server.login, "FLUSH PRIVILEGES")
    assert 1045 == refused.value.code


def framed(payload: bytes, first: int) -> Iterator[bytes]:
    """The payloads as packets with increasing numbers."""
    for number in itertools.count(first):
        yield packet(number % 256, payload)


@contextmanager
def pouring(*pieces: Iterable[bytes], pause: float = 0.0, greets: bool = True) -> Iterator[SqlLogin]:
    """A server that lets any user in, then sends without end, with a pause before each piece."""
    listener, ended = socket.create_server(("127.0.0.1", 0)), threading.Event()

    def pour() -> None:
        with contextlib.suppress(OSError):
            connection, _ = listener.accept()
            with connection:
                if greets:
                    connection.sendall(packet(0, GREETING))
                    for number in (2, 1):
                        header = _read(connection, 4)
                        _read(connection, int.from_bytes(header[:3], "little"))
                        connection.sendall(packet(number, OK))
                    header = _read(connection, 4)
                    _read(connection, int.from_bytes(header[:3], "little"))
                for piece in itertools.chain(*pieces):
                    connection.sendall(piece)
                    if ended.wait(pause):
                        return

    thread = threading.Thread(target=pour, name="mysql", daemon=True)
    thread.start()
    try:
        host, port = listener.getsockname()
        yield SqlLogin(host, port, "root", timeout=0.5 if pause else 20.0)
    finally:
        ended.set()
        listener.close()
        thread.join(5.0)


LARGEST = b"\xff\xff\xff"
COLUMN = b"\x03def\0\0\0\x01c\0\x0c\x2d\0\x01\0\0\0\xfd\0\0\0\0\0"
END_OF_COLUMNS = b"\xfe\0\0\x02\0"


@pytest.mark.parametrize(
    ("pieces", "greets"),
    [
        pytest.param([[LARGEST + b"\0\x0a"], itertools.repeat(b"8" * 65536)], False, id="greeting-of-16-megabytes"),
        pytest.param([[LARGEST + b"\x01"], itertools.repeat(b"x" * 65536)], True, id="answer-of-16-megabytes"),
        pytest.param([[packet(1, b"\xfc\xff\xff")], framed(COLUMN, 2)], True, id="columns-without-end"),
        pytest.param(
            [[packet(1, b"\x01"), packet(2, COLUMN), packet(3, END_OF_COLUMNS)], framed(b"\x03row", 4)],
            True,
            id="rows-without-end",
        ),
    ],
)
def test_a_login_has_a_maximum_of_bytes(pieces: list[Iterable[bytes]], greets: bool) -> None:
    with pouring(*pieces, greets=greets) as login, pytest.raises(AnswerRefused, match="more than the 65536 bytes"):
        execute(login, "FLUSH PRIVILEGES")


@pytest.mark.parametrize(
    ("pieces", "greets"),
    [([[b"\x50\0\0\0"], itertools.repeat(b"8")], False), ([[b"\x50\0\0\x01"], itertools.repeat(b"\0")], True)],
    ids=["greeting", "answer"],
)
def test_an_answer_sent_byte_by_byte_has_one_deadline(pieces: list[Iterable[bytes]], greets: bool) -> None:
    with pouring(*pieces, pause=0.1, greets=greets) as login, pytest.raises(RequestTimeout):
        execute(login, "FLUSH PRIVILEGES")


def test_refuses_to_send_a_local_file_to_the_server() -> None:
    asks = [packet(1, b"\xfb/etc/passwd")]
    with pouring(asks) as login, pytest.raises(ConnectionLost, match="does not speak MySQL's protocol"):
        execute(login, "FLUSH PRIVILEGES")


@pytest.mark.parametrize(
    "answers",
    [(GREETING.replace(b"8.0.11", b"SECRET"),), (GREETING, b"\xfeSECRET\0" + b"1" * 20 + b"\0")],
    ids=["version", "method-of-authentication"],
)
def test_quotes_only_error_messages_of_a_server(answers: tuple[bytes, ...]) -> None:
    with serving(*answers) as server, pytest.raises(ConnectionLost) as raised:
        execute(server.login, "FLUSH PRIVILEGES")
    assert "SECRET" not in str(raised.value)


@pytest.mark.parametrize("answers", [(b"\x09",), (b"HTTP/1.1 400",), (GREETING, b"\x01"), (GREETING,)])
def test_bytes_that_are_not_mysql_raise_an_error(answers: tuple[bytes, ...]) -> None:
    with serving(*answers) as server, pytest.raises(ConnectionLost):
        execute(server.login, "FLUSH PRIVILEGES")


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    """The authority that signed the server's certificate."""
    return Authority(tmp_path_factory.mktemp("authority"))


def test_with_a_ca_the_connection_is_tls_and_the_server_is_verified(authority: Authority) -> None:
    context = authority.server()
    context.verify_mode = ssl.CERT_NONE
    with serving(OFFERING_TLS, OK, OK, OK, tls=context) as server:
        execute(replace(server.login, ca=authority.read("ca.crt").decode()), "FLUSH PRIVILEGES")
    assert b"\x03FLUSH PRIVILEGES" == server.heard[-2]


def test_refuses_a_server_whose_certificate_another_authority_signed(authority: Authority, tmp_path: Path) -> None:
    context = authority.server()
    context.verify_mode = ssl.CERT_NONE
    other = Authority(tmp_path).read("ca.crt").decode()
    with (
        serving(OFFERING_TLS, OK, OK, tls=context) as server,
        pytest.raises(TlsError, match="certificate verify failed"),
    ):
        execute(replace(server.login, ca=other), "FLUSH PRIVILEGES")


def test_does_not_fall_back_to_plain_text_without_tls(authority: Authority) -> None:
    with serving(GREETING, OK, OK, OK) as server, pytest.raises(ConnectionLost, match="SSL is required"):
        execute(replace(server.login, ca=authority.read("ca.crt").decode()), "FLUSH PRIVILEGES")
    assert [] == server.heard


def test_a_missing_and_a_silent_server_are_unavailable() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        host, port = silent.getsockname()
        with pytest.raises(RequestTimeout):
            execute(SqlLogin(host, port, "root", timeout=0.05), "FLUSH PRIVILEGES")
    with pytest.raises(ConnectionRefused):
        execute(SqlLogin(host, port, "root", timeout=0.5), "FLUSH PRIVILEGES")


class Scripted:
    """Executes nothing."""

    def __init__(self, error: Exception | None = None) -> None:
        self.error = error
        self.statements: list[str] = []

    def execute(self, login: SqlLogin, statements: list[str]) -> None:
        self.statements += statements
        if self.error:
            raise self.error


def root(connector: Scripted) -> RootClient:
    return RootClient(connector, SqlLogin("demo-tidb.ns.svc", 4000, "root"), OpenFence())  # type: ignore[arg-type]


@pytest.mark.rule("dataplane-apis-6")
def test_sets_the_password_of_root() -> None:
    connector = Scripted()
    root(connector).set_password("a'b\\c")
    assert ["SET PASSWORD FOR 'root'@'%' = 'a''b\\\\c'", "FLUSH PRIVILEGES"] == connector.statements
    assert "'it''s'" == quoted("it's")


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (SqlRefused(1045, "Access denied"), AccessDenied),
        (SqlRefused(1064, "syntax error near 'pa55word'"), ApiError),
        (ConnectionRefused("SQL", "mysql://x", "refused"), Unavailable),
    ],
)
@pytest.mark.rule("dataplane-apis-6")
def test_errors_are_typed_and_hide_the_password(error: Exception, expected: type[Exception]) -> None:
    with pytest.raises(expected) as raised:
        root(Scripted(error)).set_password("pa55word")
    assert "pa55word" not in str(raised.value)
