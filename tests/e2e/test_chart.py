"""Helm installs, upgrades, rolls back and uninstalls the chart; clusters keep running (scheduler-deployment.md 9,
12.1).

The pods of the Deployment are processes with the rights of the ServiceAccount that the chart makes.
"""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from kube.client import Client
from kube.objects import Json
from kube.resources import (
    CLUSTER_ROLES,
    CUSTOM_RESOURCE_DEFINITIONS,
    DEPLOYMENTS,
    NAMESPACES,
    PODS,
    ROLE_BINDINGS,
    SERVICE_ACCOUNTS,
)
from tests.chart import v16
from tests.chart.helm import CHART, Helm
from tests.e2e.guides import KUBECTL
from tests.e2e.in_force import await_right
from tests.e2e.waiting import eventually
from tests.e2e.worlds import Place, conditions, create_cluster, exists, is_ready, sample

pytestmark = [pytest.mark.slow, pytest.mark.controlplane]

_DEPLOYMENT, _SCHEDULER = "tidb-controller-manager", "tidb-scheduler"
_KINDS = {"Deployment", "ConfigMap", "NetworkPolicy", "PodDisruptionBudget", "Service", "FlowSchema", "RoleBinding"}


@pytest.fixture
def place(real: Place) -> Place:
    """Helm needs a real control plane."""
    return real


@pytest.fixture
def helm(place: Place, tmp_path: Path) -> Helm:
    """Helm as admin."""
    return Helm(tmp_path, place.admin)


class _Release:
    """A release, called as its namespace."""

    def __init__(self, helm: Helm, name: str) -> None:
        self._helm = helm
        self.name = name

    def __call__(self, verb: str, *arguments: str) -> str:
        """Run a command about a release, which must succeed; returns its output."""
        return self._helm.succeed(verb, self.name, *arguments, f"--namespace={self.name}")


@pytest.fixture
def release(helm: Helm, namespace: str, place: Place) -> Iterator[_Release]:
    """A release that is gone afterwards, with its objects of no namespace."""
    yield _Release(helm, namespace)
    helm.run("uninstall", namespace, f"--namespace={namespace}", "--ignore-not-found", "--wait")
    _await_no_pod(place.client, namespace)


def _await_no_pod(client: Client, namespace: str) -> None:
    """Helm waits for Deployments, not for their pods; and it deletes the pods of its tests itself."""
    labels = "app.kubernetes.io/name=tidb-operator"
    eventually(lambda: not client.list_page(PODS, namespace, label_selector=labels).items)


def _arguments(client: Client, namespace: str) -> list[str]:
    deployment = client.get(DEPLOYMENTS, _DEPLOYMENT, namespace).decode()
    found: list[str] = deployment["spec"]["template"]["spec"]["containers"][0]["args"]
    return found


def _pods_of_cluster(client: Client, namespace: str) -> dict[str, tuple[str, int]]:
    """UID and restarts of each pod of the cluster."""
    pods = client.list_page(PODS, namespace, label_selector="app.kubernetes.io/managed-by=tidb-operator").items
    trees: list[Json] = [pod.decode() for pod in pods]
    return {
        tree["metadata"]["name"]: (
            tree["metadata"]["uid"],
            sum(status["restartCount"] for status in tree["status"].get("containerStatuses", ())),
        )
        for tree in trees
    }


def _await_ready(client: Client, namespace: str) -> None:
    eventually(lambda: is_ready(client, "basic", namespace), 40.0, lambda: conditions(client, "basic", namespace))


@pytest.mark.rule("scheduler-deployment-9")
def test_a_cluster_runs_on_through_upgrade_rollback_and_uninstall(
    place: Place, namespace: str, helm: Helm, release: _Release
) -> None:
    client = place.client
    missing = "compactbackups.pingcap.com"
    client.delete(CUSTOM_RESOURCE_DEFINITIONS, missing)
    eventually(lambda: not exists(client, CUSTOM_RESOURCE_DEFINITIONS, missing))

    refused = helm.run("install", namespace, str(CHART), f"--namespace={namespace}", "--skip-crds")
    assert f"definitions that are missing: {missing}: " in refused.stderr
    notes = release("install", str(CHART), "--wait")
    assert f"helm test {namespace} -n {namespace}" in notes
    assert "are not those of this version" not in notes
    assert exists(client, CUSTOM_RESOURCE_DEFINITIONS, missing)
    create_cluster(client, sample("basic"), namespace)
    _await_ready(client, namespace)
    before = _pods_of_cluster(client, namespace)
    assert before
    assert {0} == {restarts for _, restarts in before.values()}

    release(
        "upgrade",
        str(CHART),
        "--set=controllerManager.workers=7,controllerManager.replicas=2,controllerManager.shards=2",
        "--wait",
    )
    assert "-workers=7" in _arguments(client, namespace)
    assert "Succeeded" in release("test")
    release("rollback", "1", "--wait")
    assert "-workers=5" in _arguments(client, namespace)

    release("uninstall", "--wait")
    assert not exists(client, DEPLOYMENTS, _DEPLOYMENT, namespace)
    _await_no_pod(client, namespace)
    assert not exists(client, SERVICE_ACCOUNTS, _DEPLOYMENT, namespace)
    assert not exists(client, CLUSTER_ROLES, f"{namespace}:{_DEPLOYMENT}")
    assert exists(client, CUSTOM_RESOURCE_DEFINITIONS, missing)
    assert is_ready(client, "basic", namespace)
    assert before == _pods_of_cluster(client, namespace)


@pytest.mark.rule("scheduler-deployment-9")
def test_a_release_of_v16_becomes_one_of_this_chart_and_back(
    place: Place, namespace: str, tmp_path: Path, helm: Helm, release: _Release
) -> None:
    client = place.client
    theirs = v16.write(tmp_path)
    release("install", str(theirs), "--set=controllerManager.workers=7,scheduler.create=true")
    left = [client.get(DEPLOYMENTS, each, namespace).decode() for each in (_DEPLOYMENT, _SCHEDULER)]

    done = helm.run("upgrade", namespace, str(CHART), f"--namespace={namespace}", "--reuse-values")
    assert (1, True) == (done.returncode, "flowControl" in done.stderr), done.stderr
    keep = "--reset-then-reuse-values"
    wrong = "--set=operatorImage=pingcap/tidb-operator:v1.6.6"
    done = helm.run("upgrade", namespace, str(CHART), f"--namespace={namespace}", keep, wrong)
    assert "is v1.6's operator" in done.stderr
    release("upgrade", str(CHART), keep, "--set=scheduler.replicas=0", "--wait")
    ours = [client.get(DEPLOYMENTS, each, namespace).decode() for each in (_DEPLOYMENT, _SCHEDULER)]
    assert [each["metadata"]["uid"] for each in left] == [each["metadata"]["uid"] for each in ours]
    assert "-workers=7" in _arguments(client, namespace)
    assert 1 == len(ours[0]["spec"]["template"]["spec"]["containers"][0]["command"])
    role = client.get(CLUSTER_ROLES, f"{namespace}:{_DEPLOYMENT}", "").decode()
    assert "escalate" not in {verb for rule in role["rules"] for verb in rule["verbs"]}

    release("rollback", "1", "--wait")
    again = [client.get(DEPLOYMENTS, each, namespace).decode() for each in (_DEPLOYMENT, _SCHEDULER)]
    assert [each["spec"] for each in left] == [each["spec"] for each in again]


def _installer(place: Place, namespace: str) -> Path:
    """The kubeconfig of a user with all rights in one namespace, and none elsewhere."""
    account: Json = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "installer"}}
    place.client.create(SERVICE_ACCOUNTS, account, namespace)
    binding: Json = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "RoleBinding",
        "metadata": {"name": "installer"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
        "subjects": [{"kind": "ServiceAccount", "name": "installer", "namespace": namespace}],
    }
    place.client.create(ROLE_BINDINGS, binding, namespace)
    await_right(place, "installer", ROLE_BINDINGS, namespace)
    return place.kubeconfig(namespace, "installer")


@pytest.mark.rule("8.2")
def test_a_user_with_rights_in_one_namespace_installs_a_release_for_it(
    place: Place, namespace: str, tmp_path: Path
) -> None:
    release = _Release(Helm(tmp_path, _installer(place, namespace)), namespace)
    permissions = ("nodes", "persistentvolumes", "storageclasses")
    granted = (f"controllerManager.clusterPermissions.{each}=false" for each in permissions)
    values = ",".join(["clusterScoped=false", "appendReleaseSuffix=true", *granted])
    notes = release("install", str(CHART), "--wait", "--skip-crds", f"--set={values}")
    assert f"the namespace {namespace}, the only one that it manages" in notes
    create_cluster(place.client, sample("basic"), namespace)
    _await_ready(place.client, namespace)
    logs = [path.read_text() for path in place.directory.glob(f"{namespace}.{_DEPLOYMENT}-{namespace}-*.log")]
    assert logs
    assert not any("forbidden" in log for log in logs)
    release("uninstall", "--wait")
    _await_no_pod(place.client, namespace)


@pytest.mark.rule("10")
def test_definitions_are_upgraded_by_hand_and_the_notes_say_so(place: Place, helm: Helm, release: _Release) -> None:
    """Helm leaves existing CRDs alone: another release may need what this one would remove."""
    name = "tidbdashboards.pingcap.com"
    tree: Json = place.client.get(CUSTOM_RESOURCE_DEFINITIONS, name).decode()
    columns = tree["spec"]["versions"][0].pop("additionalPrinterColumns")
    place.client.replace(CUSTOM_RESOURCE_DEFINITIONS, name, "", tree)

    notes = release("install", str(CHART), "--set=controllerManager.replicas=0")
    told = "These definitions of resources are not those of this version, and Helm does not upgrade them:"
    assert f"{told}\n\n  {name}\n" in notes
    command = "helm show crds CHART | kubectl replace -f -"
    assert command in notes
    definitions = helm.succeed("show", "crds", str(CHART))
    kubectl = [str(KUBECTL), f"--kubeconfig={place.admin}", *command.partition("kubectl ")[2].split()]
    subprocess.run(kubectl, input=definitions, text=True, check=True, capture_output=True, timeout=60)
    found = place.client.get(CUSTOM_RESOURCE_DEFINITIONS, name).decode()
    assert columns == found["spec"]["versions"][0]["additionalPrinterColumns"]
    assert told not in release("upgrade", str(CHART), "--set=controllerManager.replicas=0")


@pytest.mark.rule("scheduler-deployment-9")
def test_a_restricted_namespace_accepts_all_objects_that_the_chart_can_create(
    place: Place, namespace: str, helm: Helm, release: _Release
) -> None:
    """Objects are checked field by field; what PodSecurity would refuse of a pod is a warning about its Deployment."""
    labels = {"pod-security.kubernetes.io/enforce": "restricted", "pod-security.kubernetes.io/warn": "restricted"}
    place.client.patch(NAMESPACES, namespace, "", {"metadata": {"labels": labels}})
    switches = ("scheduler", "networkPolicy", "flowControl", "monitoring.dashboard")
    budgets = (f"{each}.podDisruptionBudget" for each in ("controllerManager", "scheduler"))
    values = [f"--set={each}.create=true" for each in (*switches, *budgets)]
    values += ["--set=controllerManager.replicas=0,scheduler.replicas=0"]
    done = helm.run("install", namespace, str(CHART), f"--namespace={namespace}", *values)
    assert 0 == done.returncode, done.stderr
    assert "PodSecurity" not in done.stderr
    made = helm.succeed("get", "manifest", namespace, f"--namespace={namespace}")
    assert set() == _KINDS - set(made.split())
    careless = "--set=controllerManager.securityContext.runAsNonRoot=null"
    done = helm.run("upgrade", namespace, str(CHART), f"--namespace={namespace}", "--reuse-values", careless)
    assert "runAsNonRoot != true" in done.stderr
