"""The executor of clusters: it also performs the actions on the database, and deletions (`member.actions`)."""

from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import Any, Protocol

from structlog.contextvars import bound_contextvars

from controllers.executor import Executor
from dataplane.log_backups import end_log_task
from kube.actions import Action
from kube.apply import Applier
from kube.client import Client
from kube.deletion import Destroyer
from kube.events import EventRecorder
from member.actions import (
    ClosePumpNode,
    CreateChangefeed,
    Delete,
    Destructive,
    EnablePlacementRules,
    EndEviction,
    EndLogTask,
    EvictLeaders,
    FlushLogBackup,
    KeepStore,
    MoveTables,
    PauseChangefeed,
    PauseDDL,
    RemoveMaster,
    RemoveMember,
    RemoveStore,
    RemoveWorker,
    ResignMaster,
    ResignOwner,
    ResumeChangefeed,
    ResumeDDL,
    SetRootPassword,
    SetServerLabels,
    SetSink,
    SetStoreLabels,
    TransferLeader,
    TransferPrimary,
)
from member.evidence import require


class Doors(Protocol):
    """What an executor writes through; a Runtime and the Dependencies of a cluster have these."""

    @property
    def client(self) -> Client: ...
    @property
    def applier(self) -> Applier: ...
    @property
    def recorder(self) -> EventRecorder: ...


def executor_of(doors: Doors) -> Executor:
    """An executor that also performs the actions on the database, and deletions."""
    return Executor(doors.applier, doors.recorder, partial(_perform, Destroyer(doors.client)))


def _perform(destroyer: Destroyer, action: Action[Any]) -> Any:  # noqa: C901, PLR0911, PLR0912  (one for each action)
    """Raises TypeError for an act that destroys without evidence, and for an unknown action."""
    with _evidence(action):
        match action:
            case Delete(seen, _, propagation, grace):
                return destroyer.delete(seen, propagation=propagation, grace_period_seconds=grace)
            case RemoveMember(pd, member, _):
                return pd.delete_member(member)
            case RemoveStore(pd, store, _, may_go):
                return pd.delete_store(store, may_go)
            case KeepStore(pd, store):
                return pd.restore_store(store)
            case EvictLeaders(pd, store_id):
                return pd.begin_evict_leaders(store_id)
            case EndEviction(pd, store_id, confirm):
                return pd.end_evict_leaders(store_id, confirm=confirm)
            case TransferLeader(pd, to):
                return pd.transfer_leader(to)
            case EnablePlacementRules(pd):
                return pd.enable_placement_rules()
            case SetStoreLabels(pd, store_id, labels):
                return pd.set_store_labels(store_id, labels)
            case TransferPrimary(microservice, to):
                return microservice.transfer_primary(to)
            case EndLogTask(etcd, name):
                return end_log_task(etcd, name)
            case FlushLogBackup(tikv):
                return tikv.begin_flush()
            case RemoveMaster(masters, master, _):
                return masters.delete_master(master)
            case RemoveWorker(masters, worker, _):
                return masters.delete_worker(worker)
            case ResignMaster(master):
                return master.evict_leader()
            case ClosePumpNode(pump, node, _):
                return pump.close(node)
            case ResignOwner(capture):
                return capture.resign_owner()
            case MoveTables(capture, capture_id):
                return capture.drain(capture_id)
            case CreateChangefeed(capture, name, sink, begin):
                return capture.create_changefeed(name, sink, begin)
            case PauseChangefeed(capture, name):
                return capture.pause_changefeed(name)
            case SetSink(capture, name, sink):
                return capture.set_sink(name, sink)
            case ResumeChangefeed(capture, name):
                return capture.resume_changefeed(name)
            case PauseDDL(tidb):
                return tidb.start_upgrade()
            case ResumeDDL(tidb):
                return tidb.finish_upgrade()
            case SetServerLabels(server, labels):
                return server.set_labels(labels)
            case SetRootPassword(sql, password):
                return sql.set_password(password)
            case _:
                raise TypeError(f"the executor cannot perform {type(action).__name__}")


def _evidence(action: Action[Any]) -> AbstractContextManager[object]:
    """Check the evidence for an act that destroys, and add it to the log lines about the act."""
    if not isinstance(action, Destructive):
        return nullcontext()
    return bound_contextvars(why=require(action.why, type(action).__name__).what)
