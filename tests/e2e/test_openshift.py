"""The commands of docs/operations.md let monitors run on OpenShift, whose group the API server serves here."""

import contextlib
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from kube.client import Client
from kube.objects import condition_of
from kube.resources import CLUSTER_ROLES, CUSTOM_RESOURCE_DEFINITIONS, TIDB_MONITORS
from tests.controllers.tidbmonitor.monitors import monitor
from tests.controllers.tidbmonitor.test_openshift import SERVED
from tests.e2e import operators
from tests.e2e.guides import KUBECTL, Shell, commands, section
from tests.e2e.marks import IN_ONE_WORLD
from tests.e2e.operators import ROOT
from tests.e2e.waiting import eventually
from tests.e2e.worlds import Place, create_cluster, exists, sample

_GUIDE = ROOT / "docs" / "operations.md"
_BLOCK = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_ROLE = "tidb-operator:tidb-controller-manager"


@pytest.mark.slow
@IN_ONE_WORLD
@pytest.mark.rule("other-resources-3.2")
def test_the_commands_of_the_guide_let_a_monitor_grant_any_user(place: Place, namespace: str, tmp_path: Path) -> None:
    if not KUBECTL.exists():
        pytest.skip("kubectl was not built: make controlplane")
    client = place.client
    shell = Shell(place, tmp_path)
    shell.environment["KUBECONFIG"] = str(_of_namespace(place.admin, namespace, tmp_path))
    with (
        _openshift(client),
        place.gate() as gate,
        operators.running(place.new_log(), place.environment(gate)),
    ):
        cluster = sample("basic")
        cluster["spec"]["paused"] = True
        create_cluster(client, cluster, namespace)
        client.create(TIDB_MONITORS, monitor(), namespace)
        if place.name == "real":  # the sandbox refuses no Role for what its creator lacks
            eventually(lambda: "securitycontextconstraints" in _progress(client, namespace))
        text = _GUIDE.read_text(encoding="utf-8")
        for block in _BLOCK.finditer(text, *section(text, "Monitor clusters")):
            for command, expected in commands(block[1]):
                shell.type(command, expected, f"{_GUIDE.name} {command}")


@contextlib.contextmanager
def _openshift(client: Client) -> Iterator[None]:
    """The group of OpenShift, and the operator's rights as they were behind it."""
    rules = client.get(CLUSTER_ROLES, _ROLE).decode()["rules"]
    name = client.create(CUSTOM_RESOURCE_DEFINITIONS, SERVED).metadata.name
    eventually(lambda: exists(client, CUSTOM_RESOURCE_DEFINITIONS, name))
    try:
        yield
    finally:
        client.patch(CLUSTER_ROLES, _ROLE, "", {"rules": rules})
        client.delete(CUSTOM_RESOURCE_DEFINITIONS, name)


def _of_namespace(kubeconfig: Path, namespace: str, directory: Path) -> Path:
    """The kubeconfig with a namespace of its own."""
    tree = yaml.safe_load(kubeconfig.read_text(encoding="utf-8"))
    tree["contexts"][0]["context"]["namespace"] = namespace
    path = directory / "kubeconfig"
    path.write_text(yaml.safe_dump(tree), encoding="utf-8")
    return path


def _progress(client: Client, namespace: str) -> str:
    """What the monitor waits for."""
    status = client.get(TIDB_MONITORS, "basic", namespace).decode().get("status") or {}
    return str(condition_of(status.get("conditions") or (), "Progressing").get("message"))
