"""The users' workloads by name; each is recorded once without faults and then run with a fault at every write."""

from collections.abc import Mapping
from typing import Any, TypeVar

from msgspec.structs import replace

from apis import pod_commands
from kube.resources import (
    DM_CLUSTERS,
    TIDB_CLUSTERS,
    TIDB_DASHBOARDS,
    TIDB_INITIALIZERS,
    TIDB_MONITORS,
    TIDB_NG_MONITORINGS,
)
from member import labels
from simulate.engine.other_kinds import DM, changed, deleted, made, sources
from simulate.engine.plan import Edit, Plan, World
from simulate.engine.worlds import NAME, NAMESPACE, ON_EBS, microservices, replicas_of, storage_volume
from simulate.families import backups
from simulate.families.users_data import analytic_table, changefeed

_DM_WORKERS = f"{DM_CLUSTERS}/{DM}/status/worker/members"

_Event = TypeVar("_Event", Edit, World)


def _change(at: float = 1.0, /, **spec: Any) -> Edit:
    return Edit(at=at, spec=spec)


def _annotate(pod: str, command: str, value: str) -> Edit:
    return Edit(at=1.0, target=f"pods/{NAME}-{pod}", annotations={command: value})


def _loop(pod: str, seconds: float) -> World:
    """A pod whose process crashes repeatedly."""
    return World(at=1.0, verb="pod_crash_loop", arguments={"pod": f"{NAMESPACE}/{NAME}-{pod}"}, seconds=seconds)


def _claim(size: str) -> dict[str, Any]:
    return {"resources": {"requests": {"storage": size}}}


def _replicating(name: str, seconds: float, *edits: Edit) -> Plan:
    """Captures that have tables during a change."""
    return Plan(name=name, cluster="replicating", budget=seconds, edits=edits, given=(changefeed(),))


def _of_dm(later: float, event: _Event) -> _Event:
    """The moment some seconds after DM's workers are reported."""
    return replace(event, at=None, once=_DM_WORKERS, later=later)


def _beside(name: str, seconds: float, *edits: Edit, given: tuple[World, ...] = ()) -> Plan:
    """Users' edits of another resource beside a small cluster."""
    return Plan(name=name, cluster="tiny", budget=seconds, edits=edits, given=given)


_PLANS = (
    Plan(name="bring-up", world="empty", budget=120.0),
    Plan(name="bring-up-tiny", world="empty", cluster="tiny", budget=60.0),
    Plan(name="tikv-out", budget=120.0, edits=(_change(tikv={"replicas": 4}),)),
    Plan(name="tikv-out-2", budget=150.0, edits=(_change(tikv={"replicas": 5}),)),
    Plan(name="tidb-out", budget=120.0, edits=(_change(tidb={"replicas": 4}),)),
    Plan(name="pd-out", budget=150.0, edits=(_change(pd={"replicas": 5}),)),
    Plan(name="tikv-upgrade", budget=300.0, edits=(_change(tikv={"version": "v8.5.3"}),)),
    Plan(name="pd-upgrade", budget=300.0, edits=(_change(pd={"version": "v8.5.3"}),)),
    Plan(name="tidb-upgrade", budget=300.0, edits=(_change(tidb={"version": "v8.5.3"}),)),
    Plan(name="upgrade", budget=600.0, edits=(_change(version="v8.5.3"),)),
    Plan(name="tikv-config", budget=300.0, edits=(_change(tikv={"config": {"log": {"level": "warn"}}}),)),
    Plan(name="pd-config", budget=300.0, edits=(_change(pd={"config": {"log": {"level": "warn"}}}),)),
    Plan(name="tidb-config", budget=300.0, edits=(_change(tidb={"config": {"log": {"level": "warn"}}}),)),
    Plan(name="tikv-in", cluster="wide", budget=300.0, edits=(_change(tikv={"replicas": 3}),)),
    Plan(name="pd-in", cluster="big", budget=300.0, edits=(_change(pd={"replicas": 3}),)),
    Plan(name="tidb-in", cluster="big", budget=120.0, edits=(_change(tidb={"replicas": 2}),)),
    Plan(name="pause", budget=120.0, edits=(_change(paused=True), _change(30.0, paused=False))),
    Plan(
        name="suspend-resume",
        budget=300.0,
        edits=(
            _change(suspendAction={"suspendStatefulSet": True}),
            _change(90.0, suspendAction={"suspendStatefulSet": False}),
        ),
    ),
    Plan(name="tikv-failover", cluster="brittle", budget=600.0, given=(_loop("tikv-1", 240.0),)),
    Plan(name="pd-failover", cluster="brittle", budget=600.0, given=(_loop("pd-1", 240.0),)),
    Plan(name="tidb-failover", cluster="brittle", budget=600.0, given=(_loop("tidb-1", 240.0),)),
    Plan(
        name="volume-growth",
        budget=300.0,
        edits=(_change(tikv={"requests": {"storage": "2Gi"}}),),
    ),
    Plan(name="pd-volume-growth", budget=300.0, edits=(_change(pd={"requests": {"storage": "2Gi"}}),)),
    Plan(name="tikv-other-class", cluster=ON_EBS, budget=300.0, edits=(_change(tikv={"storageClassName": "fast"}),)),
    Plan(
        name="tikv-other-class-and-size",
        cluster=ON_EBS,
        budget=300.0,
        edits=(_change(tikv={"storageClassName": "fast", "requests": {"storage": "2Gi"}}),),
    ),
    Plan(name="tikv-volume-added", budget=400.0, edits=(_change(tikv={"storageVolumes": [storage_volume("1Gi")]}),)),
    Plan(name="pd-volume-added", budget=400.0, edits=(_change(pd={"storageVolumes": [storage_volume("1Gi")]}),)),
    Plan(name="tidb-volume-removed", cluster="roomy", budget=400.0, edits=(_change(tidb={"storageVolumes": None}),)),
    Plan(
        name="tikv-in-taken-back",
        cluster="wide",
        budget=300.0,
        edits=(_change(tikv={"replicas": 3}), Edit(write=4, spec={"tikv": {"replicas": 5}})),
    ),
    Plan(
        name="tikv-upgrade-taken-back",
        budget=300.0,
        edits=(_change(tikv={"version": "v8.5.3"}), Edit(write=8, spec={"tikv": {"version": None}})),
    ),
    Plan(
        name="tikv-in-parallel",
        cluster="wide",
        budget=300.0,
        edits=(_change(tikv={"replicas": 3, "scalePolicy": {"scaleInParallelism": 2}}),),
    ),
    Plan(name="pd-replace-volume", budget=300.0, edits=(_annotate("pd-1", pod_commands.REPLACE_VOLUME, "true"),)),
    Plan(
        name="tikv-replace-volume",
        cluster="wide",
        budget=300.0,
        edits=(_annotate("tikv-1", pod_commands.REPLACE_VOLUME, "true"),),
    ),
    Plan(name="evict-leader", budget=300.0, edits=(_annotate("tikv-1", pod_commands.EVICT_LEADER, "delete-pod"),)),
    Plan(
        name="pd-transfer-leader",
        budget=300.0,
        edits=tuple(_annotate(f"pd-{ordinal}", pod_commands.PD_TRANSFER_LEADER, "delete-pod") for ordinal in range(3)),
    ),
    Plan(
        name="tikv-other-volumes",
        budget=600.0,
        edits=(_change(enablePVCReplace=True, tikv={"requests": {"storage": "512Mi"}}),),
    ),
    Plan(
        name="pd-other-volumes",
        budget=600.0,
        edits=(_change(enablePVCReplace=True, pd={"requests": {"storage": "512Mi"}}),),
    ),
    Plan(name="bring-up-tiflash", world="empty", cluster="analytic", budget=120.0),
    Plan(name="tiflash-upgrade", cluster="analytic", budget=600.0, edits=(_change(version="v8.5.3"),)),
    Plan(
        name="tiflash-out",
        cluster="analytic",
        budget=150.0,
        edits=(_change(tiflash={"replicas": 3}),),
        given=(analytic_table(1),),
    ),
    Plan(
        name="tiflash-in",
        cluster="analytic",
        budget=300.0,
        edits=(_change(10.0, tiflash={"replicas": 1}),),
        given=(analytic_table(1),),
    ),
    Plan(
        name="tiflash-to-0-and-back",
        cluster="analytic",
        budget=600.0,
        edits=(
            _change(10.0, tiflash={"replicas": 0}),
            _change(150.0, tiflash={"replicas": 1, "storageClaims": [_claim("512Mi"), _claim("2Gi")]}),
        ),
        given=(analytic_table(1, seconds=60.0),),
    ),
    Plan(
        name="tiflash-replace-volume",
        cluster="analytic",
        budget=300.0,
        edits=(_annotate("tiflash-1", pod_commands.REPLACE_VOLUME, "true"),),
        given=(analytic_table(1),),
    ),
    Plan(name="bring-up-proxied", world="empty", cluster="proxied", budget=120.0),
    Plan(name="tiproxy-out", cluster="proxied", budget=120.0, edits=(_change(tiproxy={"replicas": 4}),)),
    Plan(name="tiproxy-in", cluster="proxied", budget=120.0, edits=(_change(tiproxy={"replicas": 1}),)),
    Plan(name="tiproxy-upgrade", cluster="proxied", budget=120.0, edits=(_change(tiproxy={"version": "v1.3.1"}),)),
    Plan(
        name="tiproxy-config",
        cluster="proxied",
        budget=120.0,
        edits=(_change(tiproxy={"config": {"log": {"level": "warn"}}}),),
    ),
    Plan(name="pump-bring-up", world="empty", cluster="binlog", budget=60.0),
    Plan(name="pump-upgrade", cluster="binlog", budget=120.0, edits=(_change(pump={"version": "v8.5.3"}),)),
    Plan(
        name="pump-out-in",
        cluster="binlog",
        budget=180.0,
        edits=(_change(pump={"replicas": 3}), _change(60.0, pump={"replicas": 1})),
    ),
    Plan(name="password", world="empty", cluster="password", budget=60.0),
    Plan(name="pdms-bring-up", world="empty", cluster="micro", budget=60.0),
    Plan(
        name="pdms-upgrade-out-in",
        cluster="micro",
        budget=240.0,
        edits=(
            _change(pdms=microservices(tso=2, scheduling=1, version="v8.5.3")),
            _change(60.0, pdms=microservices(tso=3, scheduling=2, version="v8.5.3")),
            _change(120.0, pdms=microservices(tso=1, scheduling=1, version="v8.5.3")),
        ),
    ),
    Plan(name="pdms-mode-ends", cluster="micro", budget=180.0, edits=(_change(pd={"mode": ""}),)),
    Plan(name="bring-up-replicating", world="empty", cluster="replicating", budget=120.0),
    _replicating("ticdc-out", 120.0, _change(10.0, ticdc={"replicas": 5})),
    _replicating("ticdc-in", 120.0, _change(10.0, ticdc={"replicas": 1})),
    _replicating("ticdc-upgrade", 150.0, _change(10.0, ticdc={"version": "v8.5.3"})),
    _replicating("ticdc-config", 150.0, _change(10.0, ticdc={"config": {"sorter": {"max-memory-percentage": 5}}})),
    Plan(name="bring-up-searching", world="empty", cluster="searching", budget=180.0),
    Plan(name="tici-out", cluster="searching", budget=150.0, edits=(_change(tici={"worker": {"replicas": 4}}),)),
    Plan(name="tici-in", cluster="searching", budget=150.0, edits=(_change(tici={"worker": {"replicas": 1}}),)),
    Plan(
        name="tici-upgrade",
        cluster="searching",
        budget=300.0,
        edits=(_change(tici={"meta": {"version": "v9.0.1"}, "worker": {"version": "v9.0.1"}}),),
    ),
    Plan(
        name="tici-new-keys",
        cluster="searching",
        budget=180.0,
        edits=(_change(tici={"s3": {"secretKey": "new"}}),),
    ),
    Plan(
        name="suspend-resume-searching",
        cluster="searching",
        budget=400.0,
        edits=(
            _change(suspendAction={"suspendStatefulSet": True}),
            _change(150.0, suspendAction=None),
        ),
    ),
    Plan(name="bring-up-complete", world="empty", cluster="complete", budget=180.0),
    Plan(name="upgrade-complete", cluster="complete", budget=900.0, edits=(_change(version="v8.5.3"),)),
    Plan(
        name="suspend-resume-complete",
        cluster="complete",
        budget=300.0,
        edits=(
            _change(suspendAction={"suspendStatefulSet": True}),
            _change(90.0, suspendAction={"suspendStatefulSet": False}),
        ),
    ),
    Plan(name="bring-up-tls", world="empty", cluster="tls", budget=120.0),
    Plan(name="tls-upgrade", cluster="tls", budget=300.0, edits=(_change(version="v8.5.3"),)),
    Plan(
        name="tls-out-in",
        cluster="tls",
        budget=300.0,
        edits=(
            _change(pd={"replicas": 5}, tikv={"replicas": 4}),
            _change(60.0, pd={"replicas": 3}, tikv={"replicas": 3}),
        ),
    ),
    Plan(name="upgrade-complete-tls", cluster="complete-tls", budget=900.0, edits=(_change(version="v8.5.3"),)),
    Plan(
        name="neighbours-upgrade",
        cluster="tiny",
        budget=120.0,
        edits=(_change(version="v8.5.3"), Edit(at=1.0, neighbour="elsewhere/basic", spec={"tikv": {"replicas": 2}})),
        neighbours={"default/basic-2": "tiny", "elsewhere/basic": "tiny"},
    ),
    Plan(
        name="joined-bring-up",
        world="empty",
        cluster="tiny",
        budget=60.0,
        neighbours={"default/guest": "tiny", "elsewhere/stores": "stores"},
        joined=("default/guest", "elsewhere/stores"),
    ),
    Plan(
        name="joined-upgrade",
        cluster="small",
        budget=240.0,
        edits=(_change(version="v8.5.3"), Edit(at=1.0, neighbour="default/guest", spec={"version": "v8.5.3"})),
        neighbours={"default/guest": "tiny"},
        joined=("default/guest",),
    ),
    Plan(
        name="joined-leaves",
        cluster="small",
        budget=180.0,
        edits=(_change(tidb={"replicas": 0}, tikv={"replicas": 0}, pd={"replicas": 0}),),
        neighbours={"default/guest": "small"},
        joined=("default/guest",),
    ),
    Plan(
        name="backup-restore",
        cluster="tiny",
        budget=120.0,
        edits=(backups.account(), backups.backup(1.0), backups.restore(45.0)),
        given=(backups.data(), backups.statements(40.0, "DROP DATABASE shop")),
    ),
    Plan(
        name="backup-deleted",
        cluster="tiny",
        budget=120.0,
        edits=(
            backups.account(),
            backups.backup(1.0, cleanPolicy="Delete"),
            Edit(at=40.0, delete="backups.pingcap.com/demo"),
            backups.backup(45.0, "next", "demo"),
        ),
        given=(backups.data(),),
    ),
    _beside(
        "log-backup",
        200.0,
        backups.account(),
        backups.backup(1.0, backupMode="log"),
        backups.told(40.0, logSubcommand="log-pause"),
        backups.told(70.0, logSubcommand="log-start"),
        backups.told(100.0, logSubcommand="log-stop"),
        given=(backups.data(),),
    ),
    _beside(
        "log-backup-deleted",
        150.0,
        backups.account(),
        backups.backup(1.0, backupMode="log", cleanPolicy="Delete"),
        Edit(at=60.0, delete="backups.pingcap.com/demo"),
        given=(backups.data(),),
    ),
    _beside("dm-bring-up", 90.0, made(1.0, DM_CLUSTERS)),
    _beside(
        "dm-upgrade-in",
        240.0,
        made(1.0, DM_CLUSTERS),
        _of_dm(20.0, changed(0.0, DM_CLUSTERS, version="v8.5.3", master={"replicas": 1}, worker={"replicas": 1})),
        given=(_of_dm(10.0, sources(0.0, "orders")),),
    ),
    _beside(
        "dm-out",
        150.0,
        made(1.0, DM_CLUSTERS),
        _of_dm(20.0, changed(0.0, DM_CLUSTERS, master={"replicas": 5}, worker={"replicas": 4})),
        given=(_of_dm(10.0, sources(0.0, "orders", "clients")),),
    ),
    _beside(
        "dm-suspend-resume",
        240.0,
        made(1.0, DM_CLUSTERS),
        _of_dm(20.0, changed(0.0, DM_CLUSTERS, suspendAction={"suspendStatefulSet": True})),
        _of_dm(80.0, changed(0.0, DM_CLUSTERS, suspendAction={"suspendStatefulSet": False})),
        given=(_of_dm(10.0, sources(0.0, "orders")),),
    ),
    _beside("dm-made-again", 180.0, made(1.0, DM_CLUSTERS), deleted(60.0, DM_CLUSTERS), made(90.0, DM_CLUSTERS)),
    _beside("monitor", 90.0, made(1.0, TIDB_MONITORS)),
    _beside("initializer", 60.0, made(1.0, TIDB_INITIALIZERS)),
    _beside("dashboard", 60.0, made(1.0, TIDB_DASHBOARDS)),
    _beside("ng-monitoring", 60.0, made(1.0, TIDB_NG_MONITORINGS)),
    Plan(
        name="made-again",
        budget=300.0,
        edits=(Edit(at=1.0, delete=f"{TIDB_CLUSTERS}/{NAME}"), Edit(at=60.0, create="small")),
    ),
    Plan(
        name="restarted",
        budget=600.0,
        edits=(
            _change(**{replica: {"annotations": {labels.RESTARTED_AT: "now"}} for replica in replicas_of("small")}),
        ),
    ),
    Plan(name="service-label", budget=60.0, edits=(_change(tidb={"service": {"labels": {"team": "a"}}}),)),
)

WORKLOADS: Mapping[str, Plan] = {plan.name: plan for plan in _PLANS}
