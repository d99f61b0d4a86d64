"""A component's configuration as tables (objects.md 6.1, defaults-and-validation.md 7)."""

import pytest

from apis import config
from apis.accessor import component
from apis.config_schema import PD, PD_MICROSERVICE, TICDC, TIDB, TIFLASH, TIFLASH_PROXY, TIKV, ConfigSchema
from apis.problem import InvalidField
from apis.shared import Config, Json
from apis.toml import Table
from tests.apis.clusters import cluster, minimal


def read(written: Config | None, schema: ConfigSchema) -> Table:
    return config.tables(written, schema, "spec.pd.config")


def test_text_keeps_every_key_and_type() -> None:
    text = '[schedule]\nschedulers-v2 = "x"\nlow-space-ratio = 1\n'
    assert {"schedule": {"schedulers-v2": "x", "low-space-ratio": 1}} == read(text, PD)


def test_absent_and_empty_configurations_are_empty_tables() -> None:
    assert {} == read(None, PD) == read("", PD) == read({}, PD)


def test_object_keeps_keys_that_no_schema_knows() -> None:
    given = {"no-such-key": 1, "security": {"also-unknown": [1, 2]}}
    assert given == read(given, TIKV)


@pytest.mark.parametrize(
    ("schema", "written", "expected"),
    [
        (PD, {"tikv-interval": "1s"}, {"tick-interval": "1s"}),
        (PD_MICROSERVICE, {"auto-compaction-retention-v2": "1h"}, {"auto-compaction-retention": "1h"}),
        (
            PD,
            {"schedule": {"schedulers-v2": [{"type": "a"}]}},
            {"schedule": {"schedulers": [{"type": "a"}]}},
        ),
        (TICDC, {"timezone": "UTC", "gcTTL": 1}, {"tz": "UTC", "gc-ttl": 1}),
        (TICDC, {"logLevel": "info", "logFile": "f"}, {"log-level": "info", "log-file": "f"}),
        (
            TIDB,
            {"performance": {"agg-push-down-join": True}},
            {"performance": {"agg-push-down-join": True}},
        ),
    ],
)
def test_names_of_the_object_form_become_names_of_the_file(schema: ConfigSchema, written: Json, expected: Json) -> None:
    assert expected == read(written, schema)


@pytest.mark.parametrize(
    ("schema", "path"),
    [
        (PD, "schedule.low-space-ratio"),
        (TIDB, "performance.pseudo-estimate-ratio"),
        (TIKV, "rocksdb.lockcf.titan.sample-ratio"),
        (TIFLASH_PROXY, "storage.block-cache.high-pri-pool-ratio"),
        (TIFLASH, "flash.overlap_threshold"),
    ],
)
def test_integers_of_float_keys_become_floats_in_the_object_form(schema: ConfigSchema, path: str) -> None:
    written: Json = {}
    config.put(written, path, 1)
    value = config.get(read(written, schema), path)
    assert (1.0, float) == (value, type(value))


def test_returned_tables_are_copies() -> None:
    written = {"log": {"level": "info"}, "list": [{"a": 1}]}
    fresh = read(written, TIKV)
    fresh["log"]["level"] = "debug"
    fresh["list"][0]["a"] = 2
    assert {"log": {"level": "info"}, "list": [{"a": 1}]} == written


def test_invalid_toml_is_refused_with_field_and_line() -> None:
    with pytest.raises(InvalidField) as caught:
        read("a = 1\nb = = 2\n", TIKV)
    assert "spec.pd.config" == caught.value.problem.field
    assert "b = = 2" == caught.value.problem.value
    assert "line 2" in caught.value.problem.message


def test_dotted_writes_create_tables_and_dotted_reads_tolerate_values() -> None:
    table: Json = {"a": 1}
    config.put(table, "log.file.max-backups", 3)
    config.put_if_absent(table, "log.file.max-backups", 4)
    config.put_if_absent(table, "log.level", "info")
    assert {"a": 1, "log": {"file": {"max-backups": 3}, "level": "info"}} == table
    assert config.get(table, "a.b") is None
    assert config.get(table, "log.file.none") is None


def test_refuses_to_set_a_key_below_a_value_that_is_no_table() -> None:
    with pytest.raises(InvalidField, match=r'log.file: "x": must be a table, because log.file.max-backups is set'):
        config.put({"log": {"file": "x"}}, "log.file.max-backups", 3)


def test_deleting_a_key_keeps_the_others() -> None:
    table: Json = {"a": {"b": 1, "c": 2}}
    config.drop(table, "a.b")
    config.drop(table, "a.none")
    config.drop(table, "none.b")
    assert {"a": {"c": 2}} == table


def test_merging_combines_tables_and_replaces_other_values() -> None:
    base: Json = {"a": {"x": 1, "y": [1]}, "b": 1}
    over: Json = {"a": {"y": [2], "z": 3}, "b": {"c": 1}}
    assert {"a": {"x": 1, "y": [2], "z": 3}, "b": {"c": 1}} == config.merge(base, over)
    assert {"a": {"x": 1, "y": [1]}, "b": 1} == base


@pytest.mark.parametrize(
    ("written", "expected"),
    [({}, 3), (None, 3), ("[log.file]\nmax-backups = 30\n", 30), ({"log": {"file": {"max-backups": 0}}}, 0)],
)
def test_tidb_keeps_three_log_files_by_default(written: Json | str | None, expected: int) -> None:
    tc = cluster(minimal(tidb={"config": written}))
    assert {"log": {"file": {"max-backups": expected}}} == component(tc, "tidb").config_tables()
