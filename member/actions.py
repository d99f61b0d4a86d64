"""The actions of decisions on the database and on the objects that hold its data (see `kube.actions`).

An action that destroys has a field for its evidence. The executor refuses to perform it without.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from dataplane.dm import DMMasterClient, LiveMaster, LiveWorker
from dataplane.etcd import EtcdClient
from dataplane.log_backups import Flush, LogBackupServer
from dataplane.pd import LiveMember, LiveStore, PDClient
from dataplane.pdms import PDMSClient
from dataplane.pump import LivePumpNode, PumpClient
from dataplane.sql import RootClient
from dataplane.ticdc import TiCDCClient
from dataplane.tidb import TiDBClient
from dataplane.tiproxy import TiProxyClient
from kube.actions import Action
from kube.deletion import LiveObject
from member.evidence import Evidence

T = TypeVar("T")
"""The answer of a read."""

R_co = TypeVar("R_co", covariant=True)
"""The result of an action."""


class Destructive(Action[R_co]):
    """An action that destroys; `why` is the evidence that it may."""

    __slots__ = ()

    why: Evidence


@dataclass(frozen=True, slots=True)
class Delete(Destructive[None]):
    """Delete an object in the version that was read live. An object that is already gone counts as deleted.

    Raises Conflict if it has changed since, other ApiErrors, TransportError, LeaseExpired.
    """

    seen: LiveObject
    why: Evidence
    propagation: str = ""
    grace_period_seconds: int | None = None


# PD and its stores


@dataclass(frozen=True, slots=True)
class RemoveMember(Destructive[None]):
    """Remove a member from PD. Raises Conflict if PD refuses, other DataPlaneErrors, LeaseExpired."""

    pd: PDClient
    seen: LiveMember
    why: Evidence


@dataclass(frozen=True, slots=True)
class RemoveStore(Destructive[bool]):
    """Have PD move a store's data away. The result is False if `may_go` rejects the stores that PD lists right before.

    Raises like `RemoveMember`.
    """

    pd: PDClient
    seen: LiveStore
    why: Evidence
    may_go: Callable[[Sequence[LiveStore]], bool] = lambda _listed: True


@dataclass(frozen=True, slots=True)
class KeepStore(Action[None]):
    """Cancel the removal of a store. Raises DataPlaneError, LeaseExpired."""

    pd: PDClient
    store: LiveStore


@dataclass(frozen=True, slots=True)
class EvictLeaders(Action[None]):
    """Start moving leaders away from a store. Raises DataPlaneError, LeaseExpired."""

    pd: PDClient
    store: int


@dataclass(frozen=True, slots=True)
class EndEviction(Action[None]):
    """Let leaders return to a store; `confirm` reads back that the eviction is gone. Raises like `EvictLeaders`."""

    pd: PDClient
    store: int
    confirm: bool = True


@dataclass(frozen=True, slots=True)
class TransferLeader(Action[None]):
    """Ask PD to make another member its leader. Raises DataPlaneError, LeaseExpired."""

    pd: PDClient
    to: str


@dataclass(frozen=True, slots=True)
class TransferPrimary(Action[None]):
    """Ask a PD microservice to make another member its primary. Raises like `TransferLeader`."""

    member: PDMSClient
    to: str


@dataclass(frozen=True, slots=True)
class EnablePlacementRules(Action[None]):
    """Switch placement rules on in PD. Raises like `TransferLeader`."""

    pd: PDClient


@dataclass(frozen=True, slots=True)
class SetStoreLabels(Action[None]):
    """Set labels of a store in PD. Raises like `TransferLeader`."""

    pd: PDClient
    store: int
    labels: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class EndLogTask(Action[None]):
    """End the task of a log backup, whose Backup is deleted, in PD's etcd. Raises DataPlaneError, LeaseExpired."""

    etcd: EtcdClient
    name: str


@dataclass(frozen=True, slots=True)
class FlushLogBackup(Action[Flush]):
    """Ask a TiKV to save what it holds of log backups; the result says when it has. Raises like `EvictLeaders`."""

    server: LogBackupServer


# Servers of other components


@dataclass(frozen=True, slots=True)
class RemoveMaster(Destructive[None]):
    """Remove a master from DM. Raises like `RemoveMember`."""

    masters: DMMasterClient
    seen: LiveMaster
    why: Evidence


@dataclass(frozen=True, slots=True)
class RemoveWorker(Destructive[None]):
    """Remove an offline worker from DM. Raises like `RemoveMember`."""

    masters: DMMasterClient
    seen: LiveWorker
    why: Evidence


@dataclass(frozen=True, slots=True)
class ResignMaster(Action[None]):
    """Ask a DM master to give up the leadership. Raises like `TransferLeader`."""

    master: DMMasterClient


@dataclass(frozen=True, slots=True)
class ClosePumpNode(Destructive[None]):
    """Close a Pump node: it accepts no more binlogs and goes offline once all are read. Raises like `RemoveMember`."""

    pump: PumpClient
    seen: LivePumpNode
    why: Evidence


@dataclass(frozen=True, slots=True)
class ResignOwner(Action[bool]):
    """Ask a capture to give up the ownership; False if its version cannot. Raises like `TransferLeader`."""

    server: TiCDCClient


@dataclass(frozen=True, slots=True)
class MoveTables(Action[int]):
    """Ask a capture's server to move its tables away; the result is the number left. Raises like `TransferLeader`."""

    server: TiCDCClient
    capture: str


@dataclass(frozen=True, slots=True)
class CreateChangefeed(Action[None]):
    """Ask TiCDC for a changefeed with a sink, from a TSO on, by default from now. Raises like `TransferLeader`."""

    server: TiCDCClient
    name: str
    sink: str = field(repr=False)
    begin: int = 0


@dataclass(frozen=True, slots=True)
class PauseChangefeed(Action[None]):
    """Pause a changefeed, which keeps its checkpoint. Raises like `TransferLeader`."""

    server: TiCDCClient
    name: str


@dataclass(frozen=True, slots=True)
class SetSink(Action[None]):
    """Give a paused changefeed another sink. Raises like `TransferLeader`."""

    server: TiCDCClient
    name: str
    sink: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class ResumeChangefeed(Action[None]):
    """Resume a changefeed at its checkpoint. Raises like `TransferLeader`."""

    server: TiCDCClient
    name: str


@dataclass(frozen=True, slots=True)
class PauseDDL(Action[None]):
    """Ask TiDB to pause users' DDL for an upgrade. Raises like `TransferLeader`."""

    server: TiDBClient


@dataclass(frozen=True, slots=True)
class ResumeDDL(Action[None]):
    """Ask TiDB to resume users' DDL. Raises like `TransferLeader`."""

    server: TiDBClient


@dataclass(frozen=True, slots=True)
class SetServerLabels(Action[None]):
    """Send a server the labels of its node. Raises like `TransferLeader`."""

    server: TiDBClient | TiProxyClient
    labels: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class SetRootPassword(Action[None]):
    """Set the password of TiDB's root. Raises AccessDenied if root has another one, other DataPlaneErrors."""

    server: RootClient
    password: str = field(repr=False)
