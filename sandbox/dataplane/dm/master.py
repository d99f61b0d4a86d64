"""A DM master: a member of a quorum with an embedded etcd, like PD (dataplane-apis.md 11, 15)."""

from sandbox.dataplane.dependencies import Dependencies
from sandbox.dataplane.dm.routes import answer
from sandbox.dataplane.listening import Setting
from sandbox.dataplane.network import Origin
from sandbox.dataplane.pd.cluster import PdCluster
from sandbox.dataplane.pd.process import Flags, Identity, PdProcess
from sandbox.dataplane.processes import Launch
from sandbox.dataplane.server_program import ServerProgram

CERTIFICATES = ("ssl-ca", "ssl-cert", "ssl-key")

_PEER_URLS = Setting("peer-urls", "peer-urls", "http://127.0.0.1:8291")
_ADDRESS = Setting("master-addr", "master-addr", "127.0.0.1:8261")
_NAME = Setting("name", "name")
_ADVERTISED_PEER_URLS = Setting("advertise-peer-urls", "advertise-peer-urls")
_ADVERTISED = Setting("advertise-addr", "advertise-addr")


def _identity(launch: Launch) -> Identity:
    peer = _ADVERTISED_PEER_URLS.of(launch) or _PEER_URLS.of(launch)
    client = f"{_scheme(launch)}://{_ADVERTISED.of(launch) or _ADDRESS.of(launch)}"
    return Identity(_NAME.of(launch) or f"dm-master-{launch.pod}", peer.partition(",")[0], client)


def _scheme(launch: Launch) -> str:
    return "https" if launch.tls is not None else "http"


_FLAGS = Flags(Setting("data-dir", "data-dir", "default.dm-master"), (_PEER_URLS, _ADDRESS), _identity)


class DMMasterProcess(PdProcess):
    """A `dm-master`."""

    def __init__(self, launch: Launch, deps: Dependencies) -> None:
        super().__init__(launch, deps, answer, _FLAGS)


def find_masters(addresses: str, launch: Launch, deps: Dependencies) -> PdCluster | None:
    """The cluster behind the addresses in a worker's arguments, if it has a reachable leader."""
    origin = Origin.of(launch)
    every = (deps.network.find(f"{_scheme(launch)}://{each}", origin) for each in addresses.split(",") if each)
    found = next((running for running in every if running is not None), None)
    process = found.process if found is not None else None
    cluster = process.cluster if isinstance(process, DMMasterProcess) else None
    leader = cluster.leader if cluster is not None else None
    if leader is None or leader.voter is None or not leader.voter.answers(origin):
        return None
    return cluster


DM_MASTER = ServerProgram(
    name="dm-master",
    file="dm-master",
    image="dm",
    start=DMMasterProcess,
    numbers=("election-ttl", "max-txn-ops", "quota-backend-bytes"),
    durations=("rpc-timeout",),
    certificates=CERTIFICATES,
)
