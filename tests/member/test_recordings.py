"""Our objects are those that v1.6 made (objects.md; recordings of a live v1.6.6)."""

import pytest

from apis.accessor import component
from kube.objects import Json
from member.apply.last_applied import compare_stateful_set
from member.naming import member_name
from member.objects.config_map import choose_config_map, in_use_config_map_name
from tests.member.recordings import Recording, differences, workloads

COVERED = ("basic", "gcp", "basic-storagevolumes", "basic-tls", "tiflash", "heterogeneous")
OF_ALL = ("dev-components", "dev-tls", "dev-across")
_EXPLAINED = {
    "StatefulSet pump": ("/spec/updateStrategy/rollingUpdate/partition",),
    "Service tiproxy": ("/spec/publishNotReadyAddresses",),
}
"""Intended differences, by kind and component (docs/compat.md)."""


def _missing(recording: Recording) -> list[str]:
    return sorted(recording.objects.keys() - recording.built().keys())


@pytest.mark.parametrize("name", COVERED)
def test_objects_match_the_recording_field_by_field(name: str) -> None:
    recording = Recording(name)
    found = {}
    for key, ours in recording.built().items():
        if key.startswith("Role/"):
            continue  # differs on purpose, see below
        if lines := differences(recording.objects[key], ours):
            found[key] = lines
    assert found == {}


@pytest.mark.parametrize("name", OF_ALL)
def test_managed_objects_match_recordings_of_all_components(name: str) -> None:
    recording = Recording(name)
    found = {}
    for key, ours in recording.built().items():
        explained = _EXPLAINED.get(f"{key.partition('/')[0]} {key.partition('-')[2]}", ())
        lines = differences(recording.objects[key], ours) if not key.startswith("Role/") else []
        if left := [line for line in lines if line.partition(":")[0] not in explained]:
            found[key] = left
    assert found == {}


@pytest.mark.parametrize("name", COVERED)
def test_everything_recorded_is_created(name: str) -> None:
    recording = Recording(name)
    assert [] == _missing(recording)


@pytest.mark.parametrize(("name", "secrets"), [("basic", []), ("basic-tls", ["basic-tls-cluster-client-secret"])])
@pytest.mark.rule("objects-10.1", "F40")
def test_discovery_reads_its_cluster_and_named_secrets_and_lists_claims(name: str, secrets: list[str]) -> None:
    recording = Recording(name)
    key = next(key for key in recording.objects if key.startswith("Role/"))
    theirs, ours = recording.objects[key]["rules"], recording.built()[key]["rules"]
    assert theirs[0] == ours[0]
    named = [{"apiGroups": [""], "resources": ["secrets"], "resourceNames": [s], "verbs": ["get"]} for s in secrets]
    claims = {"apiGroups": [""], "resources": ["persistentvolumeclaims"], "verbs": ["list"]}
    pods = {"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}
    assert [claims, pods, *named] == ours[1:]


def test_the_comparison_notices_a_changed_a_missing_and_an_extra_field() -> None:
    recording = Recording("basic")
    recorded, ours = recording.objects["StatefulSet/basic-pd"], recording.built()["StatefulSet/basic-pd"]
    container: Json = ours["spec"]["template"]["spec"]["containers"][0]
    container["image"] = "pingcap/pd:v1"
    container["workingDir"] = "/"
    del container["env"][0]
    path = "/spec/template/spec/containers/0"
    assert [
        f"{path}/env/#order",
        f"{path}/env/NAMESPACE/name",
        f"{path}/env/NAMESPACE/valueFrom/fieldRef/fieldPath",
        f"{path}/image",
        f"{path}/workingDir",
    ] == [line.partition(":")[0] for line in differences(recorded, ours)]


@pytest.mark.parametrize("name", COVERED)
@pytest.mark.rule("objects-11.4")
def test_nothing_rolls_when_a_cluster_of_v16_is_taken_over(name: str) -> None:
    recording = Recording(name)
    for key, ours in recording.built().items():
        if not key.startswith("StatefulSet/"):
            continue
        recorded = recording.objects[key]
        running = ours["metadata"]["name"] + "-" + _config_map_name(recorded).rpartition("-")[2]
        _use_config_map(ours, running)
        _with_masked_scripts(ours)
        assert None is compare_stateful_set(recorded, ours).first


def _config_map_name(stateful_set: Json) -> str:
    name: str = stateful_set["spec"]["template"]["spec"]["volumes"][1]["configMap"]["name"]
    return name


def _with_masked_scripts(stateful_set: Json) -> None:
    """Scripts that stand in pods are not recorded; another text of the operator's alone waits (`own_changes`)."""
    for container in stateful_set["spec"]["template"]["spec"].get("initContainers") or ():
        container["command"] = ["<script>" if "\n" in word else word for word in container["command"]]


def _use_config_map(stateful_set: Json, name: str) -> None:
    for volume in stateful_set["spec"]["template"]["spec"]["volumes"][1:3]:
        if "configMap" in volume:
            volume["configMap"]["name"] = name


@pytest.mark.parametrize("name", COVERED)
@pytest.mark.rule("objects-3.5")
def test_the_config_maps_of_v16_keep_name_and_text(name: str) -> None:
    recording = Recording(name)
    for tc in recording.clusters:
        for own in workloads(tc):
            part = own.name
            live = recording.objects[f"StatefulSet/{member_name(tc, part)}"]
            in_use = recording.objects[f"ConfigMap/{member_name(tc, part)}"]
            running = in_use_config_map_name(tc, part, live)
            strategy = component(tc, part).config_update_strategy
            choice = choose_config_map(member_name(tc, part), own.content(tc), strategy, running, in_use)
            assert (running, in_use["data"]) == (choice.name, choice.data)
