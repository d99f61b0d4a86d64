"""Random plans about monitors, initializers, dashboards and NG Monitoring."""

from apis.crd import KINDS, definition
from kube.objects import Json
from simulate.engine.other_kinds import OTHER_KINDS
from simulate.families.other_seeds import FAMILY


def fields(kind: str) -> Json:
    """The fields of the spec of a kind, and their schemas."""
    found = definition(next(each for each in KINDS if each.name == kind))
    properties: Json = found["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]
    return properties


def unknown(tree: Json, schema: Json, path: str = "") -> list[str]:
    """The fields that a schema does not have: the API server would drop them."""
    found = []
    for key, value in tree.items():
        if key not in schema:
            found.append(f"{path}.{key}")
        elif isinstance(value, dict) and "properties" in schema[key]:
            found += unknown(value, schema[key]["properties"], f"{path}.{key}")
    return found


def test_each_seed_is_a_reproducible_plan_and_few_are_alike() -> None:
    """Some only create an object and wait until it is Ready."""
    plans = list(FAMILY.plans())
    assert 0.9 < len({str((plan.edits, plan.faults)) for plan in plans}) / len(plans)
    assert plans[17] == FAMILY.plan("17")


def test_every_edit_changes_a_field_that_exists() -> None:
    schemas = {str(each): fields(each.kind) for each in OTHER_KINDS}
    for plan in FAMILY.plans():
        for edit in plan.edits:
            schema = schemas[(edit.target or edit.delete).partition("/")[0]]
            assert [] == unknown(edit.body.get("spec") or edit.spec, schema), plan.name


def test_the_first_edit_creates_the_object_and_the_last_spec_can_be_reached() -> None:
    for plan in FAMILY.plans():
        first, *_ = plan.edits
        assert first.body, plan.name
        assert "missing" not in str(plan.edits[-1].spec), plan.name
