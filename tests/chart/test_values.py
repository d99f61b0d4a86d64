"""The values that the chart accepts, and its messages for others (scheduler-deployment.md 9)."""

import json
import re
from collections.abc import Iterator

import pytest
import yaml

from kube.objects import Json
from tests.chart.helm import CHART, ROOT, Helm

VALUES: Json = yaml.safe_load((CHART / "values.yaml").read_text())
SCHEMA: Json = json.loads((CHART / "values.schema.json").read_text())
REFUSED: list[dict[str, str]] = yaml.safe_load((CHART / "refused-values.yaml").read_text())

_PERIODS = ("pd", "tikv", "tidb", "tiflash", "dmMaster", "dmWorker")
V1_6: Json = {
    "clusterScoped": True,
    "rbac.create": True,
    "timezone": "UTC",
    "imagePullPolicy": "IfNotPresent",
    "features": [],
    "appendReleaseSuffix": False,
    "controllerManager.create": True,
    "controllerManager.serviceAccount": "tidb-controller-manager",
    "controllerManager.automountServiceAccountToken": True,
    "controllerManager.clusterPermissions": {"nodes": True, "persistentvolumes": True, "storageclasses": True},
    "controllerManager.logLevel": 2,
    "controllerManager.replicas": 1,
    "controllerManager.autoFailover": True,
    **{f"controllerManager.{each}FailoverPeriod": "5m" for each in _PERIODS},
    "controllerManager.detectNodeFailure": False,
    "controllerManager.podHardRecoveryPeriod": "24h",
    "controllerManager.selector": [],
    "controllerManager.env": [],
    "controllerManager.nodeSelector": {},
    "controllerManager.tolerations": [],
    "controllerManager.affinity": {},
    "scheduler.create": False,
    "scheduler.serviceAccount": "tidb-scheduler",
    "scheduler.schedulerName": "tidb-scheduler",
    "scheduler.logLevel": 2,
    "scheduler.replicas": 1,
    "scheduler.kubeSchedulerImageName": "registry.k8s.io/kube-scheduler",
}
"""Values of v1.6's chart that mean the same here, with their defaults."""


def _at(path: str) -> object:
    value: object = VALUES
    for step in path.split("."):
        assert isinstance(value, dict)
        value = value[step]
    return value


@pytest.mark.parametrize("path", V1_6)
@pytest.mark.rule("scheduler-deployment-9")
def test_a_value_of_v1_6_has_its_default(path: str) -> None:
    assert V1_6[path] == _at(path)


@pytest.mark.rule("scheduler-deployment-9")
def test_a_copy_of_v1_6s_values_is_accepted(helm: Helm) -> None:
    """Values that are switched off, or set but empty."""
    off = {
        "testMode": False,
        "advancedStatefulset": {"create": False, "image": "pingcap/advanced-statefulset:v0.7.0", "replicas": 1},
        "admissionWebhook": {"create": False, "replicas": 1, "validation": {"statefulSets": False}},
        "controllerManager.priorityClassName": None,
        "controllerManager.securityContext": {},
        "controllerManager.podAnnotations": {},
        "scheduler.kubeSchedulerImageTag": None,
    }
    assert helm.template({**V1_6, **off})


def test_helm_finds_nothing_to_say(helm: Helm) -> None:
    said = [line for line in helm.succeed("lint", "--strict", str(CHART)).splitlines() if line.startswith("[")]
    assert ["[INFO] Chart.yaml: icon is recommended"] == said


@pytest.mark.parametrize(
    ("path", "value", "told"),
    [
        ("controllerManager.replica", 2, "at '/controllerManager': additional properties 'replica' not allowed"),
        ("clusterscoped", False, "at '': additional properties 'clusterscoped' not allowed"),
        ("controllerManager.replicas", "two", "at '/controllerManager/replicas': got string, want integer"),
        ("controllerManager.replicas", -1, "at '/controllerManager/replicas': minimum: got -1, want 0"),
        ("controllerManager.workers", 0, "at '/controllerManager/workers': minimum: got 0, want 1"),
        (
            "controllerManager.selector",
            ["version in (a, b)"],
            "at '/controllerManager/selector/0': 'version in (a, b)'",
        ),
        ("controllerManager.pdFailoverPeriod", "5 minutes", "at '/controllerManager/pdFailoverPeriod': '5 minutes'"),
        ("controllerManager.leaderResourceLock", "endpoints", "leaderResourceLock': value must be 'leases'"),
        ("controllerManager.extraArgs", ["v=4"], "at '/controllerManager/extraArgs/0': 'v=4' does not match pattern"),
        ("controllerManager.podDisruptionBudget", {"maxUnavailable": "all"}, "maxUnavailable': 'all' does not match"),
        ("features", ["VolumeReplacement=true"], "(AdvancedStatefulSet|StableScheduling|VolumeModifying|VolumeReplac"),
        ("features", "VolumeReplacing=true", "at '/features': got string, want array"),
        ("imagePullPolicy", "never", "value must be one of 'Always', 'IfNotPresent', 'Never'"),
        ("imagePullSecrets", ["registry"], "at '/imagePullSecrets/0': got string, want object"),
        ("networkPolicy.extraPorts", [0], "at '/networkPolicy/extraPorts/0': minimum: got 0, want 1"),
        ("networkPolicy.apiServerPorts", [], "at '/networkPolicy/apiServerPorts': minItems: got 0, want 1"),
    ],
)
def test_the_schema_refuses_and_names_the_value(helm: Helm, path: str, value: object, told: str) -> None:
    assert told in helm.refusal({path: value})


_UNUSABLE = [
    *((each["value"], True, f"- {each['value']}: true: {each['instead']}\n") for each in REFUSED),
    ("operatorImage", "registry/pingcap/tidb-operator:v1.6.6", "v1.6.6: is v1.6's operator by its name; build ours f"),
    ("controllerManager.env", [{"name": "TZ", "value": "CET"}], "controllerManager.env: TZ: the chart sets it; leave"),
]


@pytest.mark.parametrize(("path", "value", "told"), _UNUSABLE, ids=[path for path, *_ in _UNUSABLE])
@pytest.mark.rule("scheduler-deployment-9")
def test_meaningless_values_are_refused_with_the_way_out(helm: Helm, path: str, value: object, told: str) -> None:
    assert told in helm.refusal({path: value})


@pytest.mark.rule("scheduler-deployment-9")
def test_all_unusable_values_are_reported_at_once(helm: Helm) -> None:
    told = helm.refusal({path: value for path, value, _ in _UNUSABLE})
    assert len(_UNUSABLE) == len(re.findall(r"^- ", told, re.MULTILINE))


@pytest.mark.parametrize(
    "image",
    [
        "registry.example.com/tidb/tidb-operator:v1.6.0",
        "registry.example.com:5000/tidb-operator-arm64@sha256:0123",
        "acme/acme-tidb-operator",
        "tidb-operator",
    ],
)
def test_v16s_image_is_recognised_in_mirrors_and_forks(helm: Helm, image: str) -> None:
    assert f"operatorImage: {image}: is v1.6's operator by its name" in helm.refusal({"operatorImage": image})


@pytest.mark.parametrize("image", ["registry/tidb-operator-py:v1", "tidb-operator:5000/databases/tidb-operator-py"])
def test_our_own_image_is_taken_from_any_registry(helm: Helm, image: str) -> None:
    assert helm.template({"operatorImage": image, "controllerManager.env": [{"name": "A"}]})


def test_the_command_is_at_a_path_that_v16s_image_lacks(helm: Helm) -> None:
    (deployment,) = (each for each in helm.template({}) if each["kind"] == "Deployment")
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    assert ["/opt/tidb-operator/bin/tidb-controller-manager"] == container["command"]


def test_the_guide_names_each_value_that_is_refused() -> None:
    guide = (ROOT / "docs" / "migration.md").read_text(encoding="utf-8")
    assert [] == [path for path, *_ in _UNUSABLE if f"`{path}`" not in guide]


def test_every_value_is_known_to_the_schema_and_said_what_for() -> None:
    assert [] == [path for path in _paths(VALUES) if not _known(path)]
    text = (CHART / "values.yaml").read_text().splitlines()
    sections = [number for number, line in enumerate(text) if re.match(r"[a-z]\w+:$", line)]
    explained = {"controllerManager:", "rbac:", "monitoring:"}
    assert [] == [text[line] for line in sections if not text[line - 1].startswith("#") and text[line] not in explained]


def _paths(tree: Json, above: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    for name, value in tree.items():
        yield (*above, name)
        if isinstance(value, dict):
            yield from _paths(value, (*above, name))


def _known(path: tuple[str, ...]) -> bool:
    schema = SCHEMA
    for step in path:
        if "properties" not in schema:
            return True
        if step not in schema["properties"]:
            return False
        schema = schema["properties"][step]
        if "$ref" in schema:
            schema = SCHEMA["definitions"][schema["$ref"].rpartition("/")[2]]
    return True
