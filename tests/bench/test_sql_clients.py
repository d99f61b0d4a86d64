"""The clients of `make bench BENCH=clients` count what TiDB makes them notice."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from bench.sql_clients import BUDGET, SETUP, TABLES, SqlClient, SqlClients, transaction
from ports.clock import FakeClock
from ports.sql import SqlLogin, SqlRefused
from ports.transport import ConnectionLost
from sandbox.dataplane.sql import SqlNetwork
from tests.sandbox.test_sql_leaders import ELECTION, Sql


class Tidb:
    """A server whose connections fail as the test says, one answer for each statement."""

    def __init__(self, *answers: Exception | None) -> None:
        self.answers: Iterator[Exception | None] = iter(answers)
        self.connections = 0

    def connect(self) -> "Tidb":
        self.connections += 1
        return self

    def execute(self, statement: str) -> None:
        if error := next(self.answers, None):
            raise error


@pytest.fixture
def client(clock: FakeClock) -> Callable[[Tidb], SqlClient]:
    return lambda tidb: SqlClient(tidb.connect, clock, clock.step)


LOST, UNAVAILABLE = ConnectionLost("SQL", "", "the server has ended"), SqlRefused(9005, "Region is unavailable")


def test_a_retry_cures_an_error_which_a_client_without_retries_would_see(client: Callable[[Tidb], SqlClient]) -> None:
    tidb = Tidb(None, LOST, UNAVAILABLE)
    noticed = client(tidb).transact(["BEGIN", "COMMIT"])
    assert (1, 2, 0, 3) == (noticed.transactions, noticed.errors, noticed.given_up, tidb.connections)
    assert 0.1 + 0.2 == pytest.approx(noticed.longest)


def test_a_client_gives_a_transaction_up_at_the_end_of_its_budget(client: Callable[[Tidb], SqlClient]) -> None:
    noticed = client(Tidb(*[UNAVAILABLE] * 100)).transact(["BEGIN"])
    assert 1 == noticed.given_up
    assert BUDGET - 2.0 < noticed.longest <= BUDGET
    assert {str(UNAVAILABLE): noticed.errors} == noticed.messages


def test_a_connection_is_kept_while_it_works(client: Callable[[Tidb], SqlClient]) -> None:
    tidb = Tidb()
    working = client(tidb)
    assert [0, 0] == [working.transact(["BEGIN"]).errors for _ in range(2)]
    assert 1 == tidb.connections


class Broken(SqlNetwork):
    """A network whose second connection raises something unexpected: the first one creates the tables."""

    def __init__(self) -> None:
        self._answers = iter([Tidb()])

    def connect(self, login: SqlLogin) -> Any:
        if (answer := next(self._answers, None)) is None:
            raise KeyError("a defect")
        return answer


def test_a_client_that_ends_early_ends_the_measurement() -> None:
    clients = SqlClients(Broken(), SqlLogin("basic-tidb", 4000, "root"))
    with pytest.raises(KeyError, match="a defect"), clients.running(), clients.measured():
        pass


@pytest.mark.parametrize("ordinal", range(3))
def test_a_client_waits_for_the_election_of_the_leaders_of_any_store(clock: FakeClock, ordinal: int) -> None:
    sql = Sql(clock)
    for statement in SETUP:
        sql.connection.execute(statement)
    working = SqlClient(sql.plane.connect, clock, sql.plane.advance)
    sql.plane.advance(3)
    sql.plane.kill(f"basic-tikv-{ordinal}")
    noticed = [working.transact(transaction(table, 0, 1)) for table in range(TABLES)]
    assert 0 == sum(each.errors for each in noticed)
    assert ELECTION == pytest.approx(max(each.longest for each in noticed), abs=0.2)
