"""No log line, event, condition or ConfigMap repeats the content of a Secret."""

import base64
import json
from typing import Any

import pytest
from structlog.testing import capture_logs

from kube.resources import CONFIG_MAPS, EVENTS, SECRETS, SERVICES, TIDB_CLUSTERS
from tests.operator_world import NAMESPACE, OperatorWorld, sample

CANARY = "c4n4ry-in-a-coal-mine"


def everything_told(world: OperatorWorld, logs: Any) -> str:
    status = [cluster.get("status") for cluster in world.every(TIDB_CLUSTERS)]
    return json.dumps([world.every(EVENTS), status, world.every(CONFIG_MAPS), world.every(SERVICES)]) + repr(logs)


def put_secret(world: OperatorWorld, name: str, *keys: str) -> None:
    encoded = base64.b64encode(CANARY.encode()).decode()
    world.admin.create(SECRETS, {"metadata": {"name": name}, "data": dict.fromkeys(keys, encoded)}, NAMESPACE)


def assert_silent(world: OperatorWorld, logs: Any) -> None:
    text = everything_told(world, logs)
    assert "basic-pd" in text
    assert CANARY not in text
    assert base64.b64encode(CANARY.encode()).decode() not in text


@pytest.mark.slow
def test_does_not_repeat_the_content_of_unusable_certificates(world: OperatorWorld) -> None:
    put_secret(world, "basic-cluster-client-secret", "ca.crt", "tls.crt", "tls.key")
    for part in ("pd", "tikv", "tidb"):
        put_secret(world, f"basic-{part}-cluster-secret", "ca.crt", "tls.crt", "tls.key")
    cluster = sample("basic")
    cluster["spec"]["tlsCluster"] = {"enabled": True}
    with capture_logs() as logs:
        world.apply(cluster)
        world.run_until(lambda: world.reason() == "BadCertificate")
        assert "key tls.crt: makes no usable pair with tls.key" in world.condition("Progressing")["message"]
        world.run(30.0)
    assert "get secrets basic-cluster-client-secret" in world.reads()
    assert_silent(world, logs)


@pytest.mark.slow
def test_never_shows_a_changed_environment_value(world: OperatorWorld) -> None:
    with capture_logs() as logs:
        cluster = sample("basic")
        cluster["spec"]["tidb"]["env"] = [{"name": "PASSWORD", "value": CANARY}]
        world.apply(cluster)
        world.run_until_ready()
        world.change(tidb={"env": [{"name": "PASSWORD", "value": CANARY + "-2"}]})
        world.run_until(lambda: world.reason() == "RollingUpdate")
        world.change(tidb={"env": [{"name": "PASSWORD", "value": CANARY}, {"name": "MORE", "value": CANARY}]})
        world.run(5.0)
        world.change(tidb={"env": [{"name": "1nvalid", "value": CANARY}]})
        world.run_until(lambda: world.reason() == "InvalidSpec")
        world.change(tidb={"env": [{"name": "A", "value": CANARY, "valueFrom": {"secretKeyRef": {"name": "a"}}}]})
        world.run(5.0)
    assert_silent(world, logs)
