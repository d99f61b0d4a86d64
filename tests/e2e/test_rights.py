"""Our RBAC manifests grant exactly the rights that the operator uses, and the operator names missing ones
(scheduler-deployment.md 8)."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from cli import manifests
from kube.client import Client
from kube.objects import Json
from kube.resources import SERVICE_ACCOUNTS, SERVICES, STATEFUL_SETS, TIDB_CLUSTERS
from tests.e2e import operators
from tests.e2e.gate import Gate
from tests.e2e.in_force import await_right
from tests.e2e.operators import Operator
from tests.e2e.waiting import eventually
from tests.e2e.worlds import (
    MANIFESTS,
    OPERATOR_NAMESPACE,
    SERVICE_ACCOUNT,
    Place,
    await_ready,
    create_cluster,
    sample,
)

pytestmark = [pytest.mark.slow, pytest.mark.controlplane]

Grant = tuple[str, str, str]
"""Verb, API group, resource."""


@pytest.fixture
def place(real: Place) -> Place:
    """Only the real control plane checks rights."""
    return real


def _granted(file: str) -> set[Grant]:
    documents = yaml.safe_load_all((MANIFESTS / "operator" / file).read_text())
    rules: list[Json] = [rule for document in documents if document for rule in document.get("rules", ())]
    return {
        (verb, group, resource)
        for rule in rules
        for verb in rule["verbs"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
    }


_MADE = (
    ("", "services"),
    ("", "configmaps"),
    ("", "serviceaccounts"),
    ("apps", "statefulsets"),
    ("apps", "deployments"),
    ("rbac.authorization.k8s.io", "roles"),
    ("rbac.authorization.k8s.io", "rolebindings"),
)
_SELDOM: set[Grant] = {
    # root's first password (controllers/tidbcluster/test_password.py)
    ("create", "", "secrets"),
    # where the CRD has no status subresource (test_status.py)
    ("patch", "pingcap.com", "tidbclusters"),
    # requested by the admission of owner references, not by the operator
    ("update", "pingcap.com", "tidbclusters/finalizers"),
    # a standby's; this one leads from the start
    ("watch", "coordination.k8s.io", "leases"),
    # a repeated event
    ("patch", "", "events"),
    # a pod that does not start for a while (test_causes.py)
    ("list", "", "events"),
    # Advanced StatefulSets, and the moves from and to them (test_delete_slots.py)
    *((verb, "apps.pingcap.com", "statefulsets") for verb in ("get", "list", "watch", "create", "patch", "delete")),
    *(("patch", group, "statefulsets/status") for group in ("apps", "apps.pingcap.com")),
    *((verb, "apps", "controllerrevisions") for verb in ("get", "patch", "delete")),
    # clusters with TLS
    ("get", "", "secrets"),
    # a name that was taken while the cache did not show it (F1)
    *(("get", *made) for made in _MADE),
    # a pod whose volume claim is gone, a claim that a scale-in left behind (test_housekeeping.py)
    ("get", "", "pods"),
    ("delete", "", "pods"),
    ("delete", "", "persistentvolumeclaims"),
    # a volume that is not named after its claim, until it carries our label
    ("get", "", "persistentvolumes"),
    # the node of a lost pod, with -detect-node-failure (test_failover.py)
    ("get", "", "nodes"),
    # a StatefulSet that is suspended, or recreated with larger volumes (test_suspend.py, test_volume_growth.py)
    ("delete", "apps", "statefulsets"),
    ("list", "apps", "controllerrevisions"),
    # Backups and Restores (controllers/backup/, controllers/restore/)
    ("get", "pingcap.com", "backups"),
    ("patch", "pingcap.com", "backups"),
    ("update", "pingcap.com", "backups/finalizers"),
    ("get", "pingcap.com", "restores"),
    ("patch", "pingcap.com", "restores"),
    ("update", "pingcap.com", "restores/finalizers"),
    # BackupSchedules and CompactBackups (controllers/backup_schedule/, controllers/compact_backup/)
    ("create", "pingcap.com", "backups"),
    ("delete", "pingcap.com", "backups"),
    *((verb, "pingcap.com", "compactbackups") for verb in ("get", "patch", "create", "delete")),
    ("update", "pingcap.com", "compactbackups/finalizers"),
    ("get", "pingcap.com", "backupschedules"),
    ("patch", "pingcap.com", "backupschedules"),
    ("update", "pingcap.com", "backupschedules/finalizers"),
    ("get", "batch", "jobs"),
    ("create", "batch", "jobs"),
    ("delete", "batch", "jobs"),
    ("create", "", "persistentvolumeclaims"),
    ("get", "", "namespaces"),
    # TidbInitializers (controllers/initializer/)
    ("get", "pingcap.com", "tidbinitializers"),
    ("patch", "pingcap.com", "tidbinitializers"),
    ("update", "pingcap.com", "tidbinitializers/finalizers"),
    # TidbDashboards and TidbNGMonitorings: tests of their controllers
    ("get", "pingcap.com", "tidbdashboards"),
    ("get", "pingcap.com", "tidbngmonitorings"),
    ("patch", "pingcap.com", "tidbdashboards/status"),
    ("patch", "pingcap.com", "tidbngmonitorings/status"),
    ("update", "pingcap.com", "tidbdashboards/finalizers"),
    ("update", "pingcap.com", "tidbngmonitorings/finalizers"),
    ("patch", "", "secrets"),
    # corrected after a foreign edit
    *(("patch", *made) for made in _MADE),
    # BackupSchedules and their objects (controllers/backup_schedule/)
    ("get", "pingcap.com", "compactbackups"),
    *(("patch", "pingcap.com", each) for each in ("backupschedules", "compactbackups")),
    *((verb, "pingcap.com", each) for verb in ("create", "delete") for each in ("backups", "compactbackups")),
    *(("update", "pingcap.com", f"{each}/finalizers") for each in ("backupschedules", "compactbackups")),
    # DMClusters (controllers/dmcluster/)
    ("get", "pingcap.com", "dmclusters"),
    ("patch", "pingcap.com", "dmclusters"),
    ("patch", "pingcap.com", "dmclusters/status"),
    ("update", "pingcap.com", "dmclusters/finalizers"),
    # TidbMonitors, and their obsolete objects (controllers/tidbmonitor/)
    ("get", "pingcap.com", "tidbmonitors"),
    ("patch", "pingcap.com", "tidbmonitors"),
    ("patch", "pingcap.com", "tidbmonitors/status"),
    ("update", "pingcap.com", "tidbmonitors/finalizers"),
    ("patch", "", "secrets"),
    *(("delete", *made) for made in (*_MADE, ("", "secrets"), ("networking.k8s.io", "ingresses"))),
    *((verb, "networking.k8s.io", "ingresses") for verb in ("get", "create", "patch")),
    *(
        (verb, "rbac.authorization.k8s.io", resource)
        for verb in ("get", "create", "patch", "delete")
        for resource in ("clusterroles", "clusterrolebindings")
    ),
}


def _used(gate: Gate) -> set[Grant]:
    return {(call.verb, call.group, call.resource) for call in gate.calls if call.resource}


def test_the_grants_equal_the_used_rights(place: Place, namespace: str) -> None:
    with place.gate() as gate, operators.running(place.new_log(), place.environment(gate)) as operator:
        create_cluster(place.client, sample("basic"), namespace)
        await_ready(place, operator, "basic", namespace)
        change = {"spec": {"tikv": {"replicas": 2}, "discovery": {"limits": {"memory": "128Mi"}}}}
        place.client.patch(TIDB_CLUSTERS, "basic", namespace, change)
        spoilt = {"metadata": {"labels": {"app.kubernetes.io/component": "nobody"}}}
        place.client.patch(SERVICES, "basic-pd", namespace, spoilt)
        eventually(lambda: _ready_replicas(place.client, namespace) == 2, told=lambda: operator.said[-3000:])
        gate.await_quiet()
        assert 0 == operator.stop()
    granted, used = _granted("rbac-cluster.yaml"), _used(gate)
    assert set() == used - granted
    assert set() == granted - used - _SELDOM
    assert set() == _SELDOM - granted
    assert [] == [call for call in gate.calls if call.status == 403]


def _ready_replicas(client: Client, namespace: str) -> int:
    found: int = client.get(STATEFUL_SETS, "basic-tikv", namespace).decode()["status"].get("readyReplicas", 0)
    return found


def test_both_manifests_grant_the_same_in_their_scope() -> None:
    # an operator of one namespace sees no operators in others, and gives no monitor rights in them
    of_all = {("list", "coordination.k8s.io", "leases")} | {
        (verb, "rbac.authorization.k8s.io", resource)
        for verb in ("get", "list", "watch", "create", "patch", "delete")
        for resource in ("clusterroles", "clusterrolebindings")
    }
    narrow = _granted("rbac-namespaced.yaml") | _granted("rbac-cluster-permissions.yaml")
    assert _granted("rbac-cluster.yaml") == narrow | of_all


def test_it_works_with_the_rights_of_its_namespace_only(place: Place, namespace: str, tmp_path: Path) -> None:
    file = tmp_path / "rbac.yaml"
    text = (MANIFESTS / "operator" / "rbac-namespaced.yaml").read_text()
    file.write_text(text.replace(OPERATOR_NAMESPACE, namespace))
    manifests.apply(place.client, manifests.read(file))
    await_right(place, SERVICE_ACCOUNT, TIDB_CLUSTERS, namespace)
    with (
        place.gate(namespace) as gate,
        operators.running(place.new_log(), place.environment(gate, namespace), "--cluster-scoped=false") as operator,
    ):
        create_cluster(place.client, sample("basic"), namespace)
        await_ready(place, operator, "basic", namespace)
    assert [] == [call for call in gate.calls if call.status == 403]
    assert {namespace} == {call.namespace for call in gate.calls if call.resource}


def test_an_operator_that_may_not_see_other_leases_asks_once_and_works(
    place: Place, namespace: str, tmp_path: Path
) -> None:
    """With the rights of an earlier version."""
    file = tmp_path / "rbac.yaml"
    text = (MANIFESTS / "operator" / "rbac-cluster.yaml").read_text()
    text = text.replace(OPERATOR_NAMESPACE, namespace).replace("tidb-operator:", f"{namespace}:")
    documents = list(yaml.safe_load_all(text))
    for role in (each for each in documents if each["kind"] == "ClusterRole"):
        role["rules"] = [rule for rule in role["rules"] if rule["resources"] != ["leases"]]
    file.write_text(yaml.safe_dump_all(documents))
    manifests.apply(place.client, manifests.read(file))
    await_right(place, SERVICE_ACCOUNT, TIDB_CLUSTERS, namespace)
    with (
        place.gate(namespace) as gate,
        operators.running(place.new_log(), place.environment(gate, namespace)) as operator,
    ):
        create_cluster(place.client, sample("basic"), namespace)
        await_ready(place, operator, "basic", namespace)
        assert 200 == operator.page("/readyz")[0]
        # nothing else waits for it
        eventually(lambda: _unnoticed(operator))
        assert 0 == operator.stop()
    assert ["leases"] == [call.resource for call in gate.calls if call.status == 403]
    assert 1 == len(_unnoticed(operator))


def _unnoticed(operator: Operator) -> list[dict[str, Any]]:
    return [event for event in operator.events if "operators in other namespaces go unnoticed" in event["event"]]


def test_names_a_missing_right(place: Place, namespace: str) -> None:
    body: Json = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": SERVICE_ACCOUNT}}
    place.client.create(SERVICE_ACCOUNTS, body, namespace)
    with operators.running(place.new_log(), place.environment(None, namespace)) as operator:
        refused = eventually(lambda: [e for e in operator.events if "forbidden" in str(e)])
        eventually(lambda: 'cannot list resource \\"tidbclusters\\" in API group \\"pingcap.com\\"' in operator.said)
        eventually(lambda: 'cannot get resource \\"leases\\"' in operator.said)
        assert refused
        assert 503 == operator.page("/readyz")[0]
        assert operator.is_running
