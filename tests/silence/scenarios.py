"""Scenarios that lead to each destructive step in the sandbox, and the calls that show it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import msgspec

from apis import tso
from apis.consent import ALLOWED_FROM
from kube.objects import Json
from kube.resources import (
    BACKUP_SCHEDULES,
    BACKUPS,
    JOBS,
    NAMESPACES,
    NODES,
    PERSISTENT_VOLUME_CLAIMS,
    PODS,
    RESTORES,
    SECRETS,
    STORAGE_CLASSES,
    TIDB_CLUSTERS,
    TIDB_INITIALIZERS,
    TIDB_MONITORS,
)
from member.backups.naming import FINALIZER
from member.context import FailoverSettings, Settings
from member.initializer.desired import RUN
from member.labels import AUTO_FAILURE_RECOVERY
from ports.clock import FakeClock
from rehearsal.operator import SETTINGS
from sandbox.controllers.volumes import standard_storage_class
from sandbox.dataplane.log_backup import LogTask
from sandbox.faults import Heal, WorldFaults
from tests.controllers.dmcluster.dm_world import NAME as DM_NAME
from tests.controllers.dmcluster.dm_world import DMWorld
from tests.operator_world import NAMESPACE, OperatorWorld, sample
from tests.silence.columns import Column

Act = Callable[[OperatorWorld], object]

_PERIOD = 60.0
"""Seconds after which a lost member is replaced in the scenarios of failover."""
_HASTY = Settings(
    "tidb-operator-py:test",
    FailoverSettings(pd_period=_PERIOD, dm_master_period=_PERIOD),
    rechecks=True,
)
_WITH_MACHINES = Settings(
    "tidb-operator-py:test",
    FailoverSettings(pd_period=_PERIOD, tikv_period=_PERIOD, detect_node_failure=True),
    rechecks=True,
)
_NEW_YEAR = datetime(2026, 1, 1, tzinfo=UTC)
_REFUSED = 400
"""The lowest code of a refusal."""
_NOTICED = 60.0
"""Seconds after which Kubernetes has noticed that a node is cut off; it evicts the pods after five minutes."""


@dataclass(frozen=True, slots=True)
class Scenario:
    """A destructive step that the operator is about to take.

    `spec` is laid onto the sample. `before` brings the world to the moment at which `wish` has the operator take the
    step, and `withdraw` takes the wish back. `shows` are parts of the calls in which the step shows, as `_sent` words
    them. `pod` is the one whose node is cut off, `asked` the pods whose word the step needs, `half` the half of them.
    """

    wish: Act
    withdraw: Act
    shows: tuple[str, ...]
    pod: str
    asked: str = "basic-pd-*"
    half: str = "basic-pd-[12]"
    spec: Json = field(default_factory=dict)
    before: Act = lambda _: None
    is_dm: bool = False
    settings: Settings = SETTINGS


def made(scenario: Scenario) -> OperatorWorld:
    """The world in which the step is about to be taken."""
    kind = DMWorld if scenario.is_dm else OperatorWorld
    world = kind(clock=FakeClock(), settings=scenario.settings)
    cluster = sample("dm" if scenario.is_dm else "basic")
    for name, part in scenario.spec.items():
        cluster["spec"][name] = cluster["spec"].get(name, {}) | part if isinstance(part, dict) else part
    world.apply(cluster)
    world.run_until_ready(_name(world), within=120.0)
    scenario.before(world)
    world.forget()
    return world


def begin(world: OperatorWorld, scenario: Scenario, column: Column) -> Heal:
    """Let a silence begin, and the user request the step; returns what ends the silence.

    An old cache still shows the request, which the user has withdrawn since.
    """
    if column is Column.CACHE:
        scenario.wish(world)
        seeing = _blinded(world)
        scenario.withdraw(world)
        return seeing
    heal = silenced(world, scenario, column)
    scenario.wish(world)
    return heal


def run(world: OperatorWorld, seconds: float) -> None:
    """Run world and operator, also if syncs last so long that one follows another at once."""
    end = world.clock.now() + seconds
    while world.clock.now() < end:
        world.world.settle()
        if not world.operator.step():
            world.operator.let_pass(end)


def acts(world: OperatorWorld, scenario: Scenario) -> list[str]:
    """The calls in which the step shows, since it was about to be taken."""
    return [call for call in _sent(world) if any(part in call for part in scenario.shows)]


def _sent(world: OperatorWorld) -> list[str]:
    """The operator's writes: `verb resource name` to the API server, `METHOD /path` to servers.

    A write of replicas is `scale name`, one of a partition below the last pod `restart name`, and the removal of a
    finalizer `release name`, if it was accepted.
    """
    asked = [f"{each.method} /{each.url.split('/', 3)[3]}" for each in world.operator.dataplane.writes()]
    calls = [entry.call for entry in world.world.server.audit.recent()]
    patched = [call for call in calls if (call.resource, call.verb) == ("statefulsets.apps", "patch")]
    accepted = [entry.call for entry in world.world.server.audit.recent() if entry.code < _REFUSED]
    released = [f"release {call.name}" for call in accepted if b'"finalizers":[]' in (call.request.body or b"")]
    return [*world.writes(), *asked, *(f"{_effect(call.request.body)} {call.name}" for call in patched), *released]


def _effect(patch: bytes | None) -> str:
    """The effect of a patch on a StatefulSet of three or more pods."""
    spec = msgspec.json.decode(patch or b"{}").get("spec") or {}
    if "replicas" in spec:
        return "scale"
    strategy = spec.get("updateStrategy") or {}
    return "restart" if (strategy.get("rollingUpdate") or {}).get("partition", 3) < 3 else "patch"


def silenced(world: OperatorWorld, scenario: Scenario, column: Column) -> Heal:
    """Let any silence except an old cache begin; returns what ends it."""
    faults = world.world.faults
    match column:
        case Column.SILENT:
            return faults.network_cut(f"{NAMESPACE}/{scenario.asked}")
        case Column.SLOW:
            return faults.network_slow(10.0, f"{NAMESPACE}/{scenario.asked}")
        case Column.HALF:
            return faults.network_cut(f"{NAMESPACE}/{scenario.half}")
        case Column.MINORITY:
            return _isolated(faults, f"{NAMESPACE}/{scenario.half}")
        case Column.NODE:
            heal = faults.host_cut_off(f"{NAMESPACE}/{scenario.pod}")
            run(world, _NOTICED)
            return heal
    return faults.network_cut()


def _isolated(faults: WorldFaults, pods: str) -> Heal:
    """Cut pods off from the operator, from all servers and from each other."""
    heals = [faults.network_cut(pods, "*"), faults.network_cut("*", pods)]

    def heal() -> None:
        for each in heals:
            each()

    return heal


def _blinded(world: OperatorWorld) -> Heal:
    """The caches show the present objects, and from now on nothing new."""
    world.operator.look()
    caches = world.operator.caches.values()
    for cache in caches:
        cache.blind = True

    def seeing() -> None:
        for cache in caches:
            cache.blind = False
        world.operator.look_again()

    return seeing


def _name(world: OperatorWorld) -> str:
    return DM_NAME if isinstance(world, DMWorld) else "basic"


def _change(**spec: Any) -> Act:
    """A user merges into the spec of the cluster."""
    return lambda world: world.change(_name(world), **spec)


def _annotate(pod: str, key: str, value: str | None) -> Act:
    """A user annotates a pod."""
    patch = {"metadata": {"annotations": {f"tidb.pingcap.com/{key}": value}}}
    return lambda world: world.admin.patch(PODS, pod, NAMESPACE, patch)


def _crashing(pod: str) -> Act:
    """The server of a pod ends whenever it starts, and is to be replaced soon."""

    def crash(world: OperatorWorld) -> None:
        world.world.faults.pod_crash_loop(f"{NAMESPACE}/{pod}")
        world.run(_PERIOD * 0.8)

    return crash


def _scaled(part: str, replicas: int) -> Act:
    """Pods were scaled in, and their claims are left."""

    def scale(world: OperatorWorld) -> None:
        world.change(_name(world), **{part: {"replicas": replicas}})
        world.run(1.0)
        world.run_until_ready(_name(world), within=120.0)

    return scale


def _nothing(_: OperatorWorld) -> None:
    """The step needs no user."""


_THREE: Json = {"pd": {"replicas": 3, "maxFailoverCount": 3}, "tikv": {"replicas": 3}}
_FOUR_STORES: Json = _THREE | {"tikv": {"replicas": 4}}
_PUMP: Json = {"baseImage": "pingcap/tidb-binlog", "replicas": 2, "config": {}, "requests": {"storage": "1Gi"}}
_WARN: Json = {"config": {"log": {"level": "warn"}}}
_MASTERS: dict[str, Any] = {"asked": f"{DM_NAME}-dm-master-*", "half": f"{DM_NAME}-dm-master-[12]", "is_dm": True}

_LOST_MACHINE: Json = {
    "pd": {"replicas": 3, "maxFailoverCount": 3, "config": '[schedule]\nmax-store-down-time = "1m"\n'},
    "tikv": {"replicas": 3, "maxFailoverCount": 3},
}
_ALONE: dict[str, Any] = {"asked": "basic-pd-0", "half": "basic-pd-0"}
"""A cluster with a single PD is enough for a step that asks no server."""
_CLAIM = "tikv-basic-tikv-0"
_SLOW = "slow"
"""A StorageClass that provides no volume."""
_TSO: Json = {"name": "tso", "replicas": 2, "config": {}}
_MICROSERVICES: list[Json] = [_TSO, {"name": "scheduling", "replicas": 1}]
_NEWER: list[Json] = [_TSO | {"version": "v8.5.3"}, _MICROSERVICES[1]]


def _never_joining(world: OperatorWorld) -> None:
    """PD has added a member whose pod ends whenever it starts."""
    world.world.faults.join_interrupted(f"{NAMESPACE}/basic-pd-3")
    world.change(pd={"replicas": 4})
    world.run(45.0)


def _unready(world: OperatorWorld) -> None:
    """The last member serves, but its probe fails."""
    world.world.faults.pod_unready(f"{NAMESPACE}/basic-pd-2")
    world.run(330.0)


def _returning_nowhere(world: OperatorWorld) -> None:
    """A pod of TiKV finds no node, and no claim can be created."""
    for node in world.admin.list_page(NODES).items:
        world.admin.patch(NODES, node.metadata.name, "", {"spec": {"unschedulable": True}})
    world.admin.delete(PODS, "basic-tikv-0", NAMESPACE)
    world.run(60.0)
    world.world.faults.creation_refused(str(PERSISTENT_VOLUME_CLAIMS))


def _lose_claim(world: OperatorWorld) -> None:
    world.admin.delete(PERSISTENT_VOLUME_CLAIMS, _CLAIM, NAMESPACE)
    world.world.settle()


def _restore_claim(world: OperatorWorld) -> None:
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    world.world.faults.heal()
    world.admin.create(PERSISTENT_VOLUME_CLAIMS, {"metadata": {"name": _CLAIM}, "spec": spec}, NAMESPACE)


def _without_volume(world: OperatorWorld) -> None:
    """Pump waits for a volume of a class that provides none."""
    body = standard_storage_class() | {"metadata": {"name": _SLOW}, "provisioner": "example.com/slow"}
    world.admin.create(STORAGE_CLASSES, body)
    world.change(pump=_PUMP | {"replicas": 1, "storageClassName": _SLOW})
    world.run(30.0)


def _machine_lost(world: OperatorWorld) -> None:
    """The machine of a store is gone for good, and the failure is recorded."""
    world.world.faults.host_gone(f"{NAMESPACE}/basic-tikv-2")
    world.run(400.0)


def _recover(value: str | None) -> Act:
    """The user allows the operator to give the data of a lost machine up, or withdraws that."""
    patch = {"metadata": {"annotations": {AUTO_FAILURE_RECOVERY: value}}}
    return lambda world: world.admin.patch(TIDB_CLUSTERS, "basic", NAMESPACE, patch)


def _successor_had_its_time(world: OperatorWorld) -> None:
    """The successor of the lost pod has not brought the store back within ten minutes."""
    _machine_lost(world)
    _recover("true")(world)
    world.run(565.0)
    _recover(None)(world)
    world.run(5.0)


def _left_in_etcd(world: OperatorWorld) -> None:
    """PD's etcd has a TiDB server that is gone; the operator compares both every five minutes."""
    world.run(240.0)
    pd = world.world.data_plane.pd_cluster(NAMESPACE, "basic")
    assert pd is not None
    pd.etcd.put(b"/topology/tidb/basic-tidb-7.basic-tidb-peer.default.svc:4000/info", b"{}")


_S3: Json = {"provider": "aws", "bucket": "lab", "prefix": "full", "secretName": "keys"}
_FAR = "far"
"""A namespace with a log backup of the cluster."""


def _backup(world: OperatorWorld, name: str, spec: Json, status: Json, namespace: str = NAMESPACE, **meta: Any) -> None:
    """A Backup that another process of the operator began."""
    metadata = {"name": name, "finalizers": [FINALIZER], **meta}
    body = {"apiVersion": BACKUPS.api_version, "kind": BACKUPS.kind, "metadata": metadata}
    br = {"cluster": "basic", "clusterNamespace": NAMESPACE}
    world.admin.create(BACKUPS, body | {"spec": {"br": br, "s3": _S3} | spec}, namespace)
    world.admin.patch(BACKUPS, name, namespace, {"status": status}, subresource="")


def _new_namespace(world: OperatorWorld) -> None:
    world.admin.create(NAMESPACES, {"metadata": {"name": _FAR}})
    _add_keys(world, _FAR)


def _add_keys(world: OperatorWorld, namespace: str) -> None:
    data = {"access_key": "QUs=", "secret_key": "U0s="}
    world.admin.create(SECRETS, {"metadata": {"name": "keys"}, "data": data}, namespace)


def _saving_a_log(world: OperatorWorld) -> None:
    """The cluster saves a log for a Backup in another namespace."""
    world.admin.patch(TIDB_CLUSTERS, "basic", NAMESPACE, {"metadata": {"annotations": {ALLOWED_FROM: _FAR}}})
    _new_namespace(world)
    pd = world.world.data_plane.pd_cluster(NAMESPACE, "basic")
    assert pd is not None
    LogTask(pd.etcd, "demo", world.clock.now).begin(1)
    _backup(world, "demo", {"backupMode": "log"}, {"phase": "Running", "commitTs": "1"}, _FAR)
    world.run(5.0)


def _delete_far(world: OperatorWorld) -> None:
    world.admin.delete(NAMESPACES, _FAR)
    world.world.settle()


def _remade_log(world: OperatorWorld) -> None:
    """The namespace is gone, and the user has created it and its log backup again."""
    world.admin.patch(BACKUPS, "demo", _FAR, {"metadata": {"finalizers": None}})
    world.world.settle()
    _new_namespace(world)
    _backup(world, "demo", {"backupMode": "log"}, {"phase": "Running", "commitTs": "2"}, _FAR)


def _saving_its_log(world: OperatorWorld) -> None:
    """The cluster saves a log, of which the user may remove the beginning."""
    _add_keys(world, NAMESPACE)
    pd = world.world.data_plane.pd_cluster(NAMESPACE, "basic")
    assert pd is not None
    LogTask(pd.etcd, "demo", world.clock.now).begin(1)
    status = {"phase": "Running", "commitTs": str(tso.of_time(_NEW_YEAR)), "backupPath": "s3://lab/full"}
    _backup(world, "demo", {"backupMode": "log"}, status)
    world.run(5.0)


def _truncate(until: str | None) -> Act:
    return lambda world: world.admin.patch(BACKUPS, "demo", NAMESPACE, {"spec": {"logTruncateUntil": until}})


def _restore(world: OperatorWorld) -> None:
    body = {"apiVersion": RESTORES.api_version, "kind": RESTORES.kind, "metadata": {"name": "demo"}}
    spec = {"br": {"cluster": "basic", "clusterNamespace": NAMESPACE}, "s3": _S3}
    world.admin.create(RESTORES, body | {"spec": spec}, NAMESPACE)


def _delete_restore(world: OperatorWorld) -> None:
    world.admin.delete(RESTORES, "demo", NAMESPACE)


def _restore_failed(world: OperatorWorld) -> None:
    """A restore has failed, and the user keeps what it has left."""
    _add_keys(world, NAMESPACE)
    _restore(world)
    failed = {"type": "Failed", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}
    world.admin.patch(
        RESTORES, "demo", NAMESPACE, {"status": {"phase": "Failed", "conditions": [failed]}}, subresource=""
    )
    world.run(5.0)


def _prune(mode: str | None) -> Act:
    return lambda world: world.admin.patch(RESTORES, "demo", NAMESPACE, {"spec": {"prune": mode}})


def _delete_backup(world: OperatorWorld) -> None:
    world.admin.delete(BACKUPS, "demo", NAMESPACE)


def _saved(policy: str) -> Act:
    """A Backup is complete, and the removal of its files was announced once, for a Job that failed."""
    at = {"lastTransitionTime": "2026-01-01T00:00:00Z"}
    done = [{"type": "Complete", "status": "True"} | at, {"type": "Clean", "status": "False"} | at]

    def save(world: OperatorWorld) -> None:
        _add_keys(world, NAMESPACE)
        status = {"phase": "Complete", "conditions": done, "backupPath": "s3://lab/full", "commitTs": "1"}
        _backup(world, "demo", {"cleanPolicy": policy}, status)
        world.run(5.0)

    return save


def _clean_policy(policy: str) -> Act:
    return lambda world: world.admin.patch(BACKUPS, "demo", NAMESPACE, {"spec": {"cleanPolicy": policy}})


def _scheduled(world: OperatorWorld) -> None:
    """A schedule has made three Backups, and keeps them all."""
    spec = {"schedule": "0 3 * * *", "maxBackups": 5, "backupTemplate": {"br": {"cluster": "basic"}, "s3": _S3}}
    body = {"apiVersion": BACKUP_SCHEDULES.api_version, "kind": BACKUP_SCHEDULES.kind, "metadata": {"name": "nightly"}}
    made = world.admin.create(BACKUP_SCHEDULES, body | {"spec": spec}, NAMESPACE)
    owner = {
        **{"apiVersion": BACKUP_SCHEDULES.api_version, "kind": BACKUP_SCHEDULES.kind, "name": "nightly"},
        **{"uid": made.metadata.uid, "controller": True, "blockOwnerDeletion": True},
    }
    done = [{"type": "Complete", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}]
    for day in (1, 2, 3):
        status = {"phase": "Complete", "conditions": done, "commitTs": str(tso.of_time(_NEW_YEAR) + day)}
        time = f"2025-12-0{day}T03:00:00Z"
        _backup(
            world,
            f"nightly-2025-12-0{day}t03-00-00",
            {},
            status | {"timeStarted": time, "timeCompleted": time},
            ownerReferences=[owner],
            labels={"tidb.pingcap.com/backup-schedule": "nightly"},
            finalizers=[],
        )
    world.run(5.0)


def _keep(backups: int) -> Act:
    return lambda world: world.admin.patch(BACKUP_SCHEDULES, "nightly", NAMESPACE, {"spec": {"maxBackups": backups}})


def _initialized(world: OperatorWorld) -> None:
    """A TidbInitializer has run its SQL."""
    body = {"apiVersion": TIDB_INITIALIZERS.api_version, "kind": TIDB_INITIALIZERS.kind, "metadata": {"name": "demo"}}
    spec = {"image": "mysql", "cluster": {"name": "basic"}, "initSql": "CREATE DATABASE app;"}
    world.admin.create(TIDB_INITIALIZERS, body | {"spec": spec}, NAMESPACE)
    world.run(5.0)
    (job,) = world.admin.list_page(JOBS, NAMESPACE).items
    said = {"status": "True", "reason": "CompletionsReached", "lastTransitionTime": "2026-01-01T00:00:00Z"}
    conditions = [said | {"type": kind} for kind in ("SuccessCriteriaMet", "Complete")]
    world.admin.patch(JOBS, job.metadata.name, NAMESPACE, {"status": {"conditions": conditions}}, subresource="status")
    world.run(5.0)


def _run_again(value: str | None) -> Act:
    patch = {"metadata": {"annotations": {RUN: value}}}
    return lambda world: world.admin.patch(TIDB_INITIALIZERS, "demo", NAMESPACE, patch)


def _monitored(world: OperatorWorld) -> None:
    """A TidbMonitor has Grafana."""
    body = {"apiVersion": TIDB_MONITORS.api_version, "kind": TIDB_MONITORS.kind, "metadata": {"name": "demo"}}
    image = {"baseImage": "lab/image", "version": "v1"}
    spec = {"clusters": [{"name": "basic"}], "prometheus": image, "initializer": image, "reloader": image}
    world.admin.create(TIDB_MONITORS, body | {"spec": spec | {"grafana": image}}, NAMESPACE)
    world.run(5.0)


def _grafana(image: Json | None) -> Act:
    return lambda world: world.admin.patch(TIDB_MONITORS, "demo", NAMESPACE, {"spec": {"grafana": image}})


SCENARIOS: Mapping[str, Scenario] = {
    "pd-scale-in": Scenario(
        _change(pd={"replicas": 1}),
        _change(pd={"replicas": 3}),
        ("DELETE /pd/api/v1/members", "POST /pd/api/v1/leader", "scale basic-pd"),
        "basic-pd-2",
        spec=_THREE,
    ),
    "pd-failover": Scenario(
        _nothing,
        _nothing,
        ("DELETE /pd/api/v1/members", "delete pods", "delete persistentvolumeclaims"),
        "basic-pd-0",
        half="basic-pd-[01]",
        spec=_THREE,
        before=_crashing("basic-pd-2"),
        settings=_HASTY,
    ),
    "pd-roll": Scenario(
        _change(pd=_WARN),
        _change(pd={"config": None}),
        ("restart basic-pd", "delete pods", "POST /pd/api/v1/leader"),
        "basic-pd-1",
        spec=_THREE,
    ),
    "pd-command": Scenario(
        _annotate("basic-pd-1", "pd-transfer-leader", "delete-pod"),
        _annotate("basic-pd-1", "pd-transfer-leader", None),
        ("delete pods", "POST /pd/api/v1/leader"),
        "basic-pd-1",
        spec=_THREE,
    ),
    "pd-replace-volume": Scenario(
        _annotate("basic-pd-2", "replace-volume", "true"),
        _annotate("basic-pd-2", "replace-volume", None),
        ("DELETE /pd/api/v1/members", "delete pods", "delete persistentvolumeclaims"),
        "basic-pd-2",
        spec=_THREE,
    ),
    "tikv-scale-in": Scenario(
        _change(tikv={"replicas": 3}),
        _change(tikv={"replicas": 4}),
        ("DELETE /pd/api/v1/store/", "POST /pd/api/v1/schedulers", "scale basic-tikv"),
        "basic-tikv-3",
        spec=_FOUR_STORES,
    ),
    "tikv-roll": Scenario(
        _change(tikv=_WARN),
        _change(tikv={"config": None}),
        ("POST /pd/api/v1/schedulers", "restart basic-tikv", "delete pods"),
        "basic-tikv-1",
        spec=_THREE,
    ),
    "tikv-command": Scenario(
        _annotate("basic-tikv-1", "evict-leader", "delete-pod"),
        _annotate("basic-tikv-1", "evict-leader", None),
        ("POST /pd/api/v1/schedulers", "delete pods"),
        "basic-tikv-1",
        spec=_THREE,
    ),
    "tikv-replace-volume": Scenario(
        _annotate("basic-tikv-3", "replace-volume", "true"),
        _annotate("basic-tikv-3", "replace-volume", None),
        ("DELETE /pd/api/v1/store/", "delete pods", "delete persistentvolumeclaims"),
        "basic-tikv-3",
        spec=_FOUR_STORES,
    ),
    "tikv-scale-out": Scenario(
        _change(tikv={"replicas": 4}),
        _change(tikv={"replicas": 3}),
        ("delete persistentvolumeclaims",),
        "basic-tikv-1",
        spec=_FOUR_STORES,
        before=_scaled("tikv", 3),
    ),
    "pd-claim": Scenario(
        _change(enablePVReclaim=True),
        _change(enablePVReclaim=False),
        ("delete persistentvolumeclaims",),
        "basic-pd-1",
        spec=_THREE | {"pd": {"replicas": 5}},
        before=_scaled("pd", 3),
    ),
    "tikv-claim": Scenario(
        _change(enablePVReclaim=True),
        _change(enablePVReclaim=False),
        ("delete persistentvolumeclaims",),
        "basic-tikv-1",
        spec=_FOUR_STORES,
        before=_scaled("tikv", 3),
    ),
    "tidb-scale-in": Scenario(
        _change(tidb={"replicas": 1}),
        _change(tidb={"replicas": 2}),
        ("scale basic-tidb",),
        "basic-tidb-1",
        spec=_THREE | {"tidb": {"replicas": 2}},
    ),
    "pump-scale-in": Scenario(
        _change(pump={"replicas": 1}),
        _change(pump={"replicas": 2}),
        ("PUT /state/", "scale basic-pump"),
        "basic-pump-1",
        spec=_THREE | {"pump": _PUMP},
    ),
    "ticdc-scale-in": Scenario(
        _change(ticdc={"replicas": 1}),
        _change(ticdc={"replicas": 2}),
        ("scale basic-ticdc",),
        "basic-ticdc-1",
        "basic-ticdc-*",
        "basic-ticdc-1",
        spec=_THREE | {"ticdc": {"baseImage": "pingcap/ticdc", "replicas": 2, "config": {}}},
    ),
    "suspension": Scenario(
        _change(suspendAction={"suspendStatefulSet": True}),
        _change(suspendAction=None),
        ("delete statefulsets.apps",),
        "basic-tikv-1",
        spec=_THREE,
    ),
    "recreation": Scenario(
        _change(tikv={"requests": {"storage": "200Gi"}}),
        _change(tikv={"requests": {"storage": "1Gi"}}),
        ("delete statefulsets.apps",),
        "basic-tikv-1",
        spec=_THREE,
    ),
    "dm-master-scale-in": Scenario(
        _change(master={"replicas": 1}),
        _change(master={"replicas": 3}),
        ("DELETE /apis/v1alpha1/members/master", "PUT /apis/v1alpha1/leader", f"scale {DM_NAME}-dm-master"),
        f"{DM_NAME}-dm-master-2",
        **_MASTERS,
    ),
    "dm-master-roll": Scenario(
        _change(version="v8.5.3"),
        _change(version="v8.5.2"),
        (f"restart {DM_NAME}-dm-master", "delete pods", "PUT /apis/v1alpha1/leader"),
        f"{DM_NAME}-dm-master-1",
        **_MASTERS,
    ),
    "dm-master-failover": Scenario(
        _nothing,
        _nothing,
        ("DELETE /apis/v1alpha1/members/master", "delete pods", "delete persistentvolumeclaims"),
        f"{DM_NAME}-dm-master-0",
        **(_MASTERS | {"half": f"{DM_NAME}-dm-master-[01]"}),
        before=_crashing(f"{DM_NAME}-dm-master-2"),
        settings=_HASTY,
    ),
    "dm-worker-scale-in": Scenario(
        _change(worker={"replicas": 1}),
        _change(worker={"replicas": 2}),
        ("DELETE /apis/v1alpha1/members/worker", f"scale {DM_NAME}-dm-worker"),
        f"{DM_NAME}-dm-worker-1",
        **_MASTERS,
    ),
    "dm-worker-claim": Scenario(
        _change(enablePVReclaim=True),
        _change(enablePVReclaim=False),
        ("delete persistentvolumeclaims",),
        f"{DM_NAME}-dm-worker-0",
        **_MASTERS,
        before=_scaled("worker", 1),
    ),
    "unready-roll": Scenario(
        _change(pd=_WARN),
        _change(pd={"config": None}),
        ("restart basic-pd", "delete pods"),
        "basic-pd-2",
        spec=_THREE,
        before=_unready,
    ),
    "stray-member": Scenario(
        _nothing,
        _nothing,
        ("DELETE /pd/api/v1/members",),
        "basic-pd-3",
        spec=_THREE,
        before=_never_joining,
    ),
    "primary": Scenario(
        _change(pdms=_NEWER),
        _change(pdms=_MICROSERVICES),
        ("/primary/transfer", "restart basic-tso"),
        "basic-tso-1",
        spec=_THREE | {"pd": {"replicas": 3, "mode": "ms"}, "pdms": _MICROSERVICES},
    ),
    "orphan": Scenario(
        _lose_claim, _restore_claim, ("delete pods",), "basic-pd-0", **_ALONE, before=_returning_nowhere
    ),
    "claim-without-volume": Scenario(
        _change(pump={"storageClassName": "standard"}),
        _change(pump={"storageClassName": _SLOW}),
        ("delete persistentvolumeclaims",),
        "basic-pd-1",
        spec=_THREE,
        before=_without_volume,
    ),
    "reclaim-policy": Scenario(
        _change(pvReclaimPolicy="Delete"),
        _change(pvReclaimPolicy="Retain"),
        ("patch persistentvolumes ",),
        "basic-pd-0",
        **_ALONE,
    ),
    "topology": Scenario(
        _nothing,
        _nothing,
        ("POST /v3/kv/",),
        "basic-tidb-0",
        spec=_THREE,
        before=_left_in_etcd,
    ),
    "lost-pod": Scenario(
        _recover("true"),
        _recover(None),
        ("delete pods basic-tikv-2",),
        "basic-tikv-1",
        spec=_LOST_MACHINE,
        before=_machine_lost,
        settings=_WITH_MACHINES,
    ),
    "on-delete": Scenario(
        _change(pd=_WARN),
        _change(pd={"config": None}),
        ("restart basic-pd", "delete pods", "POST /pd/api/v1/leader"),
        "basic-pd-2",
        spec=_THREE | {"statefulSetUpdateStrategy": "OnDelete"},
    ),
    "lost-store": Scenario(
        _recover("true"),
        _recover(None),
        ("DELETE /pd/api/v1/store/",),
        "basic-tikv-1",
        spec=_LOST_MACHINE,
        before=_successor_had_its_time,
        settings=_WITH_MACHINES,
    ),
    "job": Scenario(_run_again("2"), _run_again(None), ("delete jobs",), "basic-pd-0", **_ALONE, before=_initialized),
    "log-task": Scenario(
        _delete_far,
        _remade_log,
        ("POST /v3/kv/txn", "create jobs"),
        "basic-pd-1",
        spec=_THREE,
        before=_saving_a_log,
    ),
    "log-truncation": Scenario(
        _truncate(str(tso.of_time(_NEW_YEAR) + 2**20)),
        _truncate(None),
        ("create jobs",),
        "basic-pd-1",
        spec=_THREE,
        before=_saving_its_log,
    ),
    "restore": Scenario(
        _restore,
        _delete_restore,
        ("create jobs",),
        "basic-pd-1",
        spec=_THREE,
        before=lambda world: _add_keys(world, NAMESPACE),
    ),
    "prune": Scenario(
        _prune("afterFailed"),
        _prune(None),
        ("create jobs",),
        "basic-pd-0",
        **_ALONE,
        before=_restore_failed,
    ),
    "finalizer": Scenario(
        _delete_backup,
        _clean_policy("Delete"),
        ("release demo",),
        "basic-pd-0",
        **_ALONE,
        before=_saved("Retain"),
    ),
    "files": Scenario(
        _delete_backup,
        _clean_policy("Retain"),
        ("create jobs",),
        "basic-pd-0",
        **_ALONE,
        before=_saved("Delete"),
    ),
    "expiry": Scenario(_keep(1), _keep(5), ("delete backups",), "basic-pd-0", **_ALONE, before=_scheduled),
    "without-data": Scenario(
        _grafana(None),
        _grafana({"baseImage": "lab/image", "version": "v1"}),
        ("delete services", "delete secrets", "delete configmaps"),
        "basic-pd-0",
        **_ALONE,
        before=_monitored,
    ),
}
