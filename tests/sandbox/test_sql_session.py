"""SQL from other processes: through the proxy, in MySQL's protocol (dataplane-apis.md 14.1)."""

import contextlib
import socket
from collections.abc import Iterator

import pymysql
import pytest

from dataplane.mysql import MySqlConnector
from ports.clock import FakeClock
from ports.sql import SqlLogin, SqlRefused
from ports.transport import ConnectionRefused
from sandbox.dataplane.network import Origin
from sandbox.dataplane.tls import PROVEN
from sandbox.forward_proxy import ForwardProxy
from tests.operator_world import NAMESPACE, OperatorWorld, sample

LOGIN = SqlLogin("basic-tidb.default", 4000, "root")


@pytest.fixture
def basic(clock: FakeClock) -> Iterator[OperatorWorld]:
    """The sample `basic`, Ready."""
    world = OperatorWorld(clock=clock)
    world.apply(sample("basic"))
    world.run_until_ready()
    yield world
    world.stop()


@pytest.fixture
def proxy(basic: OperatorWorld) -> Iterator[int]:
    """The port of a proxy in front of it."""
    plane = basic.world.data_plane
    served = ForwardProxy(plane.transport(Origin(certificate=PROVEN)), sql=plane.sql().server)
    served.start()
    yield served.port
    served.stop()


def password(world: OperatorWorld) -> str:
    pd = world.world.data_plane.pd_cluster(NAMESPACE, "basic")
    assert pd is not None
    return pd.users["root"]


@pytest.mark.slow
def test_executes_statements_and_returns_error_codes(basic: OperatorWorld, proxy: int) -> None:
    sql = MySqlConnector({"ALL_PROXY": f"http://127.0.0.1:{proxy}"})
    with pytest.raises(SqlRefused, match="error in your SQL syntax") as refused:
        sql.execute(LOGIN, ["SELEKT 1"])
    assert (1064, "") == (refused.value.code, password(basic))
    sql.execute(LOGIN, ["SET PASSWORD FOR 'root'@'%' = 'it''s'", "FLUSH PRIVILEGES"])
    assert "it's" == password(basic)
    with pytest.raises(SqlRefused, match="Access denied for user 'root'") as refused:
        sql.execute(LOGIN, ["FLUSH PRIVILEGES"])
    assert 1045 == refused.value.code


@pytest.mark.slow
def test_returns_rows_to_clients_of_the_protocol(basic: OperatorWorld, proxy: int) -> None:
    values = ", ".join(f"({number}, '{'x' * number}')" for number in (1, 300))
    basic.world.data_plane.sql().execute(
        LOGIN,
        ["CREATE DATABASE a", "CREATE TABLE a.b (id INT PRIMARY KEY, c TEXT)", f"INSERT INTO a.b VALUES {values}"],
    )
    with socket.create_connection(("127.0.0.1", proxy)) as tunnel:
        tunnel.sendall(b"CONNECT basic-tidb.default:4000 HTTP/1.1\r\n\r\n")
        # the bytes after the head belong to the server
        head = b""
        while not head.endswith(b"\r\n\r\n"):
            head += tunnel.recv(1)
        connection = pymysql.connect(user="root", defer_connect=True)
        connection.connect(tunnel)
        with contextlib.closing(connection), connection.cursor() as cursor:
            cursor.execute("SELECT * FROM a.b")
            assert ["id", "c"] == [each[0] for each in cursor.description]
            assert (("1", "x"), ("300", "x" * 300)) == cursor.fetchall()


@pytest.mark.parametrize(
    ("url", "why"),
    [("https://127.0.0.1:1", "ALL_PROXY names https://"), ("http://127.0.0.1:1", "the proxy at 127.0.0.1: ")],
)
def test_names_an_unusable_proxy(url: str, why: str) -> None:
    with pytest.raises(ConnectionRefused, match=why):
        MySqlConnector({"ALL_PROXY": url}).execute(LOGIN, [])
