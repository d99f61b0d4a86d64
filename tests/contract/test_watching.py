"""Watches: their beginning, their events, their end."""

from collections.abc import Iterator

import pytest

from kube.client import Watch, WatchEvent
from kube.errors import ApiError
from kube.objects import Object
from kube.resources import CONFIG_MAPS, PODS
from tests.contract.objects import config_map
from tests.contract.worlds import Side

_SECONDS = 5
"""Seconds that an unfinished watch lasts."""


def events(watch: Watch, count: int) -> list[tuple[str, str, str]]:
    """Type, name and label `go` of the next events, bookmarks left out."""
    found = []
    for event in watch:
        if event.type != "BOOKMARK":
            found.append(_shown(event))
        if len(found) == count:
            break
    watch.abort()
    watch.close()
    return found


def _shown(event: WatchEvent) -> tuple[str, str, str]:
    assert isinstance(event.object, Object), event.object
    return event.type, event.object.metadata.name, event.object.metadata.labels.get("go", "")


@pytest.fixture
def version(world: Side, namespace: str) -> str:
    """The version of the namespace's ConfigMaps before the test."""
    return world.client.list_page(CONFIG_MAPS, namespace, field_selector="metadata.name=a").resource_version


def opened(world: Side, namespace: str, version: str, **options: str) -> Watch:
    """A watch of one ConfigMap."""
    selector = options.pop("label_selector", "")
    return world.client.watch(
        CONFIG_MAPS,
        namespace,
        resource_version=version,
        timeout_seconds=_SECONDS,
        field_selector="metadata.name=a",
        label_selector=selector,
        options=options,
    )


def test_every_change_is_one_event(world: Side, namespace: str, version: str) -> None:
    watch = opened(world, namespace, version)
    world.client.create(CONFIG_MAPS, config_map("a"), namespace)
    world.client.patch(CONFIG_MAPS, "a", namespace, {"metadata": {"labels": {"go": "yes"}}})
    world.client.delete(CONFIG_MAPS, "a", namespace)

    assert [("ADDED", "a", ""), ("MODIFIED", "a", "yes"), ("DELETED", "a", "yes")] == events(watch, 3)


def test_a_watch_continues_where_another_ended(world: Side, namespace: str, version: str) -> None:
    created = world.client.create(CONFIG_MAPS, config_map("a"), namespace)
    world.client.patch(CONFIG_MAPS, "a", namespace, {"metadata": {"labels": {"go": "yes"}}})

    watch = opened(world, namespace, created.metadata.resource_version)

    assert [("MODIFIED", "a", "yes")] == events(watch, 1)


def test_a_watch_without_a_version_begins_with_the_existing_objects(world: Side, namespace: str, version: str) -> None:
    world.client.create(CONFIG_MAPS, config_map("a"), namespace)

    assert [("ADDED", "a", "")] == events(opened(world, namespace, ""), 1)
    assert [("ADDED", "a", "")] == events(opened(world, namespace, "0"), 1)


def test_an_object_that_leaves_the_selection_is_deleted_there(world: Side, namespace: str, version: str) -> None:
    watch = opened(world, namespace, version, label_selector="go=yes")
    world.client.create(CONFIG_MAPS, config_map("a"), namespace)
    for value in ("yes", "no"):
        world.client.patch(CONFIG_MAPS, "a", namespace, {"metadata": {"labels": {"go": value}}})

    assert [("ADDED", "a", "yes"), ("DELETED", "a", "yes")] == events(watch, 2)


def test_initial_events_end_with_a_bookmark(world: Side, namespace: str, version: str) -> None:
    world.client.create(CONFIG_MAPS, config_map("a"), namespace)
    options = {"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan"}
    watch = opened(world, namespace, "", **options)

    first, second = _take(watch, 2)

    assert ("ADDED", "BOOKMARK") == (first.type, second.type)
    assert isinstance(second.object, Object)
    assert {"k8s.io/initial-events-end": "true"} == second.object.metadata.annotations
    assert second.object.metadata.resource_version


def test_a_watch_ends_after_its_timeout(world: Side, namespace: str, version: str) -> None:
    watch = world.client.watch(PODS, namespace, resource_version=version, timeout_seconds=1)

    assert {"BOOKMARK"} >= {event.type for event in watch}
    watch.close()


def test_the_wrong_question_is_refused(world: Side, namespace: str) -> None:
    with pytest.raises(ApiError) as refused:
        opened(world, namespace, "not-a-number")
    initial = world.send("GET", f"{CONFIG_MAPS.path(namespace)}?watch=1&sendInitialEvents=true")

    assert (500, "") == (refused.value.code, refused.value.reason)
    assert (422, "Invalid") == (initial.status, initial.reason)


def _take(watch: Watch, count: int) -> list[WatchEvent]:
    taken: list[WatchEvent] = []
    iterator: Iterator[WatchEvent] = iter(watch)
    while len(taken) < count:
        taken.append(next(iterator))
    watch.abort()
    watch.close()
    return taken
