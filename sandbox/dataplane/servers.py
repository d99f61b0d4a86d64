"""The server programs that the sandbox has, by component."""

from collections.abc import Iterable, Mapping
from dataclasses import replace

from sandbox.dataplane.dependencies import Dependencies
from sandbox.dataplane.dm.master import DM_MASTER
from sandbox.dataplane.dm.worker import DM_WORKER
from sandbox.dataplane.pd.microservices import LISTENS, MicroserviceProcess
from sandbox.dataplane.pd.process import URLS, PdProcess
from sandbox.dataplane.pd.routes import answer
from sandbox.dataplane.processes import Launch, Process
from sandbox.dataplane.pump import PUMP
from sandbox.dataplane.server_program import ServerProgram
from sandbox.dataplane.ticdc.process import TICDC
from sandbox.dataplane.tici import TICI_META, TICI_WORKER
from sandbox.dataplane.tidb import TIDB
from sandbox.dataplane.tiflash import TIFLASH
from sandbox.dataplane.tikv import TIKV
from sandbox.dataplane.tiproxy import TIPROXY


def _start(launch: Launch, deps: Dependencies) -> Process:
    """A member of PD or of a microservice, depending on the arguments."""
    if launch.command[1:2] == ("services",) and launch.command[2:3] != ("api",):
        return MicroserviceProcess(launch, deps)
    return PdProcess(launch, deps, answer)


PD = ServerProgram(
    name="pd",
    file="pd-server",
    image="pd",
    start=_start,
    tables=("log", "schedule", "replication", "security", "pd-server", "dashboard", "metric"),
    numbers=("lease", "replication.max-replicas", "schedule.leader-schedule-limit", "schedule.region-schedule-limit"),
    durations=("schedule.max-store-down-time",),
    certificates=("security.cacert-path", "security.cert-path", "security.key-path"),
    urls=(*URLS, LISTENS),
    allowed_names="security.cert-allowed-cn",
)


MICROSERVICES = (replace(PD, name="tso"), replace(PD, name="scheduling"))
"""Microservices use the same file and image."""

SERVERS: Mapping[str, ServerProgram] = {
    server.name: server
    for server in (
        PD,
        *MICROSERVICES,
        TIPROXY,
        TIFLASH,
        TIKV,
        PUMP,
        TIDB,
        TICDC,
        TICI_META,
        TICI_WORKER,
        DM_MASTER,
        DM_WORKER,
    )
}


def by_command(additional: Iterable[ServerProgram] = ()) -> Mapping[str, ServerProgram]:
    """The programs by file name; an additional one replaces a built-in one."""
    known = {**SERVERS, **{server.name: server for server in additional}}
    return {server.command: server for server in known.values()}
