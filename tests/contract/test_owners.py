"""Garbage collection: the fate of dependents when their owner is deleted."""

import pytest

from kube.objects import Json
from kube.resources import CONFIG_MAPS, SECRETS
from tests.contract.objects import config_map, owned_by
from tests.contract.worlds import Side, eventually, throughout


@pytest.fixture
def owner(world: Side, namespace: str) -> Json:
    """A ConfigMap that owns the Secret `dependent`, and blocks in it."""
    made = world.client.create(CONFIG_MAPS, config_map("owner"), namespace).decode()
    dependent = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "dependent"}}
    world.client.create(SECRETS, owned_by(made, dependent, blocking=True), namespace)
    # the collector must have seen the dependent, or deletes the owner without considering it
    assert throughout(1.0, lambda: dependent_is_there(world, namespace))
    return made


def dependent_is_there(world: Side, namespace: str) -> bool:
    return world.exists(SECRETS, "dependent", namespace)


def test_background_deletion_takes_the_owner_first(world: Side, namespace: str, owner: Json) -> None:
    world.client.delete(CONFIG_MAPS, "owner", namespace, propagation="Background")

    assert not world.exists(CONFIG_MAPS, "owner", namespace)
    eventually(lambda: not dependent_is_there(world, namespace))


def test_foreground_deletion_takes_the_owner_last(world: Side, namespace: str, owner: Json) -> None:
    finalizer = {"metadata": {"finalizers": ["example.com/hold"]}}
    world.client.patch(SECRETS, "dependent", namespace, finalizer)

    world.client.delete(CONFIG_MAPS, "owner", namespace, propagation="Foreground")

    assert ("foregroundDeletion",) == world.client.get(CONFIG_MAPS, "owner", namespace).metadata.finalizers
    eventually(lambda: world.client.get(SECRETS, "dependent", namespace).metadata.deletion_timestamp)
    assert world.exists(CONFIG_MAPS, "owner", namespace)
    world.client.patch(SECRETS, "dependent", namespace, {"metadata": {"finalizers": None}})
    eventually(lambda: not world.exists(CONFIG_MAPS, "owner", namespace))


def test_orphans_stay_without_their_owner(world: Side, namespace: str, owner: Json) -> None:
    world.client.delete(CONFIG_MAPS, "owner", namespace, propagation="Orphan")

    eventually(lambda: not world.exists(CONFIG_MAPS, "owner", namespace))
    assert () == world.client.get(SECRETS, "dependent", namespace).metadata.owner_references


def test_a_dependent_without_an_existing_owner_is_collected(world: Side, namespace: str) -> None:
    ghost = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "ghost", "uid": "never-was"}}
    dependent = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "dependent"}}

    world.client.create(SECRETS, owned_by(ghost, dependent), namespace)

    eventually(lambda: not dependent_is_there(world, namespace))


def test_a_dependent_of_two_owners_goes_with_the_last(world: Side, namespace: str, owner: Json) -> None:
    second = world.client.create(CONFIG_MAPS, config_map("second"), namespace).metadata
    references = world.client.get(SECRETS, "dependent", namespace).decode()["metadata"]["ownerReferences"]
    references.append({"apiVersion": "v1", "kind": "ConfigMap", "name": "second", "uid": second.uid})
    world.client.patch(SECRETS, "dependent", namespace, {"metadata": {"ownerReferences": references}})

    world.client.delete(CONFIG_MAPS, "owner", namespace, propagation="Background")

    eventually(lambda: 1 == len(world.client.get(SECRETS, "dependent", namespace).metadata.owner_references))
    world.client.delete(CONFIG_MAPS, "second", namespace, propagation="Background")
    eventually(lambda: not dependent_is_there(world, namespace))
