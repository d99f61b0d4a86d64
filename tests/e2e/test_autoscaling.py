"""`kubectl scale` and a HorizontalPodAutoscaler change TiDB's replicas through the TidbCluster (docs/operations.md)."""

import re
import subprocess

import pytest

from kube.objects import Json
from kube.resources import TIDB_CLUSTERS, Resource
from sandbox.conditions import condition
from tests.e2e import operators
from tests.e2e.guides import KUBECTL
from tests.e2e.marks import ON_THE_REAL_ONE
from tests.e2e.operators import ROOT
from tests.e2e.waiting import eventually
from tests.e2e.worlds import Place, await_ready, create_cluster, sample

pytestmark = [pytest.mark.slow, ON_THE_REAL_ONE]

AUTOSCALERS = Resource("autoscaling", "v2", "horizontalpodautoscalers", "HorizontalPodAutoscaler")
GUIDE = (ROOT / "docs" / "operations.md").read_text()


def kubectl(place: Place, namespace: str, command: str) -> str:
    """What a command of the guide prints."""
    kubeconfig = f"--kubeconfig={place.admin}"
    argv = [str(KUBECTL), kubeconfig, f"--namespace={namespace}", *command.split()[1:]]
    return subprocess.run(argv, capture_output=True, text=True, check=True).stdout


def documented(beginning: str) -> str:
    """The command of the guide that begins like this."""
    found: list[str] = re.findall(rf"(?:`|^\$ )({re.escape(beginning)}[^`\n]*)", GUIDE, re.MULTILINE)
    return found[0]


def cluster(place: Place, namespace: str) -> Json:
    return place.client.get(TIDB_CLUSTERS, "basic", namespace).decode()


def of_autoscaler(place: Place, namespace: str, kind: str) -> Json:
    """A condition of the HorizontalPodAutoscaler; empty before it has it."""
    tree = place.client.get(AUTOSCALERS, "basic", namespace).decode()
    return condition((tree.get("status") or {}).get("conditions"), kind) or {}


def test_kubectl_and_an_autoscaler_change_the_replicas_of_tidb(place: Place, namespace: str) -> None:
    with operators.running(place.new_log(), place.environment()) as operator:
        create_cluster(place.client, sample("basic"), namespace)
        await_ready(place, operator, "basic", namespace)
        assert "selector" not in cluster(place, namespace)["status"]["tidb"]

        kubectl(place, namespace, documented("kubectl scale tc basic"))
        scaled = cluster(place, namespace)["spec"]["tidb"]["replicas"]
        eventually(
            lambda: scaled == cluster(place, namespace)["status"]["tidb"]["statefulSet"].get("readyReplicas"), 60.0
        )

        autoscale = documented("kubectl autoscale tc basic")
        assert int(re.findall(r"--min=(\d+)", autoscale)[0]) > scaled
        kubectl(place, namespace, autoscale)
        # below its minimum it scales without metrics, and then needs the selector
        eventually(lambda: of_autoscaler(place, namespace, "ScalingActive").get("reason") == "InvalidSelector", 90.0)
        assert ("True", "SucceededGetScale") == _shown(of_autoscaler(place, namespace, "AbleToScale"))
        kubectl(place, namespace, documented("kubectl annotate tc basic tidb.pingcap.com/tidb-scale-selector"))
        eventually(
            lambda: of_autoscaler(place, namespace, "ScalingActive").get("reason") == "FailedGetResourceMetric", 90.0
        )
        await_ready(place, operator, "basic", namespace)
        grown = cluster(place, namespace)
        assert grown["spec"]["tidb"]["replicas"] == grown["status"]["tidb"]["statefulSet"]["readyReplicas"] > scaled
        selector = "app.kubernetes.io/component=tidb"
        assert selector in grown["status"]["tidb"]["selector"]


def _shown(found: Json) -> tuple[str, str]:
    return found["status"], found["reason"]
