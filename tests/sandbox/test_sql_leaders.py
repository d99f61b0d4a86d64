"""SQL connections wait for the leaders of regions and PD, as long as TiDB does, and then fail."""

from collections.abc import Callable

import pytest

from ports.clock import FakeClock
from ports.sql import SqlRefused
from ports.transport import ConnectionLost, ConnectionRefused
from sandbox.dataplane.faults import Fault, Trouble
from sandbox.dataplane.sql import SqlServer
from tests.sandbox.test_data_plane import Plane

ELECTION = 1.0
"""`raft_election` of the sandbox."""
READ, WRITE = "SELECT * FROM shop.users", "REPLACE INTO shop.users VALUES (1)"


class Sql:
    """A connection to a TiDB of three stores, and the store that leads the region of its table."""

    def __init__(self, clock: FakeClock) -> None:
        self.clock = clock
        self.plane = Plane(clock, lambda seconds: self.plane.advance(seconds, seconds))
        self.plane.start("discovery")
        self.plane.start("pd")
        self.plane.advance(2)
        for ordinal in range(3):
            self.plane.start("tikv", ordinal)
        self.plane.advance(3)
        self.plane.start("tidb")
        self.plane.advance(3)
        self.connection: SqlServer = self.plane.connect()
        for statement in ("CREATE DATABASE shop", "CREATE TABLE shop.users (id INT PRIMARY KEY)", WRITE):
            self.connection.execute(statement)
        self.plane.advance(3)

    @property
    def table(self) -> int:
        return next(table.id for table in self.plane.pd.tables.tables() if table.name == "users")

    @property
    def leader(self) -> str:
        store = self.plane.pd.stores.serving(self.table, self.clock.now())
        assert store is not None
        return store.address.partition(".")[0]

    def others(self) -> list[str]:
        return [pod for pod in ("basic-tikv-0", "basic-tikv-1", "basic-tikv-2") if pod != self.leader]

    def seconds(self, act: Callable[[], object]) -> float:
        begun = self.clock.now()
        act()
        return self.clock.now() - begun

    def fails(self, statement: str) -> tuple[int, float]:
        begun = self.clock.now()
        with pytest.raises(SqlRefused) as failed:
            self.connection.execute(statement)
        return failed.value.code, self.clock.now() - begun


@pytest.fixture
def sql(clock: FakeClock) -> Sql:
    return Sql(clock)


def test_a_statement_waits_until_a_region_has_elected_another_leader(sql: Sql) -> None:
    before = sql.leader
    sql.plane.kill(before)
    assert ELECTION == pytest.approx(sql.seconds(lambda: sql.connection.execute(READ)), abs=0.2)
    assert before != sql.leader


def test_a_leader_that_restarts_at_once_does_not_lead_again_before_the_election(sql: Sql) -> None:
    before = sql.leader
    sql.plane.kill(before)
    sql.plane.start("tikv", int(before[-1]))
    sql.plane.advance(0.5)
    assert sql.plane.pd.stores.is_led(sql.table), "PD believes in its old leader"
    assert ELECTION - 0.5 == pytest.approx(sql.seconds(lambda: sql.connection.execute(READ)), abs=0.2)


def test_no_statement_waits_for_a_store_whose_leaders_were_moved_away_first(sql: Sql) -> None:
    before = sql.leader
    (store,) = (each.id for each in sql.plane.stores() if each.address.startswith(f"{before}."))
    sql.plane.pd.stores.evict(store, sql.clock.now())
    sql.plane.advance(2)
    sql.plane.kill(before)
    assert 0.0 == sql.seconds(lambda: sql.connection.execute(READ))


@pytest.mark.slow
@pytest.mark.parametrize(("statement", "budget"), [(READ, 20.0), (WRITE, 40.0)])
def test_without_a_majority_a_statement_fails_after_the_budget_of_tidbs_back_off(
    sql: Sql, statement: str, budget: float
) -> None:
    for pod in sql.others():
        sql.plane.kill(pod)
    code, waited = sql.fails(statement)
    assert 9005 == code
    assert budget == pytest.approx(waited, abs=0.5)


def test_without_a_leader_of_pd_a_statement_fails_after_the_budget_for_a_timestamp(sql: Sql) -> None:
    sql.plane.pd.no_leader = True
    code, waited = sql.fails(READ)
    assert 9001 == code
    assert 15.0 == pytest.approx(waited, abs=0.5)
    sql.plane.pd.no_leader = False
    sql.connection.execute(READ)


@pytest.mark.slow
def test_a_leader_that_its_tidb_cannot_reach_is_no_leader(sql: Sql) -> None:
    sql.plane.inject(Fault(Trouble.BLACK_HOLE, target=f"ns/{sql.leader}", origin="ns/basic-tidb-0"))
    assert 9005 == sql.fails(READ)[0]


def test_an_error_of_the_statement_itself_comes_at_once(sql: Sql) -> None:
    assert (1146, 0.0) == sql.fails("SELECT * FROM shop.nothing")


def test_a_tidb_that_ends_finishes_transactions_and_takes_no_more(sql: Sql) -> None:
    sql.connection.execute("BEGIN")
    idle = sql.plane.connect()
    sql.plane.stop_all()
    sql.connection.execute(WRITE)
    sql.connection.execute("COMMIT")
    for connection in (sql.connection, idle):
        with pytest.raises(ConnectionLost):
            connection.execute(READ)
    with pytest.raises(ConnectionRefused):
        sql.plane.connect()
