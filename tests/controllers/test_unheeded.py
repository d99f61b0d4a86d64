"""Objects whose work Jobs do name their fields without effect, once, until the user has corrected them (R22)."""

import pytest

from kube.objects import Json, condition_of
from kube.resources import BACKUP_SCHEDULES, BACKUPS, COMPACT_BACKUPS, RESTORES, Resource
from ports.clock import FakeClock
from simulate.engine.trees import merged
from simulate.manifests.rich_specs import rich_spec
from tests.operator_world import NAMESPACE, OperatorWorld

WRONG: dict[Resource, tuple[Json, str]] = {
    BACKUPS: ({"storageSize": "1Gi"}, "spec.storageSize"),
    RESTORES: ({"warmup": "sync"}, "spec.warmup"),
    BACKUP_SCHEDULES: ({"storageSize": "1Gi"}, "spec.storageSize"),
    COMPACT_BACKUPS: ({"br": {"db": "shop"}}, "spec.br.db"),
}


@pytest.mark.slow
@pytest.mark.parametrize("resource", WRONG, ids=lambda resource: resource.kind)
@pytest.mark.rule("R22")
def test_names_a_field_without_effect_once_until_it_is_corrected(resource: Resource, clock: FakeClock) -> None:
    world = OperatorWorld(clock=clock)
    change, field = WRONG[resource]
    valid = {"spec": rich_spec(resource)}
    head = {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": {"name": "odd"}}
    world.admin.create(resource, head | merged(valid, {"spec": change}), NAMESPACE)
    world.run(20.0)
    told = condition_of(world.get(resource, "odd")["status"]["conditions"], "FieldsIgnored")
    assert ("True", "FieldsIgnored", True) == (told["status"], told["reason"], f"{field}: " in told["message"])
    events = [each for each in world.events("FieldsIgnored") if each["involvedObject"]["name"] == "odd"]
    assert [1] == [each["count"] for each in events]
    world.admin.replace(resource, "odd", NAMESPACE, world.get(resource, "odd") | valid)
    world.run(20.0)
    told = condition_of(world.get(resource, "odd")["status"]["conditions"], "FieldsIgnored")
    assert f"{field}: " not in told["message"]
    world.stop()
