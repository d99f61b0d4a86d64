"""The definitions generated from the models (api/crds.md)."""

from pathlib import Path

import msgspec
import pytest
import yaml

from apis import crd
from apis.shared import Model
from tests.apis.field_trees import Schema, shared_file, tree_schema

KINDS = pytest.mark.parametrize("kind", crd.KINDS, ids=lambda kind: kind.name)

OURS = dict.fromkeys(
    ("BackupSchedule", "CompactBackup", "TidbDashboard", "TidbMonitor", "TidbNGMonitoring"), ("conditions",)
)
"""Fields of a status that v1.6 does not have; a v1.6 that is installed over them drops them."""

_TEXT: Schema = {"type": "string"}
_SHARDS: dict[str, Schema] = {
    "mode": {"type": "string", "enum": ["", "sharded"]},
    "shardCount": {"type": "integer", "format": "int32", "minimum": 1},
    "physicalFileCacheCapacity": _TEXT,
    "name": _TEXT,
}
_LABELS: Schema = {"type": "object", "additionalProperties": _TEXT}
_TAILERS = ("tidb.slowLogTailer", "tikv.logTailer", "tiflash.logTailer")
AHEAD: dict[str, dict[str, Schema]] = {
    "TidbCluster": {
        **{f"spec.{name}.serverLabels": _LABELS for name in ("tidb", "tiproxy")},
        **{f"spec.{name}.useSidecar": {"type": "boolean"} for name in _TAILERS},
        **{f"spec.{name}.sleepTimeSeconds": {"type": "integer", "format": "int64"} for name in _TAILERS},
        # the operator's own, for autoscalers
        "status.tidb.selector": _TEXT,
    },
    "CompactBackup": {
        **{f"spec.{name}": each for name, each in _SHARDS.items()},
        **{f"status.{name}": _TEXT for name in ("completedIndexes", "failedIndexes")},
    },
    "Restore": {
        "spec.replicationConfig": {
            "type": "object",
            "required": ["compactBackupName"],
            "properties": {"compactBackupName": _TEXT, "waitTimeout": _TEXT},
        },
        "status.replicationStep": _TEXT,
    },
    "BackupSchedule": {f"spec.compactBackupTemplate.{name}": each for name, each in _SHARDS.items()},
}
"""Fields that v1.7 adds to v1.6, by path; without TiCI."""

_FLAG: Schema = {"type": "boolean"}
_COUNT: Schema = {"type": "integer", "format": "int32"}
_TIME: Schema = {"type": "string", "format": "date-time", "nullable": True}
_OURS_OF_FEED: dict[str, Schema] = {
    **{f"changefeed{name}": _TEXT for name in ("State", "Sink", "Keys")},
    **{"changefeedCheckpoint": _TIME, "changefeedChanging": _FLAG},
}


def ahead(kind: str, v16: Schema) -> dict[str, Schema]:
    """Fields that v1.7 adds to v1.6, by path."""
    return AHEAD.get(kind, {}) | (_of_tici(v16) if kind == "TidbCluster" else {})


def _of_tici(v16: Schema) -> dict[str, Schema]:
    """The fields of TiCI; its servers lack two fields of TiCDC, and their status lacks the captures."""
    ticdc, status = (v16[part]["properties"]["ticdc"] for part in ("spec", "status"))
    own = {"gracefulShutdownTimeout", "tlsClientSecretNames", "captures"}
    server = ticdc | {"properties": _without(own, ticdc["properties"]) | {"baseImage": _TEXT}}
    serving = status | {"properties": _without(own, status["properties"])}
    texts = ("endpoint", "bucket", "region", "prefix", "secretName", "accessKey", "secretKey")
    reader = {"heartbeatInterval": _TEXT, "maxHeartbeatRetries": _COUNT, "heartbeatWorkerCount": _COUNT}
    feed = {"changefeedSynced": _FLAG, "changefeedJobName": _TEXT, "changefeedLastError": _TEXT}
    parts = {
        "meta": server,
        "worker": server,
        "s3": _object(dict.fromkeys(texts, _TEXT) | {"usePathStyle": _FLAG}),
        "reader": _object({"port": _COUNT | {"minimum": 1, "maximum": 65535}} | reader),
        "changefeed": _object({"enable": _FLAG, "sinkURI": _TEXT, "changefeedID": _TEXT}),
    }
    return {
        "spec.tici": _object(parts),
        **dict.fromkeys(("status.ticiMeta", "status.ticiWorker"), serving),
        "status.tici": _object(feed | _OURS_OF_FEED),
    }


def _without(names: set[str], properties: Schema) -> Schema:
    return {name: each for name, each in properties.items() if name not in names}


def _object(properties: dict[str, Schema]) -> Schema:
    return {"type": "object", "properties": properties}


def taken(schema: Schema, path: str) -> Schema:
    """Take a field out of a schema; return its own schema without the description."""
    *above, name = path.split(".")
    for each in above:
        schema = schema[each]["properties"]
    return _undescribed(schema.pop(name))


def _undescribed(schema: Schema) -> Schema:
    found = {key: value for key, value in schema.items() if key != "description"}
    if "properties" in found:
        found["properties"] = {key: _undescribed(each) for key, each in found["properties"].items()}
    return found


def cells(row: str) -> list[str]:
    """The cells of a row of a table in Markdown."""
    return [cell.strip(" `") for cell in row.strip("|").split("|")]


def specified() -> str:
    """The specification of the definitions, except their schemas."""
    return shared_file("spec", "api", "crds.md").read_text(encoding="utf-8")


@KINDS
def test_the_schema_equals_the_field_tree_path_by_path(kind: crd.Kind) -> None:
    expected = tree_schema(kind.name.lower())["properties"]
    actual = crd.schema(kind.model)["properties"]
    for field in OURS.get(kind.name, ()):
        assert actual["status"]["properties"].pop(field)
    for path, schema in ahead(kind.name, expected).items():
        assert (path, schema) == (path, taken(actual, path))
    for part in ("spec", "status"):
        assert expected[part] == actual[part]


@KINDS
def test_the_schema_requires_metadata_and_spec(kind: crd.Kind) -> None:
    schema = crd.schema(kind.model)
    assert ["metadata", "spec"] == schema["required"]
    assert {"apiVersion", "kind", "metadata", "spec", "status"} == set(schema["properties"])
    assert {"type": "object"} == schema["properties"]["metadata"]


@KINDS
def test_the_columns_of_v1_6_come_before_the_operators_own(kind: crd.Kind) -> None:
    rows = specified().partition(f"### {kind.name}\n")[2].partition("\n### ")[0].splitlines()[2:]
    expected = [cells(row)[1:] for row in rows if row]
    columns = crd.definition(kind)["spec"]["versions"][0]["additionalPrinterColumns"]
    shown = [[c["name"], c["type"], str(c.get("priority", 0)), c["jsonPath"]] for c in columns]
    of_jobs = [[name, "1"] for name in ("Step", "Percent", "Invalid", "LastRetry", "Failure")]
    ours = {
        "TidbCluster": [["Reason", "1"]],
        "DMCluster": [["Reason", "1"]],
        "Backup": [*of_jobs, ["Synced", "1"]],
        "Restore": of_jobs,
        "BackupSchedule": [["Active", "0"], ["LastComplete", "0"], ["Next", "1"], ["Last", "1"]],
        "CompactBackup": [["Age", "0"]],
        "TidbMonitor": [["Ready", "0"], ["Status", "1"], ["Age", "0"]],
        "TidbInitializer": [["Phase", "0"], ["Age", "0"], ["Status", "1"]],
        "TidbDashboard": [["Ready", "0"], ["Age", "0"], ["Status", "1"]],
        "TidbNGMonitoring": [["Ready", "0"], ["Age", "0"], ["Status", "1"]],
    }
    assert expected == shown[: len(expected)]
    assert ours.get(kind.name, []) == [[name, priority] for name, _, priority, _ in shown[len(expected) :]]


@KINDS
def test_definition_is_namespaced_with_one_version_and_the_names_of_v1_6(kind: crd.Kind) -> None:
    row = next(row for row in specified().splitlines() if row.startswith(f"| {kind.name} | {kind.name}List "))
    definition = crd.definition(kind)
    assert f"{kind.plural}.pingcap.com" == definition["metadata"]["name"]
    assert "Namespaced" == definition["spec"]["scope"]
    names = definition["spec"]["names"]
    shown = [names[key] for key in ("kind", "listKind", "plural", "singular")] + names["shortNames"]
    assert cells(row)[:5] == shown
    assert [("v1alpha1", True, True)] == [
        (version["name"], version["served"], version["storage"]) for version in definition["spec"]["versions"]
    ]


def test_subresources_can_be_left_out_as_in_v1_6() -> None:
    ours = crd.definition(crd.TIDB_CLUSTER)["spec"]["versions"][0]
    like_v1_6 = crd.definition(crd.TIDB_CLUSTER, status_subresource=False)["spec"]["versions"][0]
    subresources = ours.pop("subresources")
    assert ({"status", "scale"}, ".spec.tidb.replicas") == (
        set(subresources),
        subresources["scale"]["specReplicasPath"],
    )
    assert ours == like_v1_6


@pytest.mark.parametrize(
    "kind", [crd.BACKUP, crd.RESTORE, crd.BACKUP_SCHEDULE, crd.COMPACT_BACKUP], ids=lambda kind: kind.name
)
def test_kinds_that_jobs_write_have_no_status_subresource_as_in_v1_6(kind: crd.Kind) -> None:
    assert "subresources" not in crd.definition(kind)["spec"]["versions"][0]


@pytest.mark.slow
def test_file_fits_into_the_annotation_of_a_client_side_apply() -> None:
    for kind in crd.KINDS:
        tree = crd.definition(kind)
        assert len(msgspec.json.encode(tree)) < 262144
        assert len(crd.render(tree)) < 262144


@KINDS
def test_rendered_file_reads_back_as_the_definition(kind: crd.Kind) -> None:
    definition = crd.definition(kind)
    assert definition == yaml.safe_load(crd.render(definition))


@KINDS
def test_no_schema_uses_cel_rules(kind: crd.Kind) -> None:
    assert "x-kubernetes-validations" not in crd.render(crd.definition(kind))


def test_generated_files_are_up_to_date() -> None:
    assert 0 == crd.main(["--check"])


@pytest.mark.slow
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


@KINDS
def test_every_schema_node_is_structural(kind: crd.Kind) -> None:
    for path, node in _nodes(crd.schema(kind.model), "$"):
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
