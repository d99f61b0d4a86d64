"""The controllers of Backups and Restores in the sandbox, in one thread on a clock that is stepped.

What pods do is played by the test.
"""

import base64
from collections.abc import Sequence
from typing import Any

from apis import log_backups
from apis.consent import ALLOWED_FROM, BY_CONSENT
from apis.crd import KINDS, definition
from apis.log_backups import LogCondition
from controllers.backup.controller import backup_controller
from controllers.backup_schedule.controller import backup_schedule_controller
from controllers.cluster_etcd import EtcdOf
from controllers.compact_backup.controller import compact_backup_controller
from controllers.controller import Controller
from controllers.restore.controller import restore_controller
from controllers.runtime import Runtime
from kube.objects import Json, condition_of
from kube.resources import BACKUPS, EVENTS, JOBS, NAMESPACES, PODS, SECRETS, SERVICE_ACCOUNTS, TIDB_CLUSTERS, Resource
from member.backups.naming import jobs_selector
from member.backups.pods import ManagerSettings
from ports.clock import FakeClock
from ports.randomness import SeededRandomness
from ports.transport import Transport
from rehearsal.operator import Operator, Wrap
from sandbox.world import World
from simulate.engine.calls import Crash
from tests.apis.backups import by_br, tree
from tests.apis.clusters import minimal
from tests.controllers.backup.write_faults import WriteFaults
from tests.dataplane.log_tasks import EtcdWorld

NAMESPACE = "lab"


def build(runtime: Runtime, etcd_of: EtcdOf) -> Sequence[Controller]:
    """The controllers, assembled as in the operator."""
    owned = runtime.informers(jobs_selector())
    resources, settings = runtime.informers(""), ManagerSettings("manager")
    return (
        backup_controller(runtime, resources, owned, settings, BY_CONSENT, etcd_of),
        restore_controller(runtime, resources, owned, settings, BY_CONSENT),
        backup_schedule_controller(runtime, resources, owned, settings),
        compact_backup_controller(runtime, resources, owned, settings, BY_CONSENT),
    )


class BackupsWorld:
    """A world without nodes, a Ready TidbCluster `basic` (`pd` is its etcd), the Secret `keys`, and the controllers."""

    def __init__(self, resource: Resource = BACKUPS) -> None:
        """`resource`: what the test is about."""
        self.resource = resource
        self.clock = FakeClock()
        crds = [definition(kind) for kind in KINDS]
        self.world = World(self.clock, SeededRandomness(1), crds=crds, nodes=())
        self.admin = self.world.client()
        self.pd = EtcdWorld(self.clock)
        self.faults = WriteFaults()
        self.operator = self.new_operator(1)
        self.admin.create(NAMESPACES, {"metadata": {"name": NAMESPACE}})
        self.admin.create(SERVICE_ACCOUNTS, {"metadata": {"name": "tidb-backup-manager"}}, NAMESPACE)
        self.add_secret("keys", access_key="AK", secret_key="SK")
        self.add_cluster()

    def stop(self) -> None:
        """End the world."""
        self.world.stop()

    def restart(self) -> None:
        """Replace the process by a new one, which remembers nothing."""
        self.operator = self.new_operator(2)

    def new_operator(self, seed: int, wrap: Wrap = lambda transport: transport) -> Operator:
        """Another process; `wrap` is put between it and Kubernetes."""

        def build_all(runtime: Runtime) -> Sequence[Controller]:
            return build(runtime, lambda _cluster: self.pd.client)

        def kubernetes(transport: Transport) -> Transport:
            return wrap(self.faults.around(transport))

        return Operator(self.world, self.clock, seed, build=build_all, kubernetes=kubernetes)

    def run(self, seconds: float = 0.0, step: float = 1.0) -> None:
        """Run the controller for this many seconds, in steps of some seconds, and then until it is idle."""
        self._work()
        end = self.clock.now() + seconds
        while self.clock.now() < end:
            self.world.advance(min(step, end - self.clock.now()))
            self._work()

    def _work(self) -> None:
        try:
            self.operator.work()
        except Crash:
            self.restart()
            self.operator.work()

    # the existing objects

    def add_secret(self, name: str, **keys: str) -> None:
        """A Secret."""
        data = {key: base64.b64encode(value.encode()).decode() for key, value in keys.items()}
        self.admin.create(SECRETS, {"metadata": {"name": name}, "data": data}, NAMESPACE)

    def add_cluster(self, name: str = "basic", *, is_ready: bool = True) -> None:
        """Create a TidbCluster without pods."""
        body = {"apiVersion": "pingcap.com/v1alpha1", "kind": "TidbCluster", "metadata": {"name": name}}
        self.admin.create(TIDB_CLUSTERS, body | {"spec": minimal()}, NAMESPACE)
        self.set_ready(name, is_ready=is_ready)

    def consent(self, *namespaces: str) -> None:
        """Let `basic` allow references from the given namespaces only."""
        annotations = {ALLOWED_FROM: ",".join(namespaces) or None}
        self.admin.patch(TIDB_CLUSTERS, "basic", NAMESPACE, {"metadata": {"annotations": annotations}})
        self.run()

    def set_ready(self, name: str = "basic", *, is_ready: bool) -> None:
        """Say whether it is Ready."""
        conditions = [{"type": "Ready", "status": str(is_ready)}]
        self.admin.patch(TIDB_CLUSTERS, name, NAMESPACE, {"status": {"conditions": conditions}}, subresource="status")

    def set_serving(self, *, members: int = 3, stores: int = 3, phase: str = "Normal") -> None:
        """Make `basic` not Ready, with this many of three PD members healthy and of three TiKV stores Up."""
        runs = {"synced": True, "phase": phase}
        pd = {
            f"basic-pd-{n}": {"name": f"basic-pd-{n}", "id": str(n), "clientURL": "", "health": n < members}
            for n in range(3)
        }
        tikv = {
            str(n): {
                **{"id": str(n), "podName": f"basic-tikv-{n}", "ip": "", "leaderCount": 0},
                "state": "Up" if n < stores else "Down",
            }
            for n in range(3)
        }
        status = {
            "conditions": [{"type": "Ready", "status": "False"}],
            "pd": runs | {"members": pd, "statefulSet": {"replicas": 3, "readyReplicas": members}},
            "tikv": runs | {"stores": tikv, "statefulSet": {"replicas": 3, "readyReplicas": stores}},
        }
        self.admin.patch(TIDB_CLUSTERS, "basic", NAMESPACE, {"status": status}, subresource="status")

    def add_tikv_pod(self, number: int, image: str) -> None:
        """A pod of TiKV that runs an image."""
        labels = {
            **{"app.kubernetes.io/name": "tidb-cluster", "app.kubernetes.io/managed-by": "tidb-operator"},
            **{"app.kubernetes.io/instance": "basic", "app.kubernetes.io/component": "tikv"},
        }
        containers = [{"name": "tikv", "image": image}]
        body = {"metadata": {"name": f"basic-tikv-{number}", "labels": labels}, "spec": {"containers": containers}}
        self.admin.create(PODS, body, NAMESPACE)

    def add(self, name: str = "demo", namespace: str = NAMESPACE, **spec: Any) -> None:
        """A Backup of a snapshot to S3, or a Restore, `spec` laid onto it (None: without); the controller sees it."""
        given = {key: value for key, value in by_br(**spec).items() if value is not None}
        body = tree(self.resource.kind, given, name=name, namespace=namespace)
        del body["status"]
        self.admin.create(self.resource, body, namespace)
        self.run()

    # Its outcome

    def backup(self, name: str = "demo") -> Json:
        """The Backup or Restore."""
        found: Json = self.admin.get(self.resource, name, NAMESPACE).decode()
        return found

    def status(self, name: str = "demo") -> Json:
        """Its status."""
        found: Json = self.backup(name).get("status") or {}
        return found

    def phase(self, name: str = "demo") -> str:
        """Its phase."""
        return str(self.status(name).get("phase") or "")

    def condition(self, kind: str, name: str = "demo") -> tuple[str, str, str]:
        """Status, reason and message of a condition; empty ones when there is none."""
        found = condition_of(self.status(name).get("conditions") or (), kind)
        return str(found.get("status") or ""), str(found.get("reason") or ""), str(found.get("message") or "")

    def exists(self, name: str = "demo") -> bool:
        """True if the Backup exists."""
        return self.admin.find(self.resource, name, NAMESPACE) is not None

    def jobs(self) -> list[str]:
        """The names of all Jobs."""
        return [each.metadata.name for each in self.admin.list_page(JOBS, NAMESPACE).items]

    def job(self, name: str = "backup-demo") -> Json:
        """A Job."""
        found: Json = self.admin.get(JOBS, name, NAMESPACE).decode()
        return found

    def events(self) -> list[tuple[str, str]]:
        """Reason and message of all events."""
        found = [each.decode() for each in self.admin.list_page(EVENTS, NAMESPACE).items]
        return [(each["reason"], each["message"]) for each in found]

    # Actions of a Job's pod

    def write(self, name: str = "demo", **status: Any) -> None:
        """Write to the status of a Backup, as `backup-manager` does."""
        self.admin.patch(self.resource, name, NAMESPACE, {"status": status})
        self.run()

    def say(self, kind: str, name: str = "demo", *, holds: bool = True, **status: Any) -> None:
        """Write a condition, which is the phase as well."""
        others = [each for each in self.status(name).get("conditions") or () if each["type"] != kind]
        said = {"type": kind, "status": str(holds), "lastTransitionTime": "2026-01-01T00:00:00Z"}
        self.write(name, phase=kind, conditions=[*others, said], **status)

    def do(self, command: str, *kinds: str, name: str = "demo", **fields: Any) -> None:
        """Write conditions of a sub-command, the fields with the last, as its pod does."""
        now, status = self.clock.wall(), self.status(name)
        for kind in kinds:
            given = fields if kind == kinds[-1] else {}
            status = log_backups.with_command(status, LogCondition(command, kind), now, given)
        self.write(name, **status)

    def end(self, name: str = "backup-demo", kind: str = "Failed", reason: str = "BackoffLimitExceeded") -> None:
        """End a Job."""
        now = self.clock.wall().strftime("%Y-%m-%dT%H:%M:%SZ")
        said = {"type": kind, "status": "True", "reason": reason, "message": "why", "lastTransitionTime": now}
        conditions = [
            said | {"type": each} for each in ("FailureTarget" if kind == "Failed" else "SuccessCriteriaMet", kind)
        ]
        self.admin.patch(JOBS, name, NAMESPACE, {"status": {"conditions": conditions}}, subresource="status")
        self.run()

    def delete(self, name: str = "demo") -> None:
        """Delete a Backup, and let the controller see it."""
        self.admin.delete(self.resource, name, NAMESPACE)
        self.run()

    def kept_from_starting(self, job: str) -> str:
        """The operator's message about the pod of a Job, which cannot start because there are no nodes."""
        pods = self.admin.list_page(PODS, NAMESPACE, label_selector=f"job-name={job}").items
        return (
            f"pod {pods[0].metadata.name}: Unschedulable: 0/0 nodes are available: no nodes.; correct that, or change "
            f"the spec of this {self.resource.kind} and delete Job {job}, which the operator then recreates"
        )

    def pods(self) -> int:
        """The number of pods."""
        return len(self.admin.list_page(PODS, NAMESPACE).items)

    def delete_namespace(self) -> None:
        """Delete the whole namespace."""
        self.admin.delete(NAMESPACES, NAMESPACE)
        self.run()
