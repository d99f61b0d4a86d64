"""A tidb-server: status, topology keys, labels, upgrade state (dataplane-apis.md 4, 6, 15.3)."""

import json
import re
from urllib.parse import urlsplit

from ports.sql import SqlRefused
from ports.transport import Request, Response
from sandbox.dataplane.dependencies import Dependencies
from sandbox.dataplane.listening import Setting, reachable_port
from sandbox.dataplane.network import Origin
from sandbox.dataplane.pd.clients import find_pd
from sandbox.dataplane.pd.cluster import PdCluster
from sandbox.dataplane.processes import Answer, Exit, Launch, not_found, text
from sandbox.dataplane.pump import pump_nodes
from sandbox.dataplane.server_process import ServerProcess
from sandbox.dataplane.server_program import ServerProgram
from sandbox.dataplane.tables import PD_TIMEOUT, Rows
from sandbox.dataplane.tls import Certificate, ServerSide

SERVER_PORT = 4000
STATUS_PORT = 10080
_PORT = (Setting("host", "host", "0.0.0.0"), Setting("P", "port", str(SERVER_PORT)))
_STATUS = (
    Setting("status-host", "status.status-host", "0.0.0.0"),
    Setting("status", "status.status-port", str(STATUS_PORT)),
)
_PD = Setting("path", "path")
_ADVERTISED = Setting("advertise-address", "advertise-address")
_REPORTS = Setting("report-status", "status.report-status", "true")
_SQL_TLS = tuple(Setting("", f"security.ssl-{file}") for file in ("ca", "cert", "key"))
_BINLOG = Setting("enable-binlog", "binlog.enable", "false")
_SET_PASSWORD = re.compile(r"SET PASSWORD FOR '(\w+)'@'%' = '((?:[^'\\]|''|\\\\)*)'")
_SET_TIFLASH_REPLICA = re.compile(r"ALTER TABLE `?(\w+)`?\.`?(\w+)`? SET TIFLASH REPLICA (\d+)", re.IGNORECASE)
_DUPLICATED = "It's a duplicated operation and the cluster is already in {} state."
_UPGRADING = b"/tidb/server/global_state"

_TEXT = r"'((?:[^'\\]|''|\\.)*)'"
_CHANGED = re.compile(rf"(CREATE|ALTER) USER (IF NOT EXISTS )?{_TEXT}@{_TEXT} IDENTIFIED BY {_TEXT}", re.IGNORECASE)
_WITHOUT_EFFECT = re.compile(r"(?:UPDATE mysql\.user SET Host|GRANT |SET GLOBAL ).*", re.IGNORECASE | re.DOTALL)
_ESCAPED = re.compile(r"''|\\(.)")
_CANNOT = 1396


class TidbProcess(ServerProcess):
    """A tidb-server behind its start script."""

    rests = True

    def __init__(self, launch: Launch, deps: Dependencies) -> None:
        super().__init__(launch, deps, deps.timings.tidb_start)
        self._port, self._status_port = _port(launch, _PORT), _port(launch, _STATUS)
        if _REPORTS.of(launch) != "true":
            self._status_port = None
        self._started = deps.clock.wall().timestamp()
        self._cluster: PdCluster | None = None
        self._lease = 0
        self._labels: dict[str, str] = {}

    def listens(self, port: int) -> bool:
        """Accept SQL and status connections once it serves."""
        return self._cluster is not None and port in (self._port, self._status_port)

    def handle(self, port: int, request: Request) -> Answer:
        """Answer on the status port."""
        if port != self._status_port:
            return Answer(not_found())
        if self._stopping_at is not None:
            return Answer(text(500, ""))
        path = urlsplit(request.url).path
        if path.startswith("/upgrade/"):
            return self._upgrade(start=path == "/upgrade/start")
        if (request.method, path) == ("POST", "/labels"):
            self._labels |= json.loads(request.body or b"{}")
            return _json(self._labels)
        if path not in ("/status", "/info"):
            return Answer(not_found())
        body = {"connections": 0, "version": self.version, "git_hash": "0" * 40, "is_owner": self._owns_ddl()}
        return _json(
            body | ({"status": {"init_stats_percentage": 100}} if path == "/status" else {"labels": self._labels})
        )

    def speaks_sql(self, port: int) -> bool:
        """True for the SQL port."""
        return port == self._port

    def sql_tls(self) -> ServerSide | None:
        """Its TLS with SQL clients, None without TLS; a client certificate is optional."""
        ca, cert, key = (self._launch.current(setting.of(self._launch)) for setting in _SQL_TLS)
        return ServerSide(Certificate(ca, cert, key), demands=False) if cert and key else None

    def login(self, user: str, password: str = "") -> tuple[int, str] | None:
        """Check a login; return MySQL's code and message if it is refused."""
        if self._users.get(user) == password:
            return None
        return 1045, f"Access denied for user '{user}'@'%' (using password: {'YES' if password else 'NO'})"

    @property
    def is_stopping(self) -> bool:
        """True once it has SIGTERM: it takes no more connections, and closes those without a transaction."""
        return self._stopping_at is not None

    def execute(self, statement: str, *, by_leaders: bool = False) -> Rows | None:
        """Execute a statement and return its result, if any. Raises SqlRefused.

        `by_leaders`: its pod must reach the leaders of PD and of the table's region, which raft has elected.
        """
        if statement == "FLUSH PRIVILEGES":
            return None
        if match := _SET_PASSWORD.fullmatch(statement):
            self._users[match[1]] = match[2].replace("''", "'").replace("\\\\", "\\")
            return None
        if self._cluster is None or not self._gets_timestamps(self._cluster, by_leaders):
            raise SqlRefused(PD_TIMEOUT, "PD server timeout")
        if is_of_users(statement):
            change_users(self._cluster.users, statement)
            return None
        if match := _SET_TIFLASH_REPLICA.fullmatch(" ".join(statement.split())):
            self._set_tiflash_replica(self._cluster, match[1], match[2], int(match[3]))
            return None
        tables = self._cluster.tables
        return (tables.through(self._reaches_leader) if by_leaders else tables).execute(statement)

    def _gets_timestamps(self, cluster: PdCluster, by_leaders: bool) -> bool:
        leader = cluster.leader
        if leader is None or not by_leaders:
            return leader is not None
        reached = leader.voter is not None and leader.voter.answers(Origin.of(self._launch))
        return reached and cluster.gives_timestamps()

    def _reaches_leader(self, region: int) -> bool:
        """True if a region has a leader, and this pod reaches it."""
        deps = self._deps
        store = self._cluster.stores.serving(region, deps.clock.now()) if self._cluster is not None else None
        return store is not None and deps.network.find(store.address, Origin.of(self._launch)) is not None

    def _set_tiflash_replica(self, cluster: PdCluster, schema: str, name: str, count: int) -> None:
        """Let PD keep replicas of a table on TiFlash, by a rule like TiDB's. Raises SqlRefused."""
        rule = f"table-{cluster.tables.table(schema, name).id}-r"
        servers = sum(store.is_tiflash and store.proto_state == 0 for store in cluster.stores.all())
        if count > servers:
            what = f"the tiflash replica count: {count} should be less than the total tiflash server count: {servers}"
            raise SqlRefused(1105, what)
        if count:
            cluster.placement.set({"group_id": "tiflash", "id": rule, "role": "learner", "count": count})
        else:
            cluster.placement.remove("tiflash", rule)
        cluster.stores.reschedule(self._deps.clock.now())

    @property
    def _users(self) -> dict[str, str]:
        return self._cluster.users if self._cluster is not None else {}

    @property
    def version(self) -> str:
        """The version that MySQL clients see."""
        return f"8.0.11-TiDB-v{self._launch.version}"

    @property
    def _topology(self) -> bytes:
        return f"/topology/tidb/{_ADVERTISED.of(self._launch)}:{SERVER_PORT}".encode()

    def _work(self, now: float) -> float:
        """Start once PD and a majority of TiKV are available, then keep the topology alive."""
        return self._refresh(now) if self._cluster is not None else self._serve(now)

    def _finish(self, now: float) -> None:
        """Deregister; a killed server's topology expires by its TTL, and its info stays."""
        self._leave(now)
        super()._finish(now)

    def _serve(self, now: float) -> float:
        """Try to start; return the seconds until the next try or the first refresh."""
        cluster = find_pd(_PD.of(self._launch), self._launch, self._deps)
        if cluster is None or not cluster.stores.majority_alive():
            return self._deps.timings.dependency_retry
        if _BINLOG.of(self._launch) == "true" and not pump_nodes(cluster.etcd, now):
            self._end(Exit(1, "no pump found in pd"))
            return self._deps.timings.dependency_retry
        self._cluster = cluster
        cluster.stores.grow(now)
        info = {
            "version": self.version,
            "git_hash": "0" * 40,
            "listening_port": SERVER_PORT,
            "status_port": STATUS_PORT,
            "deploy_path": "/",
            "start_timestamp": int(self._started),
            "labels": self._labels,
        }
        cluster.etcd.put(self._topology + b"/info", json.dumps(info, separators=(",", ":")).encode())
        return self._refresh(now)

    def _refresh(self, now: float) -> float:
        cluster, timings = self._cluster, self._deps.timings
        if cluster is None or cluster.leader is None:
            return timings.dependency_retry
        if not cluster.etcd.keep_alive(self._lease, now):
            self._lease = cluster.etcd.grant(timings.topology_lease, now)
        written = str(int(self._deps.clock.wall().timestamp() * 1e9)).encode()
        cluster.etcd.put(self._topology + b"/ttl", written, self._lease)
        return timings.topology_refresh

    def _leave(self, now: float) -> None:
        if self._cluster is not None and self._cluster.leader is not None:
            self._cluster.etcd.delete(self._topology + b"/info", b"", now)
            self._cluster.etcd.delete(self._topology + b"/ttl", b"", now)

    def _owns_ddl(self) -> bool:
        """True for the first server in the topology, which plays the DDL owner."""
        if self._cluster is None:
            return False
        alive = self._cluster.etcd.range(b"/topology/tidb/", b"/topology/tidb0", self._deps.clock.now())
        first = next((key for key, _ in alive if key.endswith(b"/ttl")), b"")
        return first == self._topology + b"/ttl"

    def _upgrade(self, start: bool) -> Answer:
        if self._cluster is None:
            return Answer(text(500, ""))
        now = self._deps.clock.now()
        upgrading = bool(self._cluster.etcd.range(_UPGRADING, b"", now))
        if upgrading == start:
            return _json(_DUPLICATED.format("upgrading" if start else "normal"))
        if start:
            self._cluster.etcd.put(_UPGRADING, b"upgrading")
        else:
            self._cluster.etcd.delete(_UPGRADING, b"", now)
        return _json("success!")


def _port(launch: Launch, settings: tuple[Setting, Setting]) -> int | None:
    """The port on which other pods reach it; None if it listens e.g. on the loopback."""
    host, port = (setting.of(launch) for setting in settings)
    return reachable_port(f"[{host}]:{port}" if ":" in host else f"{host}:{port}")


def _json(body: object) -> Answer:
    return Answer(Response(200, {"content-type": "application/json"}, json.dumps(body).encode()))


TIDB = ServerProgram(
    name="tidb",
    start=TidbProcess,
    tables=("log", "security", "status", "performance", "tikv-client", "instance", "pessimistic-txn", "experimental"),
    numbers=("port", "token-limit", "performance.max-procs", "status.status-port"),
    certificates=("security.cluster-ssl-ca", "security.cluster-ssl-cert", "security.cluster-ssl-key"),
    demands=False,
    allowed_names="security.cluster-verify-cn",
)


def is_of_users(statement: str) -> bool:
    """True if a statement is about users, or changes settings that the sandbox ignores."""
    return bool(_CHANGED.fullmatch(statement) or _WITHOUT_EFFECT.fullmatch(statement))


def change_users(users: dict[str, str], statement: str) -> None:
    """Execute `statement` if it creates a user or sets a password. Raises SqlRefused."""
    match = _CHANGED.fullmatch(statement)
    if match is None:
        return
    verb, tolerant, user, password = match[1].upper(), match[2], _plain(match[3]), _plain(match[5])
    if (user in users) is (verb == "CREATE"):
        if tolerant:
            return
        raise SqlRefused(_CANNOT, f"Operation {verb} USER failed for '{user}'@'{_plain(match[4])}'")
    users[user] = password


def _plain(text: str) -> str:
    return _ESCAPED.sub(lambda each: each[1] or "'", text)
