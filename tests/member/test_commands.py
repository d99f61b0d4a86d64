"""Commands on a pod (lifecycle.md 13)."""

from datetime import UTC, datetime

import msgspec
import pytest

from kube.objects import Object
from member.observed.command_annotations import Command, commands_of, is_commanded, seconds_left, unknown_values

PREFIX = "tidb.pingcap.com/"
NOW = datetime(2030, 1, 1, tzinfo=UTC)
EVICTION = Command(f"{PREFIX}evict-leader", "none")


def pod(component: str, **annotations: str) -> Object:
    keys = {f"{PREFIX}{key.replace('_', '-')}": value for key, value in annotations.items()}
    labels = {"app.kubernetes.io/component": component}
    body = {"metadata": {"name": f"demo-{component}-0", "labels": labels, "annotations": keys}, "spec": {}}
    return Object(msgspec.json.encode(body), "v1", "Pod")


@pytest.mark.parametrize(
    ("component", "key", "values"),
    [
        ("pd", "pd_transfer_leader", ["none", "delete-pod"]),
        ("tikv", "evict_leader", ["none", "delete-pod"]),
        ("tikv", "evict_leader_for_resize", ["none", "delete-pod"]),
        ("tidb", "tidb_graceful_shutdown", ["none", "delete-pod"]),
        *((component, "replace_volume", ["true"]) for component in ("pd", "tikv", "tidb")),
    ],
)
@pytest.mark.rule("lifecycle-13")
def test_each_component_knows_its_commands_and_their_values(component: str, key: str, values: list[str]) -> None:
    name = f"{PREFIX}{key.replace('_', '-')}"
    assert [[Command(name, value)] for value in values] == [
        commands_of(pod(component, **{key: value})) for value in values
    ]
    assert ([], True) == (commands_of(pod(component, **{key: "True"})), is_commanded(pod(component, **{key: "True"})))


@pytest.mark.rule("lifecycle-13")
def test_commands_of_other_components_are_no_commands() -> None:
    for component in ("pd", "tidb", "tiflash", "discovery"):
        assert not is_commanded(pod(component, evict_leader="none"))


@pytest.mark.rule("lifecycle-13")
def test_an_unknown_value_is_named_together_with_the_known_ones() -> None:
    wanted = f"annotation {PREFIX}evict-leader of pod demo-tikv-0: 'now' is not one of delete-pod, none; ignored"
    assert [wanted] == unknown_values(pod("tikv", evict_leader="now", replace_volume="true"))


@pytest.mark.parametrize(
    ("time", "left"),
    [
        ("2029-12-31T23:59:59Z", 0.0),
        ("2030-01-01T00:00:00Z", 0.0),
        ("2030-01-01T00:00:01Z", 1.0),
        ("2030-01-01T02:00:00+03:00", 0.0),
        ("2030-01-02T00:00:00", 86400.0),
        ("tomorrow", 0.0),
    ],
)
@pytest.mark.rule("lifecycle-13")
def test_a_time_that_is_over_or_unreadable_ends_a_command(time: str, left: float) -> None:
    assert left == seconds_left(pod("tikv", tikv_evict_leader_expiration_time=time), EVICTION, NOW)


@pytest.mark.rule("lifecycle-13")
def test_without_a_time_a_command_does_not_end() -> None:
    assert seconds_left(pod("tikv"), EVICTION, NOW) is None
