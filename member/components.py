"""The behaviour of each component, as one value; its facts are in the table in `apis.components`."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial

from apis.components import DM_CLUSTER, TIDB_CLUSTER, component_names
from kube.actions import Decision
from member import discovery
from member.context import OwnContext
from member.dm.component import DM_MASTER, DM_WORKER
from member.lifecycle import component_sync
from member.lifecycle.workload import Workload
from member.outcome import Outcome
from member.pd.component import PD
from member.pdms.component import SCHEDULING, TSO
from member.pump.component import PUMP
from member.ticdc.component import TICDC
from member.tici.component import TICI_META, TICI_WORKER
from member.tidb.component import TIDB
from member.tiflash.component import TIFLASH
from member.tikv.component import TIKV
from member.tiproxy.component import TIPROXY


@dataclass(frozen=True, slots=True)
class Behaviour:
    """The two steps of a component in a reconcile: it is observed, with reads only, and then it acts."""

    name: str
    observe: Callable[[OwnContext], Outcome]
    act: Callable[[OwnContext], Decision[Outcome]]


_DISCOVERIES = {
    TIDB_CLUSTER: Behaviour("discovery", discovery.observe, discovery.act),
    DM_CLUSTER: Behaviour("dm-discovery", discovery.observe, discovery.act),
}

_WORKLOADS: dict[str, Workload] = {
    each.name: each
    for each in (
        *(TSO, SCHEDULING, PD, TIPROXY, TIFLASH, TIKV, PUMP, TIDB, TICDC, TICI_META, TICI_WORKER),
        *(DM_MASTER, DM_WORKER),
    )
}


def workload(name: str) -> Workload:
    """The behaviour of a component that runs in a StatefulSet. Raises KeyError for any other name."""
    return _WORKLOADS[name]


def workload_names(of: str = TIDB_CLUSTER) -> tuple[str, ...]:
    """The components of a kind of cluster that run in StatefulSets, in the order of the table."""
    return tuple(filter(_WORKLOADS.__contains__, component_names(of=of)))


def workloads(of: str = TIDB_CLUSTER) -> tuple[Workload, ...]:
    """The behaviours of these components, in the order of the table."""
    return tuple(map(_WORKLOADS.__getitem__, workload_names(of)))


def behaviours(of: str = TIDB_CLUSTER) -> tuple[Behaviour, ...]:
    """All components of a kind of cluster, in the order of the table."""
    of_workloads = [
        Behaviour(own.name, partial(component_sync.observe, member=own), partial(component_sync.act, member=own))
        for own in workloads(of)
    ]
    return (_DISCOVERIES[of], *of_workloads)


@contextmanager
def with_workload(own: Workload) -> Iterator[None]:
    """Replace or add a behaviour while the block runs, for tests with their own component or a planted defect."""
    before = _WORKLOADS.get(own.name)
    _WORKLOADS[own.name] = own
    try:
        yield
    finally:
        if before is None:
            del _WORKLOADS[own.name]
        else:
            _WORKLOADS[own.name] = before
