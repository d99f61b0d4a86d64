"""SQL clients of one cluster, and what they notice.

A client runs short transactions through the TiDB Service: BEGIN, REPLACE, SELECT and COMMIT on one of several tables.
After an error it connects again and repeats the transaction; the pauses between attempts double from 0.1 to 2 seconds,
and the budget is 30 seconds from the first attempt.
"""

import contextlib
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Protocol

from ports.clock import Clock, SystemClock
from ports.sql import SqlLogin, SqlRefused
from ports.stopping import Stop
from ports.transport import TransportError
from sandbox.dataplane.sql import SqlNetwork

BUDGET = 30.0
"""Seconds from the first attempt after which a client gives a transaction up."""
_FIRST_PAUSE, _LONGEST_PAUSE = 0.1, 2.0
TABLES = 60
"""Each has a region of its own: so many that each store leads some."""
_CLIENTS = 4
_PACE = 0.05
"""Seconds between two transactions of a client."""
_ROWS = 8
SETUP = (
    "CREATE DATABASE IF NOT EXISTS clients",
    *(f"CREATE TABLE IF NOT EXISTS clients.t{table} (id INT PRIMARY KEY, round INT)" for table in range(TABLES)),
)
"""What the clients need."""


class Connection(Protocol):
    """A connection to a TiDB."""

    def execute(self, statement: str) -> object:
        """Execute a statement. Raises SqlRefused, TransportError."""


@dataclass(slots=True)
class Noticed:
    """What clients noticed during some transactions."""

    transactions: int = 0
    errors: int = 0
    """Attempts that failed: the errors of clients that do not retry."""
    given_up: int = 0
    """Transactions that no retry within the budget completed."""
    longest: float = 0.0
    """Seconds from the first attempt to the end of the slowest transaction."""
    messages: Counter[str] = field(default_factory=Counter)
    """The errors, by their text."""

    def add(self, other: "Noticed") -> None:
        """Count other transactions too."""
        self.transactions += other.transactions
        self.errors += other.errors
        self.given_up += other.given_up
        self.longest = max(self.longest, other.longest)
        self.messages += other.messages


class SqlClient:
    """One client. `connect` opens a connection, `wait` lets time pass on `clock`."""

    def __init__(self, connect: Callable[[], Connection], clock: Clock, wait: Callable[[float], object]) -> None:
        self._connect = connect
        self._clock = clock
        self._wait = wait
        self._connection: Connection | None = None

    def transact(self, statements: Sequence[str]) -> Noticed:
        """Run one transaction with all its attempts."""
        noticed, begun, pause = Noticed(transactions=1), self._clock.now(), _FIRST_PAUSE
        while (error := self._attempt(statements)) is not None:
            noticed.errors += 1
            noticed.messages[str(error)] += 1
            if self._clock.now() - begun + pause > BUDGET:
                noticed.given_up = 1
                break
            self._wait(pause)
            pause = min(2 * pause, _LONGEST_PAUSE)
        noticed.longest = self._clock.now() - begun
        return noticed

    def _attempt(self, statements: Sequence[str]) -> SqlRefused | TransportError | None:
        """The error of one attempt; None if it succeeded."""
        try:
            self._connection = self._connection or self._connect()
            for statement in statements:
                self._connection.execute(statement)
        except (SqlRefused, TransportError) as error:
            self._connection = None
            return error
        return None


class SqlClients:
    """Clients of one cluster, each in a thread, while `running`."""

    def __init__(self, sql: SqlNetwork, login: SqlLogin) -> None:
        """`login` is at the cluster's TiDB Service."""
        self._sql = sql
        self._login = login
        self._clock = SystemClock()
        self._stop = Stop()
        self._lock = threading.Lock()
        self._noticed = Noticed()
        self._rounds = [0] * _CLIENTS
        self._working: Sequence[Future[None]] = ()

    @contextlib.contextmanager
    def running(self) -> Iterator[None]:
        """Create the tables, and let the clients work within the block."""
        connection = self._sql.connect(self._login)
        for statement in SETUP:
            connection.execute(statement)
        with ThreadPoolExecutor(_CLIENTS, thread_name_prefix="client") as threads:
            self._working = [threads.submit(self._work, number) for number in range(_CLIENTS)]
            try:
                yield
            finally:
                self._stop.set()

    @contextlib.contextmanager
    def measured(self) -> Iterator[Noticed]:
        """What the clients notice within the block; complete after it, with the transactions that had begun.

        Raises the exception with which a client has ended early.
        """
        with self._lock:
            noticed = self._noticed = Noticed()
        yield noticed
        begun = list(self._rounds)
        while any(now < before + 2 for now, before in zip(self._rounds, begun, strict=True)):
            for client in self._working:
                if client.done():
                    client.result()
            self._stop.wait(self._clock, _PACE)
        with self._lock:
            self._noticed = Noticed()

    def _work(self, number: int) -> None:
        client = SqlClient(lambda: self._sql.connect(self._login), self._clock, self._wait)
        while not self._wait(_PACE):
            at = self._rounds[number] * _CLIENTS + number
            noticed = client.transact(transaction(at % TABLES, at % _ROWS, at))
            with self._lock:
                self._noticed.add(noticed)
            self._rounds[number] += 1

    def _wait(self, seconds: float) -> bool:
        """Wait; True if the clients are to stop."""
        return self._stop.wait(self._clock, seconds)


def transaction(table: int, row: int, value: int) -> Sequence[str]:
    """The statements that write a row of a table and read the table."""
    name = f"clients.t{table}"
    return "BEGIN", f"REPLACE INTO {name} VALUES ({row}, {value})", f"SELECT COUNT(*) FROM {name}", "COMMIT"  # noqa: S608
