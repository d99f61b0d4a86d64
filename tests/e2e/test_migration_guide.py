"""docs/migration.md is done, command by command, on a real control plane with a cluster that v1.6 has left.

Our Deployment runs as a process with the rights of its ServiceAccount; v1.6's is there, and does nothing.
"""

import os
import re
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from kube.objects import Json
from kube.resources import DEPLOYMENTS, NAMESPACES, PODS, ROLES
from tests.e2e.guides import Shell
from tests.e2e.operators import ROOT
from tests.e2e.waiting import eventually
from tests.e2e.worlds import OPERATOR_NAMESPACE, Place, conditions, sample
from tests.takeover.eyes_of_v16 import would_change
from tests.takeover.halfway import as_v16_makes
from tests.takeover.left_by_v16 import LeftObjects

pytestmark = [pytest.mark.slow, pytest.mark.controlplane]

GUIDE = ROOT / "docs" / "migration.md"
OF_V16 = "of-v16"
NAME = "tidb-controller-manager"


def blocks() -> list[list[str]]:
    """The commands of each console block of the guide."""
    found = re.findall(r"^```console\n(.*?)^```$", GUIDE.read_text(), re.MULTILINE | re.DOTALL)
    return [each.replace("\\\n", " ").splitlines() for each in found]


class Guide:
    """A user who follows the guide."""

    def __init__(self, place: Place, directory: Path, namespace: str) -> None:
        self._shell = Shell(place, ROOT)
        (directory / "tidb-operator").write_text(f'#!/bin/sh\nexec "{sys.executable}" -m cli "$@"\n')
        (directory / "tidb-operator").chmod(0o755)
        self._shell.environment |= {
            **place.environment(),
            "KUBECONFIG": str(place.admin),
            "PATH": f"{directory}:{self._shell.environment['PATH']}",
            "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")]),
        }
        self._names = {"NAMESPACE-OF-V1.6": OF_V16, "NAMESPACE": namespace, "NAME": "basic"}
        self._blocks = iter(blocks())

    def next_block(self, code: int = 0) -> str:
        """Run the next block; returns its output. The last command ends with `code`."""
        shown = ""
        commands = next(self._blocks)
        for number, command in enumerate(commands):
            done = self._shell.complete(re.sub("NAMESPACE-OF-V1.6|NAMESPACE|NAME", self._meant, command))
            assert done.returncode == (code if number == len(commands) - 1 else 0), (command, done.stdout)
            shown += done.stdout
        return shown

    def is_at_its_end(self) -> bool:
        """True if no block is left."""
        return next(self._blocks, None) is None

    def _meant(self, found: re.Match[str]) -> str:
        return self._names[found[0]]


@pytest.fixture
def left(real: Place, namespace: str) -> Iterator[LeftObjects]:
    """A cluster of v1.6, and v1.6's Deployment."""
    for log in logs_of_ours(real):
        log.unlink()  # of a Deployment that other tests had, and removed
    real.client.create(NAMESPACES, {"metadata": {"name": OF_V16}})
    real.client.create(DEPLOYMENTS, deployment_of_v16(), OF_V16)
    items = as_v16_makes(sample("basic"), namespace)
    left = LeftObjects(items, real.client, real.data_plane, lambda ready: eventually(ready, 60.0))
    # our Discovery, which runs in the place of v1.6's, could not have begun with this
    rule = {"apiGroups": [""], "resources": ["secrets"], "verbs": ["get", "list", "watch"]}
    role = real.client.get(ROLES, "basic-discovery", namespace).decode()
    real.client.patch(ROLES, "basic-discovery", namespace, {"rules": [role["rules"][0], rule]})
    yield left
    for where in (OF_V16, OPERATOR_NAMESPACE):
        real.client.delete(DEPLOYMENTS, NAME, where)
        eventually(partial(has_no_pods, real, where), 60.0)
    real.client.delete(NAMESPACES, OF_V16)


def has_no_pods(place: Place, namespace: str) -> bool:
    """True if the pods there have ended."""
    return not place.client.list_page(PODS, namespace).items


@pytest.fixture
def place(real: Place) -> Place:
    """Only our Deployments run there."""
    return real


def test_the_guide_takes_a_cluster_over_and_gives_it_back(
    place: Place, left: LeftObjects, namespace: str, tmp_path: Path
) -> None:
    guide, pods, before = Guide(place, tmp_path, namespace), left.pods(), left.objects()

    differences = guide.next_block(code=1)
    # a ConfigMap has a digest behind its name
    told = set(re.findall(r"^\+\+\+ ([^ ]+?)(?:-\d{7})? ", differences, re.MULTILINE))
    expected = {f"{namespace}/{kind}/basic-discovery" for kind in ("deployments", "roles")}
    noted = {
        f"{namespace}/{kind}/basic-{component}"
        for kind in ("configmaps", "statefulsets")
        for component in ("pd", "tikv", "tidb")
    }
    assert expected | noted == told, differences

    guide.next_block()
    eventually(lambda: "would write" in said_by_ours(place), 60.0, lambda: said_by_ours(place))
    assert "became leader" not in said_by_ours(place)
    assert (pods, specs(before)) == (left.pods(), specs(left.objects()))

    guide.next_block()

    guide.next_block()
    eventually(lambda: "Done: " in told_of(place, namespace), 90.0, lambda: told_of(place, namespace))
    assert pods == left.pods()
    now = left.objects()
    assert {} == {key: found for key, item in before.items() if (found := would_change(item, now[key]))}

    guide.next_block()
    assert guide.is_at_its_end()
    assert (0, 1) == tuple(place.client.get(DEPLOYMENTS, NAME, each).decode()["spec"]["replicas"] for each in WHERE)
    assert pods == left.pods()


WHERE = (OPERATOR_NAMESPACE, OF_V16)


def told_of(place: Place, namespace: str) -> str:
    """The conditions of the cluster."""
    return "; ".join(conditions(place.client, "basic", namespace))


def logs_of_ours(place: Place) -> list[Path]:
    """The log of each of our Deployment's pods."""
    return list(place.directory.glob(f"{OPERATOR_NAMESPACE}.{NAME}-*.log"))


def said_by_ours(place: Place) -> str:
    """The logs of our Deployment's pods."""
    return "".join(path.read_text() for path in logs_of_ours(place))


def specs(objects: dict[str, Json]) -> dict[str, Json]:
    """The specs and data of objects, without metadata and status."""
    return {key: {"spec": each.get("spec"), "data": each.get("data")} for key, each in objects.items()}


def deployment_of_v16() -> Json:
    """v1.6's Deployment, in short."""
    labels = {"app.kubernetes.io/name": "tidb-operator", "app.kubernetes.io/component": "controller-manager"}
    container = {"name": "tidb-operator", "image": "pingcap/tidb-operator:v1.6.6", "command": ["sleep", "86400"]}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [container]}}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": NAME},
        "spec": {"replicas": 1, "selector": {"matchLabels": labels}, "template": template},
    }
