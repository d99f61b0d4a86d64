"""If the API server refuses an object of a cluster, a condition names the field: no crash, no hot loop."""

from typing import Any

import pytest

from kube.objects import Json
from kube.resources import STATEFUL_SETS
from tests.operator_world import OperatorWorld, sample

_MOUNT = {"name": "nowhere", "mountPath": "/x"}
_SIDECAR = {"name": "x", "image": "x:v1"}
_QUIET = 4
"""Attempts a minute."""


def refused(component: str, part: Json) -> Json:
    """The sample with one more part of a component."""
    cluster = sample("basic")
    cluster["spec"][component] |= part
    return cluster


def undone(part: Json, before: Json) -> Json:
    """The merge patch that takes a part out again."""
    return {
        key: undone(value, before[key]) if isinstance(before.get(key), dict) else before.get(key)
        for key, value in part.items()
    }


@pytest.mark.slow
@pytest.mark.parametrize(
    ("component", "part", "field"),
    [
        ("tikv", {"additionalVolumes": [{}]}, "spec.tikv.additionalVolumes[0].name"),
        ("tikv", {"additionalVolumes": [{"name": "x", "hostPath": {}}]}, "volumes[4].hostPath.path"),
        ("tikv", {"additionalVolumeMounts": [_MOUNT]}, "containers[0].volumeMounts[4].name"),
        (
            "tikv",
            {"additionalContainers": [_SIDECAR | {"ports": [{"containerPort": 99999}]}]},
            "ports[0].containerPort",
        ),
        ("tikv", {"labels": {"a": "b c"}}, 'spec.tikv.labels["a"]'),
        (
            "tikv",
            {"requests": {"cpu": "2", "storage": "1Gi"}, "limits": {"cpu": "1"}},
            "containers[0].resources.requests",
        ),
        ("tikv", {"tolerations": [{"operator": "X"}]}, "spec.tolerations[0].operator"),
        ("tidb", {"imagePullPolicy": "Sometimes"}, "imagePullPolicy"),
        ("tidb", {"service": {"type": "X"}}, "spec.type"),
        (
            "tidb",
            {"service": {"type": "ClusterIP", "additionalPorts": [{"name": "x", "port": 0}]}},
            "spec.ports[1].port",
        ),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else None,
)
def test_names_a_refused_object_and_recovers_when_the_user_corrects_it(
    world: OperatorWorld, component: str, part: dict[str, Any], field: str
) -> None:
    world.apply(refused(component, part))
    world.run_until(lambda: field in world.condition("Progressing")["message"])
    world.run(60.0)
    world.forget()
    world.run(60.0)

    assert field in world.condition("Progressing")["message"]
    assert "InternalError" != world.reason()
    assert _QUIET >= len(world.writes())

    world.change(**{component: undone(part, sample("basic")["spec"][component])})
    world.run_until_ready()


def test_the_message_about_a_wrong_type_quotes_no_object(world: OperatorWorld) -> None:
    world.apply(refused("tikv", {"env": [{"name": "PASSWORD", "value": "hush"}]}))
    world.run_until_ready()
    before = world.get(STATEFUL_SETS, "basic-tikv")["metadata"]["generation"]
    world.change(tikv={"additionalVolumes": [{"name": "x", "csi": {"driver": 5}}]})
    world.run_until(lambda: "driver" in world.condition("Progressing")["message"])

    assert "hush" not in world.condition("Progressing")["message"]
    assert "spec.tikv.additionalVolumes[0].csi.driver: 5: must be a string" in world.condition("Progressing")["message"]
    assert before == world.get(STATEFUL_SETS, "basic-tikv")["metadata"]["generation"]
