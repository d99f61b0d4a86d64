"""`kubectl tidb doctor`: its output, its exit codes, and its behaviour without rights (13)."""

from collections.abc import Iterator

import msgspec
import pytest

from cli.doctor.reading import CannotLook
from kube.objects import Json
from kube.resources import NAMESPACES, TIDB_CLUSTERS
from ports.clock import FakeClock
from sandbox.apiserver.faults import Fault
from sandbox.apiserver.refusals import Refusal
from sandbox.world import World
from tests.cli.doctor.looking import renew
from tests.cli.tidb.typing_commands import Terminal
from tests.operator_world import OperatorWorld, sample


@pytest.fixture(scope="module")
def world() -> Iterator[OperatorWorld]:
    """A cluster that requests more CPU than exists, and has no certificate."""
    world = OperatorWorld()
    tree = sample("basic")
    much = {"cpu": "400", "memory": "1Gi"}
    tree["spec"]["pd"] |= {"requests": much | {"storage": "1Gi"}, "limits": much}
    world.apply(tree)
    world.run(5.0)
    yield world
    world.stop()


@pytest.fixture
def terminal(world: OperatorWorld, capsys: pytest.CaptureFixture[str]) -> Terminal:
    """A terminal in front of it, while an operator leads."""
    renew(world.admin, world.clock.wall())
    return Terminal(world.admin, capsys, world.clock)


@pytest.mark.rule("13")
def test_a_page_names_object_field_value_and_way_out_in_80_columns(terminal: Terminal) -> None:
    assert (
        "TidbCluster default/basic: 1 problem\n"
        "\n"
        "Problem InsufficientCPU  Pod basic-pd-0\n"
        "  3 of 3 nodes have too little free CPU\n"
        "  spec.pd.requests.cpu: 400\n"
        "  Way out: Lower the request, or add nodes that are large enough.\n"
    ) == terminal.type("doctor", "basic", code=1)


@pytest.mark.rule("13")
def test_examines_all_clusters_of_the_namespace_by_default(terminal: Terminal) -> None:
    assert terminal.type("doctor", code=1) == terminal.type("doctor", "tc/basic", code=1)


@pytest.fixture
def elsewhere(world: OperatorWorld) -> Iterator[None]:
    """A second cluster, which the operator has not seen, in another namespace."""
    world.admin.create(NAMESPACES, {"metadata": {"name": "shop"}})
    world.admin.create(TIDB_CLUSTERS, sample("basic"), "shop")
    yield
    world.admin.delete(TIDB_CLUSTERS, "basic", "shop")


@pytest.mark.usefixtures("elsewhere")
@pytest.mark.rule("13")
def test_clusters_of_all_namespaces_are_examined_with_their_own_objects(terminal: Terminal) -> None:
    page = terminal.type("doctor", "-A", code=1)
    assert page.startswith("2 clusters: ")
    assert "Problem InsufficientCPU  default/basic Pod basic-pd-0\n" in page
    clusters = terminal.document("doctor", "-A", code=1)["clusters"]
    assert [("default", "basic"), ("shop", "basic")] == [(each["namespace"], each["name"]) for each in clusters]
    assert "InsufficientCPU" not in {each["reason"] for each in clusters[1]["findings"]}
    with pytest.raises(CannotLook, match="basic: leave out -A; -n names the namespace of a cluster"):
        terminal.type("doctor", "basic", "-A")


@pytest.mark.rule("13")
def test_the_json_document_has_every_part_of_a_finding(terminal: Terminal, capsys: pytest.CaptureFixture[str]) -> None:
    text = terminal.type("doctor", "basic", "-o", "json", code=1)
    (cluster,) = _decoded(text)["clusters"]
    (finding,) = cluster["findings"]
    assert ("default", "basic", False, {}) == (
        cluster["namespace"],
        cluster["name"],
        cluster["healthy"],
        cluster["notLookedAt"],
    )
    assert {
        "severity": "Problem",
        "reason": "InsufficientCPU",
        "objects": ["Pod basic-pd-0"],
        "message": "3 of 3 nodes have too little free CPU",
        "field": "spec.pd.requests.cpu",
        "value": "400",
        "wayOut": "Lower the request, or add nodes that are large enough.",
    } == finding


def _decoded(text: str) -> Json:
    found: Json = msgspec.json.decode(text)
    return found


@pytest.mark.rule("13")
def test_names_resources_that_it_may_not_read_and_examines_the_others(terminal: Terminal, world: OperatorWorld) -> None:
    what = 'nodes is forbidden: User "you" cannot list resource "nodes"'
    heal = world.world.faults.api_fault(Fault(refusal=Refusal(403, "Forbidden", what)), verb="list", resource="nodes")
    said = terminal.type("doctor", "basic", code=1)
    heal()
    assert "Problem InsufficientCPU  Pod basic-pd-0\n" in said
    assert 'Not read: nodes: nodes is forbidden: User "you" cannot list resource' in said


@pytest.mark.rule("13")
def test_exits_with_2_if_it_may_not_list_clusters(terminal: Terminal, world: OperatorWorld) -> None:
    refusal = Refusal(403, "Forbidden", "tidbclusters.pingcap.com is forbidden")
    resource = str(TIDB_CLUSTERS)
    heal = world.world.faults.api_fault(Fault(refusal=refusal), verb="list", resource=resource)
    with pytest.raises(CannotLook, match=r"refused by the API server: tidbclusters\.") as failure:
        terminal.type("doctor", "basic")
    heal()
    assert 2 == failure.value.code


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["shop"], "no cluster shop in namespace default; there is tc/basic"),
        (["dc/basic"], "no cluster dc/basic in namespace default; there is tc/basic"),
        (["-n", "empty"], "no TidbCluster or DMCluster in namespace empty; name another one with -n, or -A for all"),
    ],
)
@pytest.mark.rule("13")
def test_exits_with_2_if_the_cluster_does_not_exist(terminal: Terminal, arguments: list[str], told: str) -> None:
    with pytest.raises(CannotLook) as failure:
        terminal.type("doctor", *arguments)
    assert (2, told) == (failure.value.code, str(failure.value))


@pytest.mark.rule("13")
def test_exits_with_2_if_the_api_server_does_not_answer(terminal: Terminal, world: OperatorWorld) -> None:
    heal = world.world.faults.api_fault(Fault(lose_request=True))
    with pytest.raises(CannotLook) as failure:
        terminal.type("doctor", "basic")
    heal()
    assert 2 == failure.value.code


@pytest.mark.rule("13.2")
def test_a_missing_definition_is_the_only_problem(capsys: pytest.CaptureFixture[str]) -> None:
    world = World(FakeClock())
    try:
        renew(world.client(), world.clock.wall())
        said = Terminal(world.client(), capsys, world.clock).type("doctor", code=1)
    finally:
        world.stop()
    named = "CustomResourceDefinition tidbclusters.pingcap.com"
    assert said.startswith(f"No cluster: 1 problem\n\nProblem CRDMissing  {named}")


@pytest.mark.rule("13")
def test_writes_nothing_and_sends_few_requests(terminal: Terminal, world: OperatorWorld) -> None:
    world.world.server.audit.clear()
    terminal.type("doctor", "basic", code=1)
    asked = [entry.call for entry in world.world.server.audit.recent()]
    assert not [call for call in asked if call.is_write]
    assert len(asked) <= 25
