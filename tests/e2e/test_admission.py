"""A real API server calls webhooks for each write: the operator does not undo their changes of pod templates, nor
report Contested."""

import pytest

from kube.objects import Json
from kube.resources import PODS, STATEFUL_SETS
from tests.e2e import operators, webhooks
from tests.e2e.in_force import await_change
from tests.e2e.operators import reconciles
from tests.e2e.waiting import eventually
from tests.e2e.worlds import Place, await_ready, conditions, create_cluster, sample
from tests.kube.servers import Certificates, certificates

__all__ = ["certificates"]

pytestmark = [pytest.mark.slow, pytest.mark.thorough, pytest.mark.controlplane]

_WEBHOOKS = ("mirror-everywhere", "variable", "pod-label")
_RESYNCS = 3
_POD: Json = {"metadata": {"name": "any"}, "spec": {"containers": [{"name": "any", "image": "any"}]}}


def test_a_webhooks_change_of_pod_templates_is_left_alone(real: Place, certificates: Certificates) -> None:
    client = real.client
    with (
        real.namespace() as namespace,
        webhooks.asked(client, _WEBHOOKS, namespace, certificates),
        real.gate() as gate,
    ):
        await_change(client, PODS, _POD, namespace)
        with operators.running(real.new_log(), real.environment(gate), "--resync-duration=1s") as operator:
            name = create_cluster(client, sample("basic"), namespace)
            await_ready(real, operator, name, namespace)
            gate.await_quiet()
            gate.forget()
            before = reconciles(operator)
            eventually(lambda: reconciles(operator) >= before + _RESYNCS)
            assert [] == gate.writes
            assert "Progressing=False Done: the cluster matches its spec" in conditions(client, name, namespace)
        live = client.get(STATEFUL_SETS, "basic-tikv", namespace).decode()["spec"]["template"]
        assert "databases" == live["metadata"]["labels"]["example.com/team"]
        assert live["spec"]["containers"][0]["image"].startswith("mirror.example.com/")
