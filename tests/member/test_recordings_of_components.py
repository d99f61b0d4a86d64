"""Single components, compared with recordings that contain unmanaged parts (objects.md; a live v1.6.6)."""

import pytest

from kube.objects import Json
from member.apply.last_applied import compare_stateful_set
from tests.member.recordings import Recording, differences

_COMPONENT = "app.kubernetes.io/component"

PUBLISHED = "/spec/publishNotReadyAddresses: recorded True, not ours"
"""Ours sends no clients to pods that are not Ready; it is on purpose (docs/compat.md)."""

EXPECTED: dict[str, dict[str, list[str]]] = {
    "tiproxy": {"Service/orders-tiproxy": [PUBLISHED], "Service/safe-tiproxy": [PUBLISHED]},
    "ticdc": {},
}
"""The differences by component and object that are on purpose."""

CASES = [(name, component) for name in ("dev-components", "dev-tls") for component in EXPECTED]


def of(objects: dict[str, Json], component: str) -> dict[str, Json]:
    return {
        key: item for key, item in objects.items() if item["metadata"].get("labels", {}).get(_COMPONENT) == component
    }


@pytest.mark.parametrize(("name", "component"), CASES)
def test_all_objects_of_a_component_match_the_recordings(name: str, component: str) -> None:
    recording = Recording(name)
    theirs, ours = of(recording.objects, component), of(recording.built(), component)
    assert theirs.keys() == ours.keys() != set()
    found = {key: differences(theirs[key], ours[key]) for key in theirs}
    assert {key: EXPECTED[component].get(key, []) for key in theirs} == found


@pytest.mark.parametrize(("name", "component"), CASES)
@pytest.mark.rule("objects-11.4")
def test_no_pod_of_a_component_is_rolled_when_it_is_taken_over(name: str, component: str) -> None:
    recording = Recording(name)
    theirs, ours = of(recording.objects, component), of(recording.built(), component)
    sets = [key for key in theirs if key.startswith("StatefulSet/")]
    assert sets
    for key in sets:
        there, here = (each[key]["spec"]["template"]["spec"]["containers"][0] for each in (theirs, ours))
        if there["command"][-1] == "<script>":
            # v1.6's record stays (`member.apply.last_applied`)
            here["command"][-1] = "<script>"
        assert compare_stateful_set(theirs[key], ours[key]).first is None
