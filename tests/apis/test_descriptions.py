"""`kubectl explain` has a text for every field of a spec."""

from collections.abc import Iterator

import pytest

from apis import crd, descriptions
from apis.shared import Json


def _fields(node: Json, path: str) -> Iterator[tuple[str, Json]]:
    for name, inner in (node.get("properties") or {}).items():
        yield f"{path}.{name}", inner
        yield from _fields(inner, f"{path}.{name}")
    for key in ("items", "additionalProperties"):
        if isinstance(node.get(key), dict):
            yield from _fields(node[key], path)


def _spec(kind: crd.Kind = crd.TIDB_CLUSTER) -> dict[str, Json]:
    version = crd.definition(kind)["spec"]["versions"][0]
    return dict(_fields(version["schema"]["openAPIV3Schema"]["properties"]["spec"], "spec"))


@pytest.mark.parametrize("kind", crd.KINDS, ids=lambda kind: kind.name)
def test_every_field_of_a_spec_is_described_in_a_sentence(kind: crd.Kind) -> None:
    texts = {path: field.get("description", "") for path, field in _spec(kind).items()}
    assert [] == [path for path, text in texts.items() if not (text.endswith(".") and text[0].isupper())]
    assert [] == [path for path, text in texts.items() if text.startswith("`") or ".md" in text]


def test_the_description_of_a_component_comes_from_its_model() -> None:
    assert "The placement driver, which keeps the cluster's metadata and a quorum." == _spec()["spec.pd"]["description"]


def test_one_field_name_may_have_different_descriptions() -> None:
    fields = _spec()
    assert "Labels of the pods." == fields["spec.tidb.labels"]["description"]
    assert "Labels of the Service." == fields["spec.tidb.service.labels"]["description"]
    assert "The name of the TidbCluster." == _spec(crd.RESTORE)["spec.br.cluster"]["description"]


def test_an_inherited_field_has_the_same_description_in_all_kinds() -> None:
    kinds = (crd.BACKUP, crd.RESTORE, crd.COMPACT_BACKUP)
    assert 1 == len({_spec(kind)["spec.resources"]["description"] for kind in kinds})


def test_every_description_belongs_to_an_existing_field() -> None:
    names = {path.rpartition(".")[2] for kind in crd.KINDS for path in _spec(kind)} | {"spec", "status"}
    known = {name.rpartition(".")[2] for name in descriptions._TEXTS}
    assert set() == known - names
