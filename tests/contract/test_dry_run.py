"""A dry run is answered like a real request, and changes nothing (docs/migration.md)."""

import pytest

from kube.client import Client
from kube.dry_run import DryRunTransport, PlannedWrite
from kube.objects import Json
from kube.resources import CONFIG_MAPS
from tests.contract.objects import config_map
from tests.contract.worlds import Side


@pytest.mark.parametrize("options", [{}, {"grace_period_seconds": 0, "propagation": "Background"}])
def test_a_dry_run_changes_nothing(world: Side, namespace: str, options: Json) -> None:
    planned: list[PlannedWrite] = []
    client = Client(DryRunTransport(world.transport, planned.append))
    there = world.client.create(CONFIG_MAPS, config_map("there", key="old"), namespace)
    made = client.create(CONFIG_MAPS, config_map("new", key="value"), namespace)
    patched = client.patch(CONFIG_MAPS, "there", namespace, {"data": {"key": "new"}})
    replaced = client.replace(CONFIG_MAPS, "there", namespace, config_map("there", key="newer"))
    client.delete(CONFIG_MAPS, "there", namespace, uid=there.metadata.uid, **options)

    assert ["value", "new", "newer"] == [each.decode()["data"]["key"] for each in (made, patched, replaced)]
    assert there.raw == world.client.get(CONFIG_MAPS, "there", namespace).raw
    assert not world.exists(CONFIG_MAPS, "new", namespace)
    assert ["create", "patch", "update", "delete"] == [each.verb for each in planned]
