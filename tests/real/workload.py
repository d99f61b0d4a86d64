"""SQL transactions during a test: transfers between accounts, whose sum never changes."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import pymysql
from pymysql.connections import Connection

from ports.clock import SystemClock
from ports.stopping import Stop
from tests.real.clusters import RealCluster

ACCOUNTS = 10
_FIRST = 100
_PORT = 4000
_BETWEEN = 0.05
_TIMEOUT = 20.0


class Workload:
    """Transfers by one client, which connects again after an error."""

    def __init__(self, cluster: RealCluster) -> None:
        self._cluster = cluster
        self.acknowledged = 0
        """Transfers whose commit the server has confirmed."""

    def prepare(self) -> None:
        """Create the accounts."""
        with connected(self._cluster) as client, client.cursor() as cursor:
            cursor.execute("CREATE DATABASE IF NOT EXISTS bank")
            cursor.execute("CREATE TABLE bank.account (id INT PRIMARY KEY, balance INT)")
            cursor.execute("CREATE TABLE bank.transfer (id BIGINT PRIMARY KEY)")
            cursor.executemany("INSERT INTO bank.account VALUES (%s, %s)", [(n, _FIRST) for n in range(ACCOUNTS)])
            client.commit()

    def run(self, stop: Stop) -> None:
        """Transfer until `stop` is set."""
        clock = SystemClock()
        number = 0
        while not stop.is_set():
            with suppress(pymysql.MySQLError, OSError), connected(self._cluster) as client:
                while not stop.is_set():
                    number += 1
                    self._transfer(client, number)
                    stop.wait(clock, _BETWEEN)
            stop.wait(clock, _BETWEEN)

    def check(self) -> None:
        """No money has appeared or vanished, and no confirmed transfer is missing. Raises AssertionError."""
        with connected(self._cluster) as client, client.cursor() as cursor:
            cursor.execute("SELECT (SELECT SUM(balance) FROM bank.account), (SELECT COUNT(*) FROM bank.transfer)")
            total, transfers = cursor.fetchone() or (0, 0)
        assert (ACCOUNTS * _FIRST, True) == (int(total), int(transfers) >= self.acknowledged > 0)

    def _transfer(self, client: Connection, number: int) -> None:
        source, target = number % ACCOUNTS, (number + 1) % ACCOUNTS
        with client.cursor() as cursor:
            cursor.execute("UPDATE bank.account SET balance = balance - 1 WHERE id = %s", (source,))
            cursor.execute("UPDATE bank.account SET balance = balance + 1 WHERE id = %s", (target,))
            cursor.execute("INSERT INTO bank.transfer VALUES (%s)", (number,))
        client.commit()
        self.acknowledged += 1


@contextmanager
def connected(cluster: RealCluster) -> Iterator[Connection]:
    """A connection to a TiDB pod. Raises OSError, MySQLError."""
    for pod in cluster.pods("tidb").values():
        with suppress(OSError):
            address = pod.get("status", {}).get("podIP", "")
            way = cluster.world.server.dial(address, _PORT)
            way.settimeout(_TIMEOUT)
            client = pymysql.connect(user="root", host=address, defer_connect=True)
            client.connect(way)
            try:
                yield client
            finally:
                client.close()
            return
    raise ConnectionRefusedError("no TiDB answers")


@contextmanager
def transferring(cluster: RealCluster) -> Iterator[Workload]:
    """A workload during the block, which is checked behind it."""
    workload, stop = Workload(cluster), Stop()
    workload.prepare()
    thread = threading.Thread(target=workload.run, args=(stop,), name="workload")
    thread.start()
    try:
        yield workload
    finally:
        stop.set()
        thread.join()
    workload.check()
