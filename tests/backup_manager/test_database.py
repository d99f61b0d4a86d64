"""SQL against a real server of MySQL's protocol: MariaDB with TiDB's one relevant table (backup.md 7.3)."""

import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pymysql
import pytest

from backup_manager.database import DatabaseError, Login, MySqlDatabase
from backup_manager.gc_life_time import VARIABLE
from tests.backup_manager.storage.servers import CANARY
from tests.sql_server import HOST, certificates, mariadb

pytestmark = pytest.mark.slow

_PASSWORD = f"{CANARY}-š"
"""A text that Latin-1 cannot encode."""


@pytest.fixture(scope="module")
def login(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Login]:
    """A server whose root has a password, and its certificates in a directory, as a pod mounts them."""
    with mariadb(tmp_path_factory.mktemp("mariadb")) as server:
        connection = pymysql.connect(host=HOST, port=server.port, user="root", autocommit=True)
        with connection, connection.cursor() as cursor:
            cursor.execute(
                "CREATE TABLE mysql.tidb (VARIABLE_NAME varchar(64) PRIMARY KEY, VARIABLE_VALUE varchar(1024), "
                "COMMENT varchar(1024))"
            )
            cursor.execute("INSERT INTO mysql.tidb VALUES (%s, '10m0s', '')", (VARIABLE,))
            cursor.execute(f"SET PASSWORD FOR root@localhost = PASSWORD('{_PASSWORD}')")
        yield Login("localhost", server.port, "root", _PASSWORD, server.tls)


@pytest.mark.parametrize("with_tls", [True, False])
@pytest.mark.rule("backup-7.3")
def test_the_variable_is_read_and_set(login: Login, with_tls: bool) -> None:
    database = MySqlDatabase(login if with_tls else replace(login, tls=None))
    database.ping()
    assert "10m0s" == database.variable(VARIABLE)
    database.set_variable(VARIABLE, "72h")
    assert "72h" == MySqlDatabase(login).variable(VARIABLE)
    database.set_variable(VARIABLE, "10m0s")


@pytest.mark.rule("backup-7.3")
def test_reports_a_server_that_is_not_tidb(login: Login) -> None:
    with pytest.raises(DatabaseError, match=r"mysql\.tidb has no tikv_gc_other; is it TiDB that answers"):
        MySqlDatabase(login).variable("tikv_gc_other")


@pytest.mark.rule("backup-7.3")
def test_a_wrong_password_is_refused_and_not_shown(login: Login) -> None:
    wrong = replace(login, password=f"wrong-{CANARY}")
    with pytest.raises(DatabaseError, match="Access denied for user 'root'") as raised:
        MySqlDatabase(wrong).ping()
    assert CANARY not in f"{raised.value} {wrong!r} {wrong}"


@pytest.mark.rule("backup-7.3")
def test_reports_a_missing_server() -> None:
    with pytest.raises(DatabaseError, match=r"root@127\.0\.0\.1:1: "):
        MySqlDatabase(Login(HOST, 1, "root", "")).ping()


@pytest.mark.rule("backup-7.3")
def test_over_tls_the_server_is_verified_by_default(login: Login, tmp_path: Path) -> None:
    assert login.tls is not None
    others = certificates(tmp_path / "others")
    for name in ("tls.crt", "tls.key"):
        shutil.copy(login.tls / name, others)
    with pytest.raises(DatabaseError, match="certificate verify failed"):
        MySqlDatabase(replace(login, tls=others)).ping()
    MySqlDatabase(replace(login, tls=others, verifies=False)).ping()
