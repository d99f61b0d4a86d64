"""SQL in front of a real server of MySQL's protocol: MariaDB, with TiDB's one table that counts (backup.md 7.3)."""

import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pymysql
import pytest
import trustme

from backup_manager.database import DatabaseError, Login, MySqlDatabase
from backup_manager.gc_life_time import VARIABLE
from tests.backup_manager.storage.servers import CANARY
from tests.controlplane.processes import free_port

pytestmark = pytest.mark.slow

HOST = "127.0.0.1"


SYSTEM_TABLES = [
    Path("/usr/share/mysql") / f"mysql_{name}.sql"
    for name in ("system_tables", "performance_tables", "system_tables_data")
]
FIRST = b"CREATE DATABASE mysql;\nUSE mysql;\nSET @auth_root_socket = NULL;\nSET @skip_auth_anonymous = 1;\n"


def mariadb() -> str:
    """The server's path; skips where there is none, and fails where everything is required."""
    found = shutil.which("mariadbd", path=f"{os.environ['PATH']}:/usr/sbin")
    if found is None:
        assert not os.environ.get("REQUIRE_EVERYTHING"), "mariadbd is missing"
        pytest.skip("mariadbd is missing: install mariadb-server-core")
    return found


@pytest.fixture(scope="module")
def login(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Login]:
    """A server whose root has a password, and its certificates in a directory as a pod has those of clients."""
    program = mariadb()
    directory = tmp_path_factory.mktemp("mariadb")
    data, tls = directory / "data", _certificates(directory / "tls")
    data.mkdir()
    serve = [program, "--no-defaults", f"--datadir={data}", "--user=root"]
    tables = FIRST + b"".join(path.read_bytes() for path in SYSTEM_TABLES)
    subprocess.run([*serve, "--bootstrap"], input=tables, check=True, capture_output=True, timeout=60)
    port = free_port()
    serve += [f"--port={port}", f"--bind-address={HOST}", f"--socket={directory / 'socket'}"]
    serve += [f"--ssl-cert={tls / 'tls.crt'}", f"--ssl-key={tls / 'tls.key'}", f"--ssl-ca={tls / 'ca.crt'}"]
    with (directory / "log").open("wb") as log:
        process = subprocess.Popen(serve, stdout=log, stderr=log)
        try:
            _prepare(port, directory / "log")
            yield Login("localhost", port, "root", CANARY, tls)
        finally:
            process.kill()
            process.wait()


def _certificates(directory: Path) -> Path:
    directory.mkdir()
    authority = trustme.CA()
    authority.cert_pem.write_to_path(directory / "ca.crt")
    issued = authority.issue_cert("localhost")
    for index, blob in enumerate(issued.cert_chain_pems):
        blob.write_to_path(directory / "tls.crt", append=index > 0)
    issued.private_key_pem.write_to_path(directory / "tls.key")
    return directory


def _prepare(port: int, log: Path) -> None:
    deadline = time.monotonic() + 30  # noqa: TID251  (a real process)
    while True:
        try:
            connection = pymysql.connect(host=HOST, port=port, user="root", autocommit=True)
            break
        except pymysql.MySQLError:
            assert time.monotonic() < deadline, log.read_text()  # noqa: TID251
            time.sleep(0.1)  # noqa: TID251
    with connection, connection.cursor() as cursor:
        cursor.execute(
            "CREATE TABLE mysql.tidb (VARIABLE_NAME varchar(64) PRIMARY KEY, VARIABLE_VALUE varchar(1024), "
            "COMMENT varchar(1024))"
        )
        cursor.execute("INSERT INTO mysql.tidb VALUES (%s, '10m0s', '')", (VARIABLE,))
        cursor.execute(f"SET PASSWORD FOR root@localhost = PASSWORD('{CANARY}')")


@pytest.mark.parametrize("with_tls", [True, False])
def test_7_3_the_variable_is_read_and_set(login: Login, with_tls: bool) -> None:
    database = MySqlDatabase(login if with_tls else replace(login, tls=None))
    database.ping()
    assert "10m0s" == database.variable(VARIABLE)
    database.set_variable(VARIABLE, "72h")
    assert "72h" == MySqlDatabase(login).variable(VARIABLE)
    database.set_variable(VARIABLE, "10m0s")


def test_7_3_what_is_no_tidb_is_told(login: Login) -> None:
    with pytest.raises(DatabaseError, match=r"mysql\.tidb has no tikv_gc_other; is it TiDB that answers"):
        MySqlDatabase(login).variable("tikv_gc_other")


def test_7_3_a_wrong_password_is_refused_and_not_shown(login: Login) -> None:
    wrong = replace(login, password=f"wrong-{CANARY}")
    with pytest.raises(DatabaseError, match="Access denied for user 'root'") as raised:
        MySqlDatabase(wrong).ping()
    assert CANARY not in f"{raised.value} {wrong!r} {wrong}"


def test_7_3_nobody_answers() -> None:
    with pytest.raises(DatabaseError, match=r"root@127\.0\.0\.1:1: "):
        MySqlDatabase(Login(HOST, 1, "root", "")).ping()


def test_7_3_over_tls_the_server_is_verified_unless_that_is_switched_off(login: Login, tmp_path: Path) -> None:
    assert login.tls is not None
    others = _certificates(tmp_path / "others")
    for name in ("tls.crt", "tls.key"):
        shutil.copy(login.tls / name, others)
    with pytest.raises(DatabaseError, match="certificate verify failed"):
        MySqlDatabase(replace(login, tls=others)).ping()
    MySqlDatabase(replace(login, tls=others, verifies=False)).ping()
