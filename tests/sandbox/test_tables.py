"""The sandbox's SQL, with TiDB's errors for unsupported statements."""

import itertools
from collections.abc import Iterator

import pytest

from ports.clock import FakeClock
from ports.sql import SqlLogin, SqlRefused
from sandbox.dataplane.mysql_client import statements
from sandbox.dataplane.tables import Tables
from tests.operator_world import NAMESPACE, OperatorWorld, sample

USERS = "CREATE TABLE shop.users (id INT PRIMARY KEY AUTO_INCREMENT, name VARCHAR(50) NOT NULL, age INT)"


class OneStore:
    """Regions that always have a leader."""

    def __init__(self) -> None:
        self._ids = itertools.count(100)

    def split(self) -> int:
        return next(self._ids)

    def is_led(self, region: int) -> bool:
        return True


@pytest.fixture
def tables(clock: FakeClock) -> Tables:
    made = Tables(lambda: clock.wall().timestamp(), OneStore())
    made.execute("CREATE DATABASE shop")
    made.execute(USERS)
    return made


def rows(tables: Tables) -> list[list[str]]:
    _, *found = tables.execute("SELECT * FROM shop.users") or []
    return [list(row) for row in found]


def test_insert_takes_columns_by_name_and_numbers_the_rows(tables: Tables) -> None:
    tables.execute("INSERT INTO shop.users (name, age) VALUES ('Bob', 25), ('Eve', 32)")
    tables.execute("INSERT INTO shop.users (`age`, `id`) VALUES (40, 7)")
    tables.execute("INSERT INTO shop.users(name) VALUES ('Joe')")
    assert [["1", "Bob", "25"], ["2", "Eve", "32"], ["7", "NULL", "40"], ["8", "Joe", "NULL"]] == rows(tables)


@pytest.mark.parametrize(
    ("statement", "code"),
    [
        ("INSERT INTO shop.users (nam) VALUES ('Bob')", 1054),
        ("INSERT INTO shop.users (name, age) VALUES ('Bob')", 1136),
        ("INSERT INTO shop.users (name age) VALUES ('Bob', 1)", 1054),
        ("INSERT INTO shop.plain (name) VALUES ('Bob')", 1364),
    ],
)
def test_an_insert_that_does_not_fit_its_table_fails_as_in_tidb(tables: Tables, statement: str, code: int) -> None:
    tables.execute("CREATE TABLE shop.plain (id INT PRIMARY KEY, name TEXT)")
    with pytest.raises(SqlRefused) as failed:
        tables.execute(statement)
    assert code == failed.value.code
    assert [] == rows(tables)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("SELECT 1; -- a; b\nSELECT 'c;d' # e;f\n;", ["SELECT 1", "SELECT 'c;d'"]),
        ('SELECT "a;b", `c;d` /* e; */;; SELECT 2', ['SELECT "a;b", `c;d`', "SELECT 2"]),
        ("INSERT INTO a.b VALUES ('it''s; \\';')", ["INSERT INTO a.b VALUES ('it''s; \\';')"]),
    ],
)
def test_a_semicolon_in_quotes_or_a_comment_ends_no_statement(text: str, expected: list[str]) -> None:
    assert expected == statements(text)


@pytest.mark.parametrize(
    ("statement", "answer"),
    [
        ("SELECT 1, 'it''s'", [["1", "it's"], ["1", "it's"]]),
        ("CREATE UNIQUE INDEX by_name ON shop.users (name)", None),
        ("ALTER TABLE shop.users ADD INDEX by_age (age)", None),
        ("DROP TABLE IF EXISTS shop.nothing", None),
        ("START TRANSACTION", None),
    ],
)
def test_statements_that_change_no_row_are_accepted(tables: Tables, statement: str, answer: object) -> None:
    tables.execute("INSERT INTO shop.users VALUES (1, 'Bob', 25)")
    assert answer == tables.execute(statement)
    assert [["1", "Bob", "25"]] == rows(tables)


def test_truncate_removes_the_rows_and_keeps_the_table(tables: Tables) -> None:
    tables.execute("INSERT INTO shop.users VALUES (1, 'Bob', 25)")
    tables.execute("TRUNCATE TABLE shop.users")
    assert [] == rows(tables)


@pytest.fixture
def world(clock: FakeClock) -> Iterator[OperatorWorld]:
    made = OperatorWorld(clock=clock)
    yield made
    made.stop()


@pytest.mark.slow
@pytest.mark.parametrize("servers", [0, 1])
def test_a_table_gets_replicas_on_tiflash_servers_that_the_cluster_has(world: OperatorWorld, servers: int) -> None:
    manifest = sample("basic")
    if servers:
        manifest["spec"]["tiflash"] = {
            "baseImage": "pingcap/tiflash",
            "replicas": servers,
            "storageClaims": [{"resources": {"requests": {"storage": "1Gi"}}}],
        }
    world.apply(manifest)
    world.run_until(lambda: world.is_ready("basic"), 120)

    def sql(*statements: str) -> None:
        world.world.data_plane.sql().execute(SqlLogin("basic-tidb.default", 4000, "root"), statements)

    sql("CREATE DATABASE shop", "USE shop", USERS.replace("shop.", ""), "SELECT * FROM users")
    with pytest.raises(SqlRefused, match="No database selected"):
        sql("SELECT * FROM users")
    with pytest.raises(SqlRefused, match="Unknown database 'shops'"):
        sql("USE shops")
    if not servers:
        with pytest.raises(SqlRefused, match="should be less than the total tiflash server count: 0"):
            sql("ALTER TABLE shop.users SET TIFLASH REPLICA 1")
        return
    sql("alter table shop.users set tiflash replica 1")
    pd = world.world.data_plane.pd_cluster(NAMESPACE, "basic")
    assert pd is not None
    (table,) = pd.tables.tables()
    assert {f"table-{table.id}-r": 1} == pd.placement.of_tiflash
    sql("ALTER TABLE shop.users SET TIFLASH REPLICA 0")
    assert {} == pd.placement.of_tiflash
