"""The definitions generated from the models (api/crds.md)."""

from pathlib import Path

import msgspec
import pytest
import yaml

from apis import crd
from apis.shared import Model
from tests.apis.field_trees import Schema, shared_file, tree_schema


def tidb_cluster_schema() -> Schema:
    return crd.schema(crd.TIDB_CLUSTER.model)


def test_schema_is_that_of_the_field_tree_path_by_path() -> None:
    expected = tree_schema("tidbcluster")["properties"]
    actual = tidb_cluster_schema()["properties"]
    for part in ("spec", "status"):
        assert expected[part] == actual[part]


def test_top_level_demands_metadata_and_spec() -> None:
    schema = tidb_cluster_schema()
    assert ["metadata", "spec"] == schema["required"]
    assert {"apiVersion", "kind", "metadata", "spec", "status"} == set(schema["properties"])
    assert {"type": "object"} == schema["properties"]["metadata"]


def test_names_and_columns_are_those_of_v1_6_and_ours_come_after_them() -> None:
    table = shared_file("spec", "api", "crds.md").read_text(encoding="utf-8")
    rows = table.partition("### TidbCluster\n")[2].partition("\n### ")[0].splitlines()[2:]
    expected = [[cell.strip(" `") for cell in row.strip("|").split("|")][1:] for row in rows if row]
    columns = crd.definition(crd.TIDB_CLUSTER)["spec"]["versions"][0]["additionalPrinterColumns"]
    shown = [[c["name"], c["type"], str(c.get("priority", 0)), c["jsonPath"]] for c in columns]
    assert expected == shown[: len(expected)]
    assert [["Reason", "1"]] == [[name, priority] for name, _, priority, _ in shown[len(expected) :]]


def test_definition_is_namespaced_with_one_version_and_short_name() -> None:
    definition = crd.definition(crd.TIDB_CLUSTER)
    assert "tidbclusters.pingcap.com" == definition["metadata"]["name"]
    assert "Namespaced" == definition["spec"]["scope"]
    assert {
        "kind": "TidbCluster",
        "listKind": "TidbClusterList",
        "plural": "tidbclusters",
        "singular": "tidbcluster",
        "shortNames": ["tc"],
    } == definition["spec"]["names"]
    assert [("v1alpha1", True, True)] == [
        (version["name"], version["served"], version["storage"]) for version in definition["spec"]["versions"]
    ]


def test_status_subresource_can_be_left_out() -> None:
    ours = crd.definition(crd.TIDB_CLUSTER)["spec"]["versions"][0]
    like_v1_6 = crd.definition(crd.TIDB_CLUSTER, status_subresource=False)["spec"]["versions"][0]
    assert {"status": {}} == ours.pop("subresources")
    assert ours == like_v1_6


def test_file_fits_into_the_annotation_of_a_client_side_apply() -> None:
    for kind in crd.KINDS:
        tree = crd.definition(kind)
        assert len(msgspec.json.encode(tree)) < 262144
        assert len(crd.render(tree)) < 262144


def test_rendered_file_reads_back_as_the_definition() -> None:
    definition = crd.definition(crd.TIDB_CLUSTER)
    assert definition == yaml.safe_load(crd.render(definition))


def test_no_rule_needs_CEL() -> None:
    assert "x-kubernetes-validations" not in crd.render(crd.definition(crd.TIDB_CLUSTER))


def test_generated_files_are_up_to_date() -> None:
    assert 0 == crd.main(["--check"])


def test_check_fails_when_a_file_differs_from_the_models(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert 1 == crd.main(["--check"], tmp_path)
    assert 0 == crd.main([], tmp_path)
    assert 0 == crd.main(["--check"], tmp_path)
    file = tmp_path / "pingcap.com_tidbclusters.yaml"
    file.write_text(file.read_text(encoding="utf-8").replace("minimum: 0", "minimum: 1", 1), encoding="utf-8")
    assert 1 == crd.main(["--check"], tmp_path)
    assert "pingcap.com_tidbclusters.yaml differs from the models" in capsys.readouterr().err


class _Ambiguous(Model):
    value: str | int = ""


class _Untyped(Model):
    value: bytes = b""


@pytest.mark.parametrize("model", [_Ambiguous, _Untyped])
def test_type_without_structural_schema_is_refused(model: type[Model]) -> None:
    with pytest.raises(TypeError, match=r"annotation|structural"):
        crd.schema(model)


def test_every_schema_node_is_structural() -> None:
    for path, node in _nodes(tidb_cluster_schema(), "$"):
        typeless = node.get("x-kubernetes-int-or-string") or node.get("x-kubernetes-preserve-unknown-fields")
        assert "type" in node or typeless, path


def _nodes(node: Schema, path: str) -> list[tuple[str, Schema]]:
    found = [(path, node)]
    for name, below in node.get("properties", {}).items():
        found += _nodes(below, f"{path}.{name}")
    for key in ("items", "additionalProperties"):
        if key in node:
            found += _nodes(node[key], f"{path}.{key}")
    return found
