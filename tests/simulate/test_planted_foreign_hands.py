"""The judge notices if foreign edits are not undone, or only by a restart: one defect in each test."""

import pytest

import member.lifecycle.component_sync
import member.lifecycle.roll
import member.lifecycle.roll_view
import member.lifecycle.wanted_state
import member.objects.config_map
import meta.labelling
from kube.objects import Json, Object
from kube.resources import PODS
from member import labels
from member.context import ReconcileContext
from meta.metadata import DesiredMetadata
from simulate.families.foreign_hands import FAMILY
from simulate.oracles import compare, reference
from tests.simulate.planting import Plant, broken, nothing, rogue

pytestmark = [pytest.mark.slow, pytest.mark.planted]


def found(name: str, plant: Plant) -> set[str]:
    """The violations of a plan when the operator has a defect, also by comparison with a run without foreign edits."""
    plan = FAMILY.plan(name)
    honest = reference([broken(plan.without_faults(), lambda: None)])
    outcome = broken(plan, plant)
    return {each.rule for each in (*outcome.violations, *compare(outcome, honest))}


@pytest.mark.parametrize(
    "name",
    [
        "remove/services/basic-pd/spec.selector",
        "add/services/basic-pd/spec.selector",
        "change/configmaps/basic-tikv-3961653/data.startup-script",
        "remove/pods/basic-tikv-0/metadata.labels",
        "change/persistentvolumeclaims/tikv-basic-tikv-0/spec.resources.requests.storage",
        "delete-background/statefulsets.apps/basic-tidb",
    ],
)
def test_reports_nothing_without_a_defect(name: str) -> None:
    assert set() == found(name, lambda: None)


@pytest.mark.rule("O1")
def test_reports_a_selector_that_is_not_restored(monkeypatch: pytest.MonkeyPatch) -> None:
    plant = lambda: monkeypatch.setattr(member.lifecycle.component_sync, "apply_service", nothing)  # noqa: E731

    assert "O1" in found("add/services/basic-tidb/spec.selector", plant)


def no_metadata(*_: object) -> DesiredMetadata:
    return DesiredMetadata()


@pytest.mark.rule("O1")
def test_reports_pod_metadata_that_is_not_restored(monkeypatch: pytest.MonkeyPatch) -> None:
    plant = lambda: monkeypatch.setattr(meta.labelling, "of_template", no_metadata)  # noqa: E731

    assert "O1" in found("change/pods/basic-tikv-0/metadata.annotations.prometheus.io/port", plant)


@pytest.mark.rule("R24")
def test_reports_a_pod_deleted_to_restore_its_label(monkeypatch: pytest.MonkeyPatch) -> None:
    def restart(ctx: ReconcileContext) -> None:
        pod: Object | None = ctx.deps.client.find(PODS, "basic-tikv-0", ctx.namespace)
        if pod is not None and labels.COMPONENT not in pod.metadata.labels:
            ctx.deps.client.delete(PODS, "basic-tikv-0", ctx.namespace)

    def plant() -> None:
        monkeypatch.setattr(meta.labelling, "of_template", no_metadata)
        rogue(restart, monkeypatch)()

    assert "R24" in found("remove/pods/basic-tikv-0/metadata.labels", plant)


@pytest.mark.rule("R24")
def test_reports_a_foreign_config_map_edit_that_rolls_the_component(monkeypatch: pytest.MonkeyPatch) -> None:
    def believed(_name: str, there: Json, *_: object) -> Json:
        return there

    def plant() -> None:
        monkeypatch.setattr(member.objects.config_map, "_as_named", believed)
        monkeypatch.setattr(member.lifecycle.wanted_state, "own_change", lambda *_, **__: None)

    assert "R24" in found("change/configmaps/basic-tikv-3961653/data.config-file", plant)


@pytest.mark.rule("O10")
def test_reports_a_pod_restarted_while_its_claim_is_being_deleted(monkeypatch: pytest.MonkeyPatch) -> None:
    def unseen(*_: object) -> None:
        return None

    def plant() -> None:
        monkeypatch.setattr(member.lifecycle.roll_view, "volume_being_deleted", unseen)
        monkeypatch.setattr(member.lifecycle.roll, "would_lose_volume", unseen)

    assert "O10" in found("delete-background/persistentvolumeclaims/tikv-basic-tikv-0@rolling", plant)
