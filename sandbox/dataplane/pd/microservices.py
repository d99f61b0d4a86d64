"""PD's microservices, tso and scheduling: they register in PD, and one member of each is primary (3.4).

At most two members of tso serve: PD puts them into the key space group, and replaces one that is gone.
"""

import json
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from ports.transport import Request
from sandbox.dataplane.dependencies import Dependencies
from sandbox.dataplane.listening import Setting, ports
from sandbox.dataplane.processes import Answer, Launch, not_found, text
from sandbox.dataplane.server_process import ServerProcess

if TYPE_CHECKING:
    from sandbox.dataplane.pd.cluster import PdCluster

_PORT = 2379
LISTENS = Setting("listen-addr", "listen-addr", f"http://127.0.0.1:{_PORT}")
"""The listen address setting of a member."""
_ADVERTISED = Setting("advertise-listen-addr", "advertise-listen-addr")
_BACKENDS = Setting("backend-endpoints", "backend-endpoints", "http://127.0.0.1:2379")
_NAME = Setting("name", "name")
_GROUP_SIZE = {"tso": 2}
"""The number of members that may be primary, by microservice; all if it is not listed."""
_HEALTH, _TRANSFER = "GET /health", "POST /primary/transfer"
_WITHOUT_HEALTH = frozenset({"scheduling"})
_NO_PRIMARY = '"[PD:server:ErrLeaderNil]leader is nil"'


class Registry:
    """The members of the microservices of one PD cluster. The callers hold the data plane's lock."""

    def __init__(self) -> None:
        self._members: dict[str, list[MicroserviceProcess]] = {}
        self._groups: dict[str, list[MicroserviceProcess]] = {}
        self._primaries: dict[str, MicroserviceProcess] = {}

    def register(self, process: "MicroserviceProcess") -> None:
        """Register a member that has started."""
        self._members.setdefault(process.service, []).append(process)

    def members(self, service: str, now: float) -> "list[MicroserviceProcess]":
        """The registered members; a dead one stays until its lease expires."""
        found = [
            microservice_process
            for microservice_process in self._members.get(service, ())
            if not microservice_process.has_expired(now)
        ]
        # a member that was only partitioned registers again
        self._members[service] = [
            microservice_process
            for microservice_process in self._members.get(service, ())
            if microservice_process in found or microservice_process.exit is None
        ]
        return found

    def candidates(self, service: str, now: float) -> "list[MicroserviceProcess]":
        """The members that may be primary."""
        there = self.members(service, now)
        stay = [
            microservice_process
            for microservice_process in self._groups.get(service, ())
            if microservice_process in there
        ]
        stay += [microservice_process for microservice_process in there if microservice_process not in stay]
        self._groups[service] = stay[: _GROUP_SIZE.get(service)]
        return self._groups[service]

    def serve(self, service: str, members: "list[MicroserviceProcess]") -> None:
        """Let these members serve from now on."""
        self._groups[service] = members

    def primary(self, service: str, now: float) -> "MicroserviceProcess | None":
        """The primary; when its lease expires, the others elect another one."""
        there = self.candidates(service, now)
        current = self._primaries.get(service)
        if current is None or current not in there:
            current = next(
                (microservice_process for microservice_process in there if microservice_process.serves()), None
            )
            if current is None:
                return None
            self._primaries[service] = current
        return current if current.serves() else None

    def transfer(self, service: str, target: "MicroserviceProcess") -> None:
        """Make another member primary."""
        self._primaries[service] = target


class MicroserviceProcess(ServerProcess):
    """A `pd-server services <name>`."""

    def __init__(self, launch: Launch, deps: Dependencies) -> None:
        super().__init__(launch, deps, deps.timings.pd_start)
        self.service = launch.command[2]
        self._ports = ports(launch, (LISTENS,))
        self._cluster: PdCluster | None = None
        self._started = int(deps.clock.wall().timestamp())
        self._died_at: float | None = None

    @property
    def address(self) -> str:
        """The advertised address, which is its name before v8.3.0."""
        return _ADVERTISED.of(self._launch) or LISTENS.of(self._launch)

    @property
    def name(self) -> str:
        """Its name."""
        return _NAME.of(self._launch) or self.address

    def shown(self) -> dict[str, object]:
        """The member in PD's list."""
        version = {"version": f"v{self._launch.version}", "git-hash": "", "deploy-path": ""}
        return {"name": self.name, "service-addr": self.address, **version, "start-timestamp": self._started}

    def serves(self) -> bool:
        """True if it runs and is reachable."""
        return self.exit is None and self._deps.network.reachable(self._launch, self, self.address)

    def has_expired(self, now: float) -> bool:
        """True if its lease has expired."""
        if self.serves():
            self._died_at = None
            return False
        self._died_at = now if self._died_at is None else self._died_at
        return now >= self._died_at + self._deps.timings.microservice_lease

    def listens(self, port: int) -> bool:
        """Accept connections to its API once it is registered."""
        return self._cluster is not None and port in self._ports

    def handle(self, port: int, request: Request) -> Answer:  # noqa: ARG002
        """Answer about its health, or transfer the primary."""
        cluster, path, now = self._cluster, urlsplit(request.url).path, self._deps.clock.now()
        if cluster is None or not path.startswith(f"/{self.service}/api/v1/"):
            return Answer(not_found())
        call = f"{request.method} {path.rpartition('v1')[2]}"
        if call not in (_HEALTH, _TRANSFER) or (call == _HEALTH and self.service in _WITHOUT_HEALTH):
            return Answer(not_found())
        if self not in cluster.services.candidates(self.service, now):
            return Answer(text(503, _NO_PRIMARY))
        if call == _HEALTH:
            elected = cluster.services.primary(self.service, now) is not None
            return Answer(text(200, "ok") if elected else text(500, "no primary elected"))
        return self._transfer(cluster, request.body or b"{}", now)

    def _work(self, now: float) -> float | None:  # noqa: ARG002
        """Register once PD has a leader."""
        from sandbox.dataplane.pd.clients import find_pd  # noqa: PLC0415  # PD knows its services, and they PD

        self._cluster = find_pd(_BACKENDS.of(self._launch), self._launch, self._deps, timestamps=False)
        if self._cluster is None:
            return self._deps.timings.dependency_retry
        self._cluster.services.register(self)
        return None

    def _finish(self, now: float) -> None:
        """Return the lease; a killed member's lease expires instead."""
        self._died_at = float("-inf")
        super()._finish(now)

    def _transfer(self, cluster: "PdCluster", body: bytes, now: float) -> Answer:
        wanted = json.loads(body).get("new_primary", "")
        primary = cluster.services.primary(self.service, now)
        if primary is None:
            return Answer(text(503, _NO_PRIMARY))
        if wanted == primary.name:
            return Answer(text(200, '"success"'))
        others = [candidate for candidate in cluster.services.candidates(self.service, now) if candidate is not primary]
        target = next(
            (
                microservice_process
                for microservice_process in others
                if wanted in ("", microservice_process.name) and microservice_process.serves()
            ),
            None,
        )
        if target is None:
            return Answer(text(500, f'"no valid secondary to transfer primary, from {primary.name} to {wanted}"'))
        cluster.services.transfer(self.service, target)
        return Answer(text(200, '"success"'))
