"""Random plans about a DMCluster."""

from kube.resources import DM_CLUSTERS
from simulate.engine.other_kinds import DM, spec_of_kind
from simulate.engine.trees import merged
from simulate.families.dm_seeds import FAMILY

SYNC = f"{DM_CLUSTERS}/{DM}"


def test_each_seed_is_a_distinct_reproducible_plan() -> None:
    plans = list(FAMILY.plans())
    assert len(plans) == len({str((plan.edits, plan.faults)) for plan in plans})
    assert plans[17] == FAMILY.plan("17")


def test_every_edit_concerns_the_dmcluster_or_its_objects() -> None:
    for plan in FAMILY.plans():
        leaves, *edits = plan.edits
        assert "tidbclusters.pingcap.com/basic" == leaves.delete
        assert [] == [edit for edit in edits if not (edit.target or edit.delete).partition("/")[2].startswith(DM)]


def test_the_last_spec_of_each_plan_can_be_reached() -> None:
    for plan in FAMILY.plans():
        spec = spec_of_kind(DM_CLUSTERS)
        for edit in (each for each in plan.edits if each.target == SYNC):
            spec = merged(spec, edit.body.get("spec") or edit.spec)
        assert not spec.get("paused")
        assert not [word for word in ("missing", "no-such", "10000", "log = [", "'enabled': True") if word in str(spec)]


def test_some_clusters_are_created_with_a_mistake() -> None:
    made = [next(edit for edit in plan.edits if edit.body) for plan in FAMILY.plans()]
    mistaken = [edit for edit in made if edit.body["spec"] != spec_of_kind(DM_CLUSTERS)]
    assert 0.25 < len(mistaken) / len(made) < 0.45
    assert {1.0} == {edit.at for edit in made}
