"""`kubectl explain` has a text for every field of a spec."""

from collections.abc import Iterator

from apis import crd, descriptions
from apis.shared import Json


def _fields(node: Json, path: str) -> Iterator[tuple[str, Json]]:
    for name, inner in (node.get("properties") or {}).items():
        yield f"{path}.{name}", inner
        yield from _fields(inner, f"{path}.{name}")
    for key in ("items", "additionalProperties"):
        if isinstance(node.get(key), dict):
            yield from _fields(node[key], path)


def _spec() -> dict[str, Json]:
    version = crd.definition(crd.TIDB_CLUSTER)["spec"]["versions"][0]
    return dict(_fields(version["schema"]["openAPIV3Schema"]["properties"]["spec"], "spec"))


def test_every_field_of_a_spec_is_described_in_a_sentence() -> None:
    texts = {path: field.get("description", "") for path, field in _spec().items()}
    assert [] == [path for path, text in texts.items() if not (text.endswith(".") and text[0].isupper())]
    assert [] == [path for path, text in texts.items() if text.startswith("`") or ".md" in text]


def test_a_component_is_described_by_its_model() -> None:
    assert "The placement driver, which keeps the cluster's metadata and a quorum." == _spec()["spec.pd"]["description"]


def test_the_same_name_may_mean_something_else() -> None:
    fields = _spec()
    assert "Labels of the pods." == fields["spec.tidb.labels"]["description"]
    assert "Labels of the Service." == fields["spec.tidb.service.labels"]["description"]


def test_there_is_no_sentence_on_what_does_not_exist() -> None:
    names = {path.rpartition(".")[2] for path in _spec()} | {"spec", "status"}
    known = {name.rpartition(".")[2] for name in descriptions._TEXTS}
    assert set() == known - names
