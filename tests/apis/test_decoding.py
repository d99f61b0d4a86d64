"""JSON trees become models; values that do not fit are reported in the user's words."""

import msgspec
import pytest

from apis.backups import Backup
from apis.decoding import decode, decode_json, encode, without_nulls
from apis.problem import InvalidField
from apis.shared import Json
from apis.tidbcluster import TidbCluster
from apis.unknown_fields import unknown_fields
from tests.apis.clusters import golden_clusters, minimal, tree


@pytest.mark.parametrize(("name", "item"), golden_clusters())
def test_clusters_recorded_from_v1_6_decode_completely(name: str, item: Json) -> None:
    tc = decode(item, TidbCluster)
    assert name.endswith(f"/{tc.metadata.name}")
    assert [] == unknown_fields(item, TidbCluster)


@pytest.mark.parametrize(("name", "item"), golden_clusters())
def test_status_survives_decoding_and_encoding(name: str, item: Json) -> None:
    status = decode(item, TidbCluster).status
    assert encode(status) == encode(decode({**item, "status": encode(status)}, TidbCluster).status), name


def test_null_is_absent_at_any_depth() -> None:
    spec = minimal(pd={"affinity": None, "config": None, "env": [{"name": "A", "value": None}]})
    tc = decode(tree({**spec, "tlsCluster": None, "pvReclaimPolicy": None}), TidbCluster)
    assert tc.spec.pd is not None
    assert (None, None, [{"name": "A"}]) == (tc.spec.pd.affinity, tc.spec.pd.config, tc.spec.pd.env)
    assert (None, "Retain") == (tc.spec.tls_cluster, tc.spec.pv_reclaim_policy)


@pytest.mark.parametrize("affinity", [None, {"podAffinity": None}, {"x": "null"}])
def test_text_and_trees_decode_alike(affinity: Json | None) -> None:
    given = tree(minimal(pd={"affinity": affinity}))
    assert decode(given, TidbCluster) == decode_json(msgspec.json.encode(given), TidbCluster)


def test_decoding_does_not_change_the_given_tree() -> None:
    given: Json = {"a": None, "b": [{"c": None}]}
    assert {"b": [{}]} == without_nulls(given)
    assert {"a": None, "b": [{"c": None}]} == given


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ({"pd": {"replicas": "3"}}, 'spec.pd.replicas: "3": must be an integer of at least 0'),
        ({"pd": {"replicas": -1}}, "spec.pd.replicas: -1: must be an integer of at least 0"),
        ({"pd": {"replicas": True}}, "spec.pd.replicas: true: must be an integer of at least 0"),
        ({"pd": {}}, "spec.pd.replicas: is required; specify an integer of at least 0"),
        ({"pd": []}, "spec.pd: []: must be an object"),
        ({"pd": {"replicas": 1, "config": [1]}}, "spec.pd.config: [1]: must be a string or an object"),
        (
            {"pd": {"replicas": 1, "service": {"port": 0}}},
            "spec.pd.service.port: 0: must be an integer from 1 to 65535",
        ),
        ({"pdms": [{"name": "x", "replicas": 1}]}, 'spec.pdms[0].name: "x": must be one of "scheduling", "tso"'),
        ({"labels": {"a/b": 1}}, 'spec.labels["a/b"]: 1: must be a string'),
        ({"tolerations": {}}, "spec.tolerations: {}: must be a list"),
        ({"paused": "yes"}, 'spec.paused: "yes": must be true or false'),
        (
            {"tidb": {"replicas": 1, "additionalContainers": [{"name": "tidb", "env": "x"}]}},
            'spec.tidb.additionalContainers[0].env: "x": must be a list',
        ),
        (
            {"tidb": {"replicas": 1, "initContainers": [{"name": "a", "env": [{"name": "A", "value": 1}]}]}},
            "spec.tidb.initContainers[0].env[0].value: 1: must be a string",
        ),
        (
            {"tikv": {"replicas": 1, "podSecurityContext": {"sysctls": "x"}}},
            'spec.tikv.podSecurityContext.sysctls: "x": must be a list',
        ),
        (
            {"tiflash": {"replicas": 1, "storageClaims": [{"resources": {"requests": True}}]}},
            "spec.tiflash.storageClaims[0].resources.requests: true: must be an object",
        ),
        (
            {"pd": {"replicas": 1, "additionalVolumes": [{"name": "a", "emptyDir": {"sizeLimit": []}}]}},
            "spec.pd.additionalVolumes[0].emptyDir.sizeLimit: []: must be a string or an integer or a number",
        ),
        (
            {"pd": {"replicas": 1, "additionalVolumes": [{"name": "a", "csi": {"driver": 1}}]}},
            "spec.pd.additionalVolumes[0].csi.driver: 1: must be a string",
        ),
    ],
)
def test_a_misfit_names_field_value_and_way_out(spec: Json, message: str) -> None:
    with pytest.raises(InvalidField) as caught:
        decode(tree(spec), TidbCluster)
    assert message == str(caught.value)


def test_names_all_misfits_at_once() -> None:
    with pytest.raises(InvalidField) as caught:
        decode(tree({"pd": {"replicas": "three"}, "tikv": {"replicas": [1]}, "tidb": {"replicas": True}}), TidbCluster)
    assert "; ".join(
        f"spec.{name}.replicas: {value}: must be an integer of at least 0"
        for name, value in (("pd", '"three"'), ("tidb", "true"), ("tikv", "[1]"))
    ) == str(caught.value)


def test_names_only_the_first_ten_of_many_mismatches() -> None:
    with pytest.raises(InvalidField) as caught:
        decode(tree({"pd": {"replicas": 1, "env": [1] * 1000}}), TidbCluster)
    assert [f"spec.pd.env[{index}]" for index in range(10)] == [each.field for each in caught.value.problems]


def test_finds_every_misfit_that_msgspec_finds() -> None:
    for path, value in [
        ("spec.pd.env", [1]),
        ("spec.pd.affinity", "x"),
        ("metadata.name", 1),
        ("spec.tikv.storeLabels", [1]),
    ]:
        body = tree(minimal())
        *parents, last = path.split(".")
        node = body
        for parent in parents:
            node = node[parent]
        node[last] = value
        with pytest.raises(msgspec.ValidationError):
            msgspec.convert(body, TidbCluster)
        with pytest.raises(InvalidField) as caught:
            decode(body, TidbCluster)
        assert caught.value.problem.field.startswith(path)


def test_long_values_are_shortened_in_messages() -> None:
    with pytest.raises(InvalidField) as caught:
        decode(tree({"pd": ["x" * 1000]}), TidbCluster)
    assert len(str(caught.value)) < 200


@pytest.mark.parametrize("levels", [66, 5000])
def test_refuses_a_tree_that_is_nested_too_deeply(levels: int) -> None:
    config = b'{"a":' * levels + b"1" + b"}" * levels
    raw = b'{"metadata":{"name":"a"},"spec":{"pd":{"replicas":1,"config":' + config + b"}}}"
    with pytest.raises(InvalidField, match="nested"):
        decode_json(raw, TidbCluster)


def test_a_float_field_accepts_an_integer_but_no_text() -> None:
    option = decode(_backup({"snapshotsDeleteRatio": 1}), Backup).spec.clean_option
    assert option is not None
    assert 1.0 == option.snapshots_delete_ratio
    with pytest.raises(InvalidField) as caught:
        decode(_backup({"snapshotsDeleteRatio": "1"}), Backup)
    assert 'spec.cleanOption.snapshotsDeleteRatio: "1": must be a number' == str(caught.value)


def _backup(option: Json) -> Json:
    return {"metadata": {"name": "a"}, "spec": {"cleanOption": option}}
