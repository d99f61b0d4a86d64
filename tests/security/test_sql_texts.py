"""A server of MySQL's protocol reads texts of specs and Secrets as values, under each mode that changes its quotes."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pymysql
import pytest
from pymysql.cursors import Cursor

from backup_manager.database import Login, MySqlDatabase
from backup_manager.gc_life_time import VARIABLE
from dataplane.sql import quoted
from member.initializer.initialize import Settings, carry_out
from tests.member.initializer.test_script import ROOT_EVERYWHERE
from tests.security.meaningful_texts import TEXTS
from tests.sql_server import HOST, MariaDb, mariadb

pytestmark = [pytest.mark.slow, pytest.mark.thorough]

_LINES = tuple(text for text in TEXTS if len(text.splitlines()) == 1)
"""A password is the first line of a file."""
_HOSTS = tuple(text for text in TEXTS if "@" not in text)
"""A host that the server does not refuse."""
_OF_GC = (
    b"CREATE TABLE mysql.tidb (VARIABLE_NAME varchar(64) PRIMARY KEY, VARIABLE_VALUE varchar(1024)) CHARSET utf8mb4;\n"
)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MariaDb]:
    with mariadb(tmp_path_factory.mktemp("mariadb"), bootstrap=ROOT_EVERYWHERE + _OF_GC) as made:
        yield made


@pytest.fixture(params=["", "NO_BACKSLASH_ESCAPES", "ANSI_QUOTES"])
def root(server: MariaDb, request: pytest.FixtureRequest) -> Iterator["Cursor"]:
    """A session of root, which stays open when a test changes root's account."""
    connection: Any = pymysql.connect(host=HOST, port=server.port, user="root", autocommit=True)
    with connection, connection.cursor() as cursor:
        cursor.execute("SET GLOBAL sql_mode = %s", (request.param,))
        yield cursor


def test_passwords_are_values(server: MariaDb, root: Cursor, tmp_path: Path) -> None:
    users = {f"u{number}": text for number, text in enumerate(_LINES)}
    for user, text in users.items():
        (tmp_path / user).write_text(text, "utf-8")
    carry_out(Settings(HOST, server.port, passwords=str(tmp_path)), lambda _: None)
    for user, text in users.items():
        pymysql.connect(host=HOST, port=server.port, user=user, password=text.encode()).close()
    assert {*users, "root"} == _users(root).keys() - {"mariadb.sys", ""}


def test_permitted_hosts_are_values(server: MariaDb, root: Cursor, tmp_path: Path) -> None:
    (tmp_path / "guest").write_text("secret")
    for text in _HOSTS:
        root.execute("DROP USER IF EXISTS guest@%s", (text,))
        carry_out(Settings(HOST, server.port, text, passwords=str(tmp_path)), lambda _: None)
        hosts = _users(root)
        root.execute("UPDATE mysql.user SET Host = '%' WHERE User = 'root'")
        root.execute("FLUSH PRIVILEGES")
        root.execute("DROP USER guest@%s", (text,))
        assert [text.lower()] * 2 == [hosts[user].lower() for user in ("guest", "root")]


def test_the_life_time_of_garbage_is_a_value(server: MariaDb, root: Cursor) -> None:
    root.execute("REPLACE INTO mysql.tidb VALUES (%s, '10m0s')", (VARIABLE,))
    database = MySqlDatabase(Login(HOST, server.port, "root", ""))
    for text in TEXTS:
        database.set_variable(VARIABLE, text)
        assert text == database.variable(VARIABLE)


def test_a_literal_ends_where_its_text_ends(server: MariaDb) -> None:
    connection = pymysql.connect(host=HOST, port=server.port, user="root", charset="utf8mb4")
    with connection, connection.cursor() as cursor:
        cursor.execute("SET sql_mode = ''")
        for text in TEXTS:
            cursor.execute(f"SELECT {quoted(text)}")
            assert ((text,),) == cursor.fetchall()


def test_a_value_without_quotes_is_noticed(server: MariaDb, root: Cursor) -> None:
    broken = 0
    for text in TEXTS:
        try:
            root.execute(f"SELECT '{text}'")
            broken += ((text,),) != root.fetchall()
        except pymysql.MySQLError:
            broken += 1
    assert broken


def _users(root: Cursor) -> dict[str, str]:
    root.execute("SELECT User, Host FROM mysql.user")
    return dict(root.fetchall())
