"""The script of a TidbInitializer's pod, run in front of MariaDB (other-resources.md 2.5)."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pymysql
import pytest

from member.initializer.desired import with_settings
from member.initializer.initialize import Settings, statements
from tests.sql_server import HOST, MariaDb, mariadb

ROOT_EVERYWHERE = (
    b"DELETE FROM mysql.global_priv WHERE User = 'root' AND Host <> 'localhost';\n"
    b"UPDATE mysql.global_priv SET Host = '%' WHERE User = 'root';\n"
    b"UPDATE mysql.tables_priv SET Table_priv = 'Select,Update,Delete' WHERE User = 'mariadb.sys';\n"
)
"""A stand-in for TiDB, in whose mysql.user root may change rows."""


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", []),
        ("\n \n;;\n", []),
        ("CREATE DATABASE a;CREATE DATABASE b", ["CREATE DATABASE a", "CREATE DATABASE b"]),
        ("CREATE TABLE t (\n  id INT\n);\n", ["CREATE TABLE t (\n  id INT\n)"]),
        (
            "INSERT INTO t VALUES ('a;b', \"c;d\", 'it''s', 'a\\';');",
            ["INSERT INTO t VALUES ('a;b', \"c;d\", 'it''s', 'a\\';')"],
        ),
        ("-- a; b\nSELECT 1; # c; d\n/* e; f */ SELECT 2", ["SELECT 1", "SELECT 2"]),
        (
            "CREATE TABLE `a;b` (id INT /*T![auto_rand] AUTO_RANDOM(5) */)",
            ["CREATE TABLE `a;b` (id INT /*T![auto_rand] AUTO_RANDOM(5) */)"],
        ),
        ("SELECT 1--1;SELECT /*+ HINT() */ 2", ["SELECT 1--1", "SELECT /*+ HINT() */ 2"]),
    ],
)
@pytest.mark.rule("other-resources-2.5")
def test_sql_is_split_into_statements(text: str, expected: list[str]) -> None:
    assert expected == list(statements(text))


@pytest.mark.rule("other-resources-2.5")
def test_the_script_is_one_of_python_3_7() -> None:
    ast.parse(with_settings(Settings("h", 1)), feature_version=(3, 7))


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MariaDb]:
    with mariadb(tmp_path_factory.mktemp("mariadb"), bootstrap=ROOT_EVERYWHERE) as server:
        yield server


class Pod:
    """The pod's files in a directory, and the result of its script."""

    def __init__(self, directory: Path, server: MariaDb) -> None:
        self.directory, self.server = directory, server
        self.passwords = directory / "password"
        self.passwords.mkdir()
        (self.passwords / "..data").write_text("not a user")

    def run(self, sql: str = "", *, tls: bool = False, host: str = "%", port: int = 0) -> tuple[int, str]:
        """Exit code, and what the pod says of its end."""
        log, init = self.directory / "log", self.directory / "init.sql"
        init.write_text(sql)
        log.write_text("")
        settings = Settings(
            "localhost" if tls else HOST,
            port or self.server.port,
            permit_host=host,
            tls=str(self.server.tls) if tls else "",
            passwords=str(self.passwords),
            sql=str(init) if sql else "",
            log=str(log),
        )
        text = with_settings(settings).replace("PAUSE = 1.0", "PAUSE = 0.01")
        done = subprocess.run(
            [sys.executable, "-"], input=text, capture_output=True, text=True, timeout=60, check=False
        )
        assert done.stderr.strip() == log.read_text()
        return done.returncode, log.read_text()

    def query(self, sql: str, user: str = "root", password: str = "") -> tuple[tuple[object, ...], ...]:
        connection = pymysql.connect(
            host=HOST, port=self.server.port, user=user, password=password.encode(), autocommit=True
        )
        with connection, connection.cursor() as cursor:
            cursor.execute(sql)
            return cursor.fetchall()


@pytest.fixture
def pod(tmp_path: Path, shared: MariaDb) -> Iterator[Pod]:
    made = Pod(tmp_path, shared)
    yield made
    root = (made.passwords / "root").read_text().strip() if (made.passwords / "root").exists() else ""
    made.query("UPDATE mysql.user SET Host = '%' WHERE User = 'root'", password=root)
    made.query("FLUSH PRIVILEGES", password=root)
    made.query("ALTER USER root@'%' IDENTIFIED BY ''", password=root)
    for name in ("reader", "o'neil"):
        made.query(f'DROP USER IF EXISTS "{name}"@"%", "{name}"@"127.0.0.%"')
    made.query("DROP DATABASE IF EXISTS shop")


@pytest.mark.slow
@pytest.mark.parametrize("tls", [True, False], ids=["TLS", "plain"])
@pytest.mark.rule("other-resources-2.5")
def test_users_get_passwords_sql_runs_and_all_of_it_may_run_again(pod: Pod, tls: bool) -> None:
    (pod.passwords / "root").write_text("ro%ot'š\n")
    (pod.passwords / "reader").write_text('re"ad\\er\nnot this')
    (pod.passwords / "o'neil").write_text("")
    sql = "CREATE DATABASE IF NOT EXISTS shop;\nCREATE TABLE IF NOT EXISTS shop.t (\n  id INT\n);\nSELECT '100%';\n"
    for _ in range(2):
        assert (0, "") == pod.run(sql, tls=tls)
        assert (("t",),) == pod.query("SHOW TABLES IN shop", password="ro%ot'š")
        assert ((1,),) == pod.query("SELECT 1", "reader", 're"ad\\er')
        assert ((1,),) == pod.query("SELECT 1", "o'neil")
    (pod.passwords / "reader").write_text("another")
    assert (0, "") == pod.run()
    assert ((1,),) == pod.query("SELECT 1", "reader", "another")


@pytest.mark.slow
@pytest.mark.rule("other-resources-2.5")
def test_users_may_come_from_the_permitted_host_alone(pod: Pod) -> None:
    (pod.passwords / "reader").write_text("secret")
    for _ in range(2):
        assert (0, "") == pod.run(host="127.0.0.%")
        assert (("reader", "127.0.0.%"), ("root", "127.0.0.%")) == pod.query(
            "SELECT User, Host FROM mysql.user WHERE User IN ('root', 'reader') ORDER BY User"
        )


@pytest.mark.slow
@pytest.mark.rule("other-resources-2.5")
def test_a_failed_statement_is_reported_by_number_with_the_servers_answer(pod: Pod) -> None:
    code, said = pod.run("CREATE DATABASE shop;\nCREATE DATABASE\n  shop;\nCREATE DATABASE never;")
    assert (1, "init SQL, statement 2: 1007: Can't create database 'shop'; database exists") == (code, said)


@pytest.mark.slow
@pytest.mark.parametrize("sql", ["CREATE USER u IDENTIFIED BY 'canary' NONSENSE;", "SET PASSWORD 'canary';"])
@pytest.mark.rule("other-resources-2.5")
def test_a_statement_that_may_hold_a_secret_is_not_reported(pod: Pod, sql: str) -> None:
    code, said = pod.run(sql)
    assert (1, False) == (code, "canary" in said)
    assert said.startswith("init SQL, statement 1: error 1064; its text is not shown")


@pytest.mark.slow
@pytest.mark.rule("other-resources-2.5")
def test_a_password_is_never_reported(pod: Pod) -> None:
    (pod.passwords / "reader").write_text("canary")
    code, said = pod.run("SELEC 'canary';")
    assert (1, False) == (code, "canary" in said)
    assert "'***'" in said


@pytest.mark.slow
@pytest.mark.rule("other-resources-2.5")
def test_a_failed_login_is_reported_after_ten_tries(pod: Pod) -> None:
    pod.query("ALTER USER root@'%' IDENTIFIED BY 'set by somebody'")
    (pod.passwords / "root").write_text("another")
    code, said = pod.run()
    (pod.passwords / "root").write_text("set by somebody")
    assert (1, True) == (code, said.startswith(f"connect to {HOST}:{pod.server.port} as root: 1045: Access denied"))
    assert (1, True) == (pod.run(port=1)[0], "as root: 2003: " in pod.run(port=1)[1])
