"""The extender sends only requests that its role allows (scheduler-deployment.md 8)."""

import pytest
import yaml

import manifests
from kube.resources import PODS
from tests.scheduler.worlds import NAMESPACE, ExtenderWorld


def granted() -> set[tuple[str, str]]:
    """Verb and resource (`plural.group`) of each rule in the extender's role."""
    text = (manifests.DIRECTORY / "scheduler/rbac.yaml").read_text(encoding="utf-8")
    (role,) = [each for each in yaml.safe_load_all(text) if each["kind"] == "ClusterRole"]
    return {
        (verb, f"{resource}.{group}".rstrip("."))
        for rule in role["rules"]
        for verb in rule["verbs"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
    }


@pytest.mark.rule("scheduler-deployment-8")
def test_all_requests_are_granted() -> None:
    world = ExtenderWorld()
    world.add("db-pd-0")
    world.add("db-pd-1", metadata={"labels": {}})
    world.add_pod("db-tidb-0", "tidb")
    for name in ("db-pd-0", "db-pd-1", "db-tidb-0"):
        world.ask(name)
    world.admin.delete(PODS, "db-pd-0", NAMESPACE, grace_period_seconds=0)
    world.ask("db-pd-1")
    calls = [entry.call for entry in world.world.server.audit.recent()]
    asked = {(call.verb, call.resource) for call in calls if call.user == "extender"}
    reads = {("get", "persistentvolumeclaims"), ("list", "pods"), ("get", "pods"), ("patch", "persistentvolumeclaims")}
    assert reads <= asked
    assert asked <= granted()
