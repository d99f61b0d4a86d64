"""Foreign edits as plans: their fields, the owners of the fields, and the affected pods."""

from collections.abc import Mapping

import pytest

from kube.errors import NotFound
from kube.objects import Json
from kube.resources import CONFIG_MAPS, PODS, SERVICES, STATEFUL_SETS, TIDB_CLUSTERS
from simulate.engine.engine import Engine
from simulate.engine.hands import Hands
from simulate.engine.plan import Created, Deleted, Foreign, InvalidPlan, Plan
from simulate.engine.state import State
from simulate.families.field_changes import Change, Changes
from simulate.families.field_owners import Owners
from simulate.families.foreign_hands import FAMILY, OF_DM
from simulate.run import prepare, run

pytestmark = pytest.mark.slow

_PD = f"{STATEFUL_SETS}/basic-pd"


@pytest.fixture(scope="module")
def plans() -> Mapping[str, Plan]:
    return {plan.name: plan for plan in FAMILY.plans()}


@pytest.fixture
def engine() -> Engine:
    return prepare(Plan(name="ready"))


def _tree(engine: Engine, resource: object, name: str) -> Json:
    return next(each for each in State(engine.world).all(resource) if each["metadata"]["name"] == name)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("name", "patch"),
    [
        ("change/services/basic-tidb/spec.type", {"spec": {"type": "NodePort"}}),
        ("lower/statefulsets.apps/basic-tikv/spec.replicas", {"spec": {"replicas": 1}}),
        ("remove/pods/basic-pd-0/metadata.labels", {"metadata": {"labels": None}}),
    ],
)
def test_each_foreign_change_has_a_plan_at_rest_and_a_plan_during_a_roll(
    name: str, patch: Json, plans: Mapping[str, Plan]
) -> None:
    steady, rolling = plans[f"foreign/{name}"], plans[f"foreign/{name}@rolling"]
    for plan in (steady, rolling):
        (hand,) = plan.faults
        assert isinstance(hand, Foreign)
        assert patch == hand.patch
    assert () == steady.edits
    assert rolling.edits[0].at < rolling.faults[0].at  # type: ignore[operator]


@pytest.mark.rule("R27")
def test_the_operator_reverts_or_reports_a_foreign_change(plans: Mapping[str, Plan]) -> None:
    plan = plans["foreign/change/services/basic-tidb/spec.type"]
    assert () == run(prepare(plan), plan).violations


def test_changes_that_the_api_server_refuses_have_no_plan(plans: Mapping[str, Plan]) -> None:
    assert not any("/spec.serviceName" in name or "/metadata.uid" in name for name in plans)


def test_there_are_at_least_300_plans_and_each_is_found_by_its_name(plans: Mapping[str, Plan]) -> None:
    assert len(plans) >= 300
    name = "delete-orphan/statefulsets.apps/basic-pd"
    assert plans[f"foreign/{name}"] == FAMILY.plan(name)
    with pytest.raises(InvalidPlan, match="'nothing' is nothing that others do"):
        FAMILY.plan("nothing")


def test_dm_plans_create_a_dmcluster_and_make_the_same_foreign_changes() -> None:
    target = "dmclusters.pingcap.com/sync"
    found = {plan.name.removeprefix("foreign-dm/"): plan for plan in OF_DM.plans()}
    assert len(found) >= 300
    orphaned = found["delete-orphan/statefulsets.apps/sync-dm-master@rolling"]
    made, roll = orphaned.edits
    assert (target, target) == (made.target, roll.target)
    assert made.at < roll.at < orphaned.faults[0].at  # type: ignore[operator]
    assert {target: "*"} == found["delete-orphan/persistentvolumeclaims/dm-master-sync-dm-master-0"].ends_beside
    assert f"made-again-later/{target}/Orphan" in found
    assert not [name for name in found if "basic" in name]


@pytest.mark.rule("R27")
def test_a_field_that_the_operator_has_written_is_not_foreign(engine: Engine) -> None:
    owners = Owners(engine.calls)

    def theirs(resource: object, name: str, *path: str, verb: str = "change") -> list[object]:
        return list(owners.theirs(resource, _tree(engine, resource, name), Change(verb, path, {})))  # type: ignore[arg-type]

    assert [] == theirs(SERVICES, "basic-tidb", "spec", "selector")
    assert [("spec", "sessionAffinity")] == theirs(SERVICES, "basic-tidb", "spec", "sessionAffinity")
    assert [] == theirs(PODS, "basic-pd-0", "metadata", "labels", "app.kubernetes.io/component")
    assert [] == theirs(PODS, "basic-pd-0", "metadata", "annotations", "prometheus.io/port")
    assert [("metadata", "labels", "foreign")] == theirs(SERVICES, "basic-pd", "metadata", "labels", verb="add")
    assert [] == theirs(SERVICES, "basic-pd", "spec", "selector", verb="add")


def test_a_change_is_a_different_value_that_the_api_server_accepts(engine: Engine) -> None:
    changes = {
        (change.verb, change.name): change.patch
        for change in Changes(engine.admin).of(SERVICES, _tree(engine, SERVICES, "basic-tidb"), "spec")
    }
    assert {"spec": {"type": "NodePort"}} == changes["change", "spec.type"]
    assert ("change", "spec.clusterIP") not in changes
    assert 4001 == changes["change", "spec.ports.0.port"]["spec"]["ports"][0]["port"]
    assert 1 == len(changes["remove", "spec.ports.1"]["spec"]["ports"])


def _hands(engine: Engine) -> Hands:
    return Hands(engine.admin, State(engine.world))


@pytest.mark.parametrize(
    ("hand", "taken"),
    [
        (Deleted(at=0, target="pods/basic-tidb-0"), {"basic-tidb-0"}),
        (Deleted(at=0, target=f"{STATEFUL_SETS}/basic-tidb"), {"basic-tidb-0", "basic-tidb-1"}),
        (Deleted(at=0, target="statefulsets.apps/basic-tidb", propagation="Orphan"), set()),
        (
            Foreign(at=0, target="statefulsets.apps/basic-pd", patch={"spec": {"replicas": 1}}),
            {"basic-pd-1", "basic-pd-2"},
        ),
        (Foreign(at=0, target="statefulsets.apps/basic-pd", patch={"spec": {"template": {}}}), set()),
    ],
)
def test_records_the_pods_that_a_foreign_hand_takes(hand: Deleted | Foreign, taken: set[str], engine: Engine) -> None:
    hands = _hands(engine)
    assert "" == hands.act(hand)
    assert taken == set(hands.taken)


def test_a_deleted_object_is_recreated_without_its_status(engine: Engine) -> None:
    hands, target = _hands(engine), f"{TIDB_CLUSTERS}/basic"
    hands.act(Deleted(at=0, target=target))
    hands.act(Created(at=0, target=target))
    again = engine.cluster()
    assert 3 == again["spec"]["pd"]["replicas"]
    assert not again.get("status")


def test_an_object_that_a_foreign_hand_creates_is_controlled_by_a_foreign_owner(engine: Engine) -> None:
    hands = _hands(engine)
    hands.act(Created(at=0, target="configmaps/others"))
    hands.act(Created(at=0, target="configmaps/more", body={"data": {"a": "b"}}, owner="configmaps/others"))
    (owner,) = engine.admin.get(CONFIG_MAPS, "more", "default").decode()["metadata"]["ownerReferences"]
    assert ("others", True) == (owner["name"], owner["controller"])


def test_a_foreign_hand_that_finds_no_object_gives_up(engine: Engine) -> None:
    said = _hands(engine).act(Deleted(at=0, target="statefulsets.apps/none"))
    assert said.startswith("gives up: ")
    with pytest.raises(NotFound):
        engine.admin.get(STATEFUL_SETS, "none", "default")
