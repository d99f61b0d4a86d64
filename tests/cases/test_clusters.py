"""Manifests of TidbClusters that once failed or were silently ignored."""

from pathlib import Path

import pytest

from cli import manifests
from cli.awaited import AWAITED
from kube.objects import Json
from kube.resources import PODS, SERVICES, STATEFUL_SETS, TIDB_CLUSTERS, TIDB_MONITORS
from sandbox.apiserver.services import NODE_PORTS
from tests.cases.case_world import CaseWorld, of_case

pytestmark = pytest.mark.slow

_READY_WITHIN = 120.0
_LEFT_TO_USERS = 86
"""The first node ports, which Kubernetes leaves to users as long as others are free."""


def _name(documents: list[Json]) -> str:
    return str(documents[0]["metadata"]["name"])


def _namespace(documents: list[Json]) -> str:
    return str(documents[0]["metadata"].get("namespace") or "default")


def _bring_up(world: CaseWorld, documents: list[Json]) -> None:
    world.apply_all(documents)
    clusters = [(each, _namespace([each])) for each in documents if each["kind"] == TIDB_CLUSTERS.kind]
    world.run_until(lambda: all(world.serves(_name([each]), namespace) for each, namespace in clusters), _READY_WITHIN)
    world.run(5.0)


def _images(world: CaseWorld, namespace: str = "default") -> dict[str, str]:
    """The image of the first container of each pod of a StatefulSet."""
    pods = [each.decode() for each in world.admin.list_page(PODS, namespace).items]
    of_sets = [each for each in pods if each["metadata"]["ownerReferences"][0]["kind"] == STATEFUL_SETS.kind]
    return {each["metadata"]["name"]: _own_image(each) for each in of_sets}


def _own_image(pod: Json) -> str:
    component = pod["metadata"]["labels"]["app.kubernetes.io/component"]
    return next(str(each["image"]) for each in pod["spec"]["containers"] if each["name"] == component)


_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


@of_case(
    "01-typo-in-affinity.yaml",
    ours=[
        "spec.pd.additionalVolumes[0].emptyDir.sizelimit: unknown field; did you mean sizeLimit?",
        f"spec.tikv.affinity.nodeAffinity.{_REQUIRED}.nodeSelectorTerm: unknown field; did you mean nodeSelectorTerms?",
        "spec.tidb.tolerations[0].efect: unknown field; did you mean effect?",
    ],
    shared=[
        f"spec.pd.affinity.podAntiAffinity.{_REQUIRED}[0].labelSelector.matchLabel: unknown field; did you mean matchL",
        f"spec.tikv.affinity.podAntiAffinity.requiredDuringScheduling: unknown field; did you mean {_REQUIRED}?",
        "spec.tidb.podSecurityContext.sysctl: unknown field; did you mean sysctls?",
    ],
)
def test_misspelled_fields_in_kubernetes_types_are_named_by_path(
    world: CaseWorld, path: Path, documents: list[Json], expected: list[str]
) -> None:
    world.apply_all(documents)
    world.run(5.0)
    name = _name(documents)
    for said in (world.message(TIDB_CLUSTERS, name, "UnknownFields"), "\n".join(world.warnings(name))):
        assert [] == [each for each in expected if each not in said]
    with pytest.raises(manifests.BadManifest) as refused:
        manifests.parse(path.read_bytes(), "case")
    assert [] == [each for each in expected if each not in str(refused.value)]


@of_case("02-image-on-a-running-cluster.yaml", ours="tikv", shared="tidb")
def test_an_image_beside_base_image_is_named_and_restarts_nothing(
    world: CaseWorld, documents: list[Json], expected: str
) -> None:
    _bring_up(world, documents)
    before, name, patched = _images(world), _name(documents), "localhost:5000/db:patched"
    world.change(name, **{expected: {"image": patched}})
    world.run(30.0)
    assert before == _images(world)
    said = world.message(TIDB_CLUSTERS, name, "FieldsIgnored")
    assert f'spec.{expected}.image: "{patched}": has no effect, because {before[f"{name}-{expected}-0"]} runs' in said
    assert "write baseImage: localhost:5000/db and version: patched" in said
    assert [] != [each for each in world.warnings(name) if f"spec.{expected}.image" in each]


@of_case("03-image-from-the-tidb-cluster-chart.yaml")
def test_an_image_alone_runs_and_its_tag_is_the_version(world: CaseWorld, documents: list[Json]) -> None:
    _bring_up(world, documents)
    spec, images = documents[0]["spec"], _images(world)
    wanted = {f"{_name(documents)}-{each}-0": spec[each]["image"] for each in ("pd", "tikv", "tidb")}
    assert wanted == {name: images[name] for name in wanted}
    assert "" == world.message(TIDB_CLUSTERS, _name(documents), "FieldsIgnored")


@of_case(
    "08-node-port-below-30086.yaml",
    ours=("any-port", "chosen-ports", {30001, 30085}),
    shared=("a", "b", {30000}),
)
def test_a_chosen_node_port_is_free_though_others_were_given(
    world: CaseWorld, documents: list[Json], expected: tuple[str, str, set[int]]
) -> None:
    _bring_up(world, documents)
    given, chosen, ports = expected
    assert ports <= _node_ports(world, chosen)
    assert min(_node_ports(world, given)) >= NODE_PORTS[_LEFT_TO_USERS]


def _node_ports(world: CaseWorld, name: str) -> set[int]:
    return {each["nodePort"] for each in world.get(SERVICES, f"{name}-tidb")["spec"]["ports"]}


@of_case(
    "09-storage-of-tidb.yaml",
    ours=[
        'spec.tiproxy.requests.storage: "5Gi": has no effect, because TiProxy has no data volume; remove it, or list '
    ],
    shared=[
        'spec.tidb.requests.storage: "30Gi": has no effect, because TiDB has no data volume; remove it',
        'spec.tidb.storageClassName: "standard": has no effect, because TiDB has no data volume; remove',
    ],
)
def test_storage_of_a_component_without_volumes_is_named(
    world: CaseWorld, documents: list[Json], expected: list[str]
) -> None:
    _bring_up(world, documents)
    said = world.message(TIDB_CLUSTERS, _name(documents), "FieldsIgnored")
    assert [] == [each for each in expected if each not in said]


@of_case("10-v2.yaml")
def test_the_api_of_version_2_is_named_with_what_to_write_instead(world: CaseWorld, documents: list[Json]) -> None:
    with pytest.raises(manifests.BadManifest) as refused:
        world.apply_all(documents)
    assert "core.pingcap.com/v1alpha1 belongs to TiDB Operator v2, which this operator does not manage" in str(
        refused.value
    )
    assert "write a TidbCluster of pingcap.com/v1alpha1" in str(refused.value)


@of_case("11-pre-release-image.yaml")
def test_images_of_versions_before_a_release_run(world: CaseWorld, documents: list[Json]) -> None:
    _bring_up(world, documents)
    spec = documents[0]["spec"]
    components = [each for each in ("pd", "tikv", "tidb") if each in spec]
    wanted = {each: f"pingcap/{each}:{spec[each].get('version', spec['version'])}" for each in components}
    images = _images(world)
    assert wanted == {each: images[f"{_name(documents)}-{each}-0"] for each in components}


@of_case(
    "12b-settings-that-are-silently-overridden.yaml",
    ours=[
        "spec.pd.config.advertise-client-urls",
        "spec.tikv.config.server.addr",
        "spec.tikv.config.server.advertise-addr",
        "spec.tidb.config.advertise-address",
    ],
    shared=[
        "spec.pd.config.name",
        "spec.pd.config.data-dir",
        "spec.tikv.config.pd.endpoints",
        "spec.tikv.config.storage.data-dir",
        "spec.tidb.config.store",
        "spec.tidb.config.path",
        "spec.tidb.config.log.slow-query-file",
        "spec.tiproxy.config.proxy.pd-addrs",
    ],
)
def test_settings_that_do_not_hold_are_named_and_the_others_hold(
    world: CaseWorld, documents: list[Json], expected: list[str]
) -> None:
    _bring_up(world, documents)
    said = world.message(TIDB_CLUSTERS, _name(documents), "SettingsOverridden", _namespace(documents))
    assert sorted(expected) == sorted(each.partition(":")[0] for each in said.split("; ") if ".config." in each)


@of_case("20-private-registry-dual-stack-nonroot.yaml")
def test_every_service_is_dual_stack_and_an_empty_security_context_gives_no_privileges(
    world: CaseWorld, documents: list[Json]
) -> None:
    _bring_up(world, documents)
    namespace = _namespace(documents)
    services = [each.decode() for each in world.admin.list_page(SERVICES, namespace).items]
    assert [] == [
        each["metadata"]["name"] for each in services if each["spec"].get("ipFamilyPolicy") != "PreferDualStack"
    ]
    assert {TIDB_MONITORS.kind, TIDB_CLUSTERS.kind} <= {
        owner["kind"] for each in services for owner in each["metadata"]["ownerReferences"]
    }
    pods = [each.decode() for each in world.admin.list_page(PODS, namespace).items]
    assert [] == [
        f"{pod['metadata']['name']} {container['name']}"
        for pod in pods
        for container in (*pod["spec"]["containers"], *pod["spec"].get("initContainers", ()))
        if (container.get("securityContext") or {}).get("privileged")
    ]
    others = [(each["kind"], each["metadata"]["name"]) for each in documents[1:]]
    assert [] == [each for each in others if not _ready(world, *each, namespace)]


def _ready(world: CaseWorld, kind: str, name: str, namespace: str) -> bool:
    return world.conditions(AWAITED[kind], name, namespace).get("Ready", ("",))[0] == "True"
