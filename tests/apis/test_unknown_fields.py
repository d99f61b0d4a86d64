"""Fields that no model has are named by their paths, with the field that was meant."""

from collections.abc import Iterable
from itertools import chain
from pathlib import Path

import pytest
import yaml

from apis import crd
from apis.shared import Json
from apis.tidbcluster import TidbCluster
from apis.unknown_fields import UnknownField, unknown_fields
from tests.apis.clusters import golden, minimal, tree
from tests.apis.field_trees import shared_file
from tests.apis.field_typos import Holder, Typo, holders, misplaced, slips

_REPOSITORY = Path(__file__).resolve().parents[2]
_MODELS = {kind.name: kind.model for kind in crd.KINDS}

_MISSPELLED = "01-typo-in-affinity.yaml"


def _one_of_each_type() -> list[Holder]:
    return list({tuple(each.fields): each for each in holders()}.values())


def _unnamed(typos: Iterable[Typo]) -> list[tuple[str, list[str]]]:
    """Typing errors that are not the only unknown field of their object, or that have no proposal."""
    found = ((typo, unknown_fields(typo.tree, typo.model)) for typo in typos)
    return [(typo.path, [str(each) for each in unknown]) for typo, unknown in found if not _names(typo, unknown)]


def _names(typo: Typo, found: list[UnknownField]) -> bool:
    parent = typo.path.rpartition(".")[0]
    proposed = [name if "." in name else f"{parent}.{name}" for each in found for name in each.nearest]
    return [typo.path] == [each.path for each in found] and typo.meant in proposed


def test_names_a_misspelled_field_of_an_affinity() -> None:
    raw = shared_file("cases", _MISSPELLED).read_text(encoding="utf-8")
    required = "podAntiAffinity.requiredDuringScheduling"
    assert [
        f"spec.pd.affinity.{required}IgnoredDuringExecution[0].labelSelector.matchLabel: unknown field; "
        "did you mean matchLabels?",
        f"spec.tikv.affinity.{required}: unknown field; did you mean requiredDuringSchedulingIgnoredDuringExecution?",
        "spec.tidb.podSecurityContext.sysctl: unknown field; did you mean sysctls?",
    ] == sorted((str(each) for each in unknown_fields(yaml.safe_load(raw), TidbCluster)), key=_in_order)


def _in_order(said: str) -> int:
    return ["pd", "tikv", "tidb"].index(said.split(".")[1])


def test_names_fields_that_the_operators_models_lack() -> None:
    body = tree(
        {
            "pvreclaimpolicy": "Retain",
            "tikv": {"replicas": 1, "storageVolumes": [{"nmae": "x"}], "requests": {"any-resource": 1}},
            "pd": {"replica": 3, "qqq": 1},
        },
        labels={"any": "x"},
        finalizers=[],
    )
    assert [
        "spec.pvreclaimpolicy: unknown field; did you mean pvReclaimPolicy?",
        "spec.pd.replica: unknown field; did you mean replicas?",
        "spec.pd.qqq: unknown field",
        "spec.tikv.storageVolumes[0].nmae: unknown field; did you mean name?",
    ] == [str(each) for each in unknown_fields(body, TidbCluster)]


@pytest.mark.parametrize(
    ("part", "said"),
    [
        ({"affinity": {"tolerations": []}}, "affinity.tolerations: unknown field; did you mean spec.pd.tolerations?"),
        (
            {"env": [{"name": "A", "secretKeyRef": {"name": "x", "key": "y"}}]},
            "env[0].secretKeyRef: unknown field; did you mean spec.pd.env[0].valueFrom.secretKeyRef?",
        ),
        (
            {"affinity": {"requiredDuringSchedulingIgnoredDuringExecution": []}},
            "affinity.requiredDuringSchedulingIgnoredDuringExecution: unknown field; did you mean "
            "spec.pd.affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution or "
            "spec.pd.affinity.podAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution?",
        ),
        (
            {"additionalContainers": [{"name": "a", "brandNew": 1}]},
            "additionalContainers[0].brandNew: not known to this operator",
        ),
    ],
)
def test_proposes_the_place_where_a_field_belongs(part: Json, said: str) -> None:
    assert [f"spec.pd.{said}"] == [str(each) for each in unknown_fields(tree(minimal(pd=part)), TidbCluster)]


def test_ignores_keys_that_the_user_chooses() -> None:
    parts = {
        "config": {"any": {"key": 1}},
        "affinity": {
            "podAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": [{"labelSelector": {"matchLabels": {"any": "x"}}}]
            }
        },
        "additionalVolumes": [{"name": "a", "csi": {"driver": "x", "volumeAttributes": {"any": "x"}}}],
        "nodeSelector": {"any": "x"},
    }
    assert [] == unknown_fields(tree(minimal(pd=parts, tikv=parts)), TidbCluster)


def test_names_every_misspelling_of_some_fields() -> None:
    assert [] == _unnamed(chain.from_iterable(map(slips, _one_of_each_type()[::8])))


@pytest.mark.slow
def test_names_every_misspelling_of_every_field() -> None:
    assert [] == _unnamed(chain.from_iterable(map(slips, _one_of_each_type())))


@pytest.mark.slow
def test_names_every_misplaced_field() -> None:
    assert [] == _unnamed(chain.from_iterable(map(misplaced, _one_of_each_type())))


@pytest.mark.slow
@pytest.mark.thorough
@pytest.mark.parametrize("kind", crd.KINDS, ids=lambda kind: kind.name)
def test_names_misspelled_and_misplaced_fields_of_every_embedded_type(kind: crd.Kind) -> None:
    assert [] == _unnamed(chain.from_iterable((*slips(each), *misplaced(each)) for each in holders([kind])))


def _manifests() -> list[tuple[str, Json]]:
    """The objects of our kinds among the samples, the inputs of the specification and what v1.6 stored."""
    files = [*(_REPOSITORY / "manifests" / "samples").glob("*.yaml"), *shared_file("cases").glob("*.yaml")]
    documents = [(path.name, each) for path in files for each in yaml.safe_load_all(path.read_text(encoding="utf-8"))]
    objects = [*documents, *golden()]
    return [(name, each) for name, each in objects if isinstance(each, dict) and each.get("kind") in _MODELS]


@pytest.mark.slow
def test_a_valid_manifest_has_no_unknown_field() -> None:
    manifests = _manifests()
    assert len(manifests) > 80
    found = [
        (name, str(unknown))
        for name, each in manifests
        for unknown in unknown_fields(each, _MODELS[each["kind"]])
        if name != _MISSPELLED
    ]
    assert [] == found
