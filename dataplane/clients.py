"""The one object through which the operator's decisions reach the data plane. It dials only an `Address`.

Clients are cheap and created per call. The transport of each TLS identity is kept, with its connections.
"""

import threading
from collections.abc import Callable, Iterable
from functools import partial

from dataplane.addresses import Address
from dataplane.calls import Admit, Caller
from dataplane.errors import DataPlaneError
from dataplane.etcd import EtcdClient
from dataplane.grpc_calls import GrpcCalls
from dataplane.log_backups import LogBackupServer
from dataplane.mysql import MySqlConnector
from dataplane.pd import PDClient
from dataplane.pdms import PDMSClient
from dataplane.pump import PumpClient
from dataplane.shared_answers import ForgettingTransport, SharedAnswers, SharingTransport
from dataplane.sql import RootClient
from dataplane.tidb import TiDBClient
from dataplane.tiflash import TiFlashClient
from dataplane.tikv import TiKVClient
from dataplane.timeouts import AdaptiveTimeoutTransport, OneTimeoutTransport
from dataplane.tls import TlsMaterial
from ports.ageing import Ageing
from ports.clock import Clock
from ports.fencing import Fence
from ports.grpc import UnaryCalls
from ports.side_by_side import InTurn, SideBySide
from ports.sql import SqlConnector, SqlLogin
from ports.transport import Transport

MakeTransport = Callable[[TlsMaterial | None], Transport]

_IDENTITIES = 1024
"""The number of transports kept; one with a rotated certificate is evicted in time."""


class DataPlane:
    """Creates clients by URL and TLS identity. Thread-safe."""

    def __init__(
        self,
        make_transport: MakeTransport,
        fence: Fence,
        clock: Clock,
        sql: SqlConnector | None = None,
        side_by_side: SideBySide | None = None,
        *,
        grpc: UnaryCalls | None = None,
    ) -> None:
        """`make_transport` is called once per TLS identity, with None for plain HTTP, and may raise BadTlsMaterial.

        `sql` executes statements and `grpc` begins calls, by default over TCP. `side_by_side` runs independent calls,
        by default one after another.
        """
        self._sql = sql or MySqlConnector()
        self._grpc = grpc or GrpcCalls()
        self.side_by_side = side_by_side or InTurn()
        self._make_transport: MakeTransport = lambda tls: AdaptiveTimeoutTransport(make_transport(tls), clock)
        self._fence = fence
        self._clock = clock
        self._lock = threading.Lock()
        self._transports: Ageing[str, Transport] = Ageing(most=_IDENTITIES)
        self._slow: set[str] = set()
        self._sharing: DataPlane | None = None

    def for_one_reconcile(self) -> "DataPlane":
        """A view for one reconcile of one cluster: after an endpoint's first time-out it sends no more
        requests there.
        """
        answers, silent, slow = SharedAnswers(), set[str](), set[str]()

        def live(tls: TlsMaterial | None) -> Transport:
            once = OneTimeoutTransport(self._transport(tls), silent, slow, self._clock)
            return ForgettingTransport(once, answers)

        of_round = self._over(live)
        of_round._slow = slow
        # `live` instead of a method of `of_round`: a cycle would keep the answers after the reconcile
        of_round._sharing = self._over(lambda tls: SharingTransport(live(tls), answers))
        return of_round

    @property
    def sharing(self) -> "DataPlane":
        """A view that sends each read once per reconcile, for reads only. Outside a reconcile it shares nothing."""
        return self._sharing or self

    def _over(self, make_transport: MakeTransport) -> "DataPlane":
        found = DataPlane(make_transport, self._fence, self._clock, self._sql, self.side_by_side, grpc=self._grpc)
        # the wrapper below already records how long each endpoint takes
        found._make_transport = make_transport
        return found

    @property
    def slow(self) -> frozenset[str]:
        """The endpoints (`host:port`) that timed out in this reconcile, or were too slow for other clusters
        to wait on.
        """
        return frozenset(self._slow)

    def pd(self, url: Address, tls: TlsMaterial | None = None, admit: Admit | None = None) -> PDClient:
        """The PD at `url`, which may redirect to addresses that `admit` accepts. Raises BadTlsMaterial."""
        return PDClient(self._transport(tls), url, self._fence, self._clock, admit)

    def answering_pd(
        self, urls: Iterable[Address], tls: TlsMaterial | None = None, admit: Admit | None = None
    ) -> PDClient:
        """The PD at the first URL that returns its members' health, or at the first URL if none does.

        A single URL is not probed (dataplane-apis.md 2). Raises BadTlsMaterial.
        """
        candidates = [self.pd(url, tls, admit) for url in urls]
        if len(candidates) == 1:
            return candidates[0]
        return next(filter(_answers, candidates), candidates[0])

    def tikv(self, url: Address, tls: TlsMaterial | None = None) -> TiKVClient:
        """The TiKV with its status port at `url`. Raises BadTlsMaterial."""
        return TiKVClient(self._transport(tls), url, self._clock)

    def log_backup(self, url: Address, tls: TlsMaterial | None = None) -> LogBackupServer:
        """The log backup service of the TiKV with its server port at `url`."""
        return LogBackupServer(self._grpc, url, tls, self._fence)

    def tiflash(self, url: Address, tls: TlsMaterial | None = None) -> TiFlashClient:
        """The TiFlash whose proxy has its status port at `url`. Raises BadTlsMaterial."""
        return TiFlashClient(self._transport(tls), url, self._clock)

    def tidb(self, url: Address, tls: TlsMaterial | None = None) -> TiDBClient:
        """The TiDB with its status port at `url`. Raises BadTlsMaterial."""
        return TiDBClient(self._transport(tls), url, self._clock, self._fence)

    def caller(self, url: Address, tls: TlsMaterial | None = None) -> Caller:
        """A caller for clients that take one, e.g. `TiCDCClient`. Raises BadTlsMaterial."""
        return Caller(self._transport(tls), url, self._fence, self._clock)

    def root(self, login: SqlLogin) -> RootClient:
        """TiDB's SQL port, as root without a password."""
        return RootClient(self._sql, login, self._fence)

    def etcd(self, url: Address, tls: TlsMaterial | None = None) -> EtcdClient:
        """The etcd in the PD at `url`. Raises BadTlsMaterial."""
        return EtcdClient(self._transport(tls), url, self._clock, self._fence)

    def pdms(self, url: Address, service: str, tls: TlsMaterial | None = None) -> PDMSClient:
        """The PD microservice at `url`. Raises BadTlsMaterial."""
        return PDMSClient(self._transport(tls), url, service, self._clock, self._fence)

    def pump(self, url: Address, tls: TlsMaterial | None = None) -> PumpClient:
        """The Pump at `url`. Raises BadTlsMaterial."""
        return PumpClient(self._transport(tls), url, self._clock, self._fence)

    def _transport(self, tls: TlsMaterial | None) -> Transport:
        identity = tls.fingerprint if tls else ""
        with self._lock:
            return self._transports.touch(identity, partial(self._make_transport, tls)).value


def _answers(pd: PDClient) -> bool:
    try:
        # the time that PD needs to ping dead members would leave none for the next candidate (F53)
        pd.health(members=1)
    except DataPlaneError:
        return False
    return True
