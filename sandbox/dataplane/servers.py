"""The server programs that the sandbox has, by component."""

from collections.abc import Iterable, Mapping

from sandbox.dataplane.dm.master import DM_MASTER
from sandbox.dataplane.dm.worker import DM_WORKER
from sandbox.dataplane.pd.server import MICROSERVICES, PD
from sandbox.dataplane.pump import PUMP
from sandbox.dataplane.server_program import ServerProgram
from sandbox.dataplane.ticdc.process import TICDC
from sandbox.dataplane.tidb import TIDB
from sandbox.dataplane.tiflash import TIFLASH
from sandbox.dataplane.tikv import TIKV
from sandbox.dataplane.tiproxy import TIPROXY

SERVERS: Mapping[str, ServerProgram] = {
    each.name: each for each in (PD, *MICROSERVICES, TIPROXY, TIFLASH, TIKV, PUMP, TIDB, TICDC, DM_MASTER, DM_WORKER)
}


def by_command(additional: Iterable[ServerProgram] = ()) -> Mapping[str, ServerProgram]:
    """The programs by file name; an additional one replaces a built-in one."""
    known = {**SERVERS, **{each.name: each for each in additional}}
    return {each.command: each for each in known.values()}
