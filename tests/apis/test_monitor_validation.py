"""Problems and defaults of a TidbMonitor (defaults-and-validation.md 2.4, 3.4)."""

from typing import Any

import pytest

from apis.decoding import decode
from apis.monitors import CLUSTER_SELECTOR, OPERATOR_NAMESPACE, TidbMonitor, with_monitor_defaults
from apis.problem import InvalidField
from apis.shared import Json
from apis.validation.monitors import labels_selected_by, validate_monitor
from apis.validation.replica_limit import MAX_REPLICAS

CONTAINERS: Json = {
    name: {"baseImage": f"example/{name.lower()}", "version": "v2.49.1"}
    for name in ("prometheus", "reloader", "initializer")
}


def monitor(annotations: Json | None = None, **spec: Any) -> TidbMonitor:
    """The smallest that is valid, or one with more; None leaves a part out."""
    given = {"clusters": [{"name": "basic"}]} | CONTAINERS | spec
    body = {
        "metadata": {"name": "basic", "namespace": "ns", "annotations": annotations or {}},
        "spec": {key: value for key, value in given.items() if value is not None},
    }
    return with_monitor_defaults(decode(body, TidbMonitor))


def prometheus(**more: Any) -> Json:
    return {"prometheus": CONTAINERS["prometheus"] | more}


def write(**endpoint: Any) -> Json:
    return prometheus(remoteWrite=[{"url": "http://mimir"} | endpoint])


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        ({"clusters": None}, "spec.clusters"),
        ({"clusters": []}, "spec.clusters"),
        ({"clusters": [{"name": ""}]}, "spec.clusters[0].name"),
        ({"clusters": [{"name": "a"}, {"name": "a", "namespace": "ns"}]}, "spec.clusters[1].name"),
        (
            {"clusters": [{"name": "b-c", "namespace": "a"}, {"name": "c", "namespace": "a-b"}]},
            "spec.clusters[1].name",
        ),
        ({"prometheus": {}}, "spec.prometheus.baseImage"),
        ({"prometheus": {"baseImage": "a"}}, "spec.prometheus.version"),
        ({"prometheus": {"baseImage": "a b", "version": "c"}}, "spec.prometheus.baseImage"),
        ({"reloader": {}}, "spec.reloader.baseImage"),
        ({"initializer": {}}, "spec.initializer.baseImage"),
        ({"grafana": {}}, "spec.grafana.baseImage"),
        ({"thanos": {}}, "spec.thanos.baseImage"),
        ({"prometheusReloader": {}}, "spec.prometheusReloader.baseImage"),
        ({"dm": {"clusters": [{"name": "dm"}], "initializer": {}}}, "spec.dm.initializer.baseImage"),
        ({"persistent": True}, "spec.storage"),
        ({"persistent": True, "storage": "much"}, "spec.storage"),
        ({"persistent": True, "storage": "8Ei"}, "spec.storage"),
        ({"replicas": -1}, "spec.replicas"),
        ({"replicas": 1001}, "spec.replicas"),
        ({"shards": 1 << 30}, "spec.shards"),
        ({"additionalContainers": [{"image": "busybox:1"}]}, "spec.additionalContainers[0].name"),
        ({"additionalVolumes": [{"emptyDir": {}}]}, "spec.additionalVolumes[0].name"),
        ({"labels": {"a": "not a value"}}, 'spec.labels["a"]'),
        ({"externalLabels": {"a-b": "c"}}, "spec.externalLabels"),
        ({"replicaExternalLabelName": "1st"}, "spec.replicaExternalLabelName"),
        (prometheus(retentionTime=""), "spec.prometheus.retentionTime"),
        (prometheus(retentionTime="2h1d"), "spec.prometheus.retentionTime"),
        (
            prometheus(service={"loadBalancerSourceRanges": ["10.0.0.0"]}),
            "spec.prometheus.service.loadBalancerSourceRanges[0]",
        ),
        (
            {"reloader": CONTAINERS["reloader"] | {"service": {"loadBalancerSourceRanges": ["x"]}}},
            "spec.reloader.service.loadBalancerSourceRanges[0]",
        ),
        (prometheus(version="latest", remoteWrite=[{"url": "http://a"}]), "spec.prometheus.version"),
        (write(url=""), "spec.prometheus.remoteWrite[0].url"),
        (write(remoteTimeout="soon"), "spec.prometheus.remoteWrite[0].remoteTimeout"),
        (
            write(basicAuth={"username": {"name": "a", "key": "b"}, "password": {"name": "a", "key": ""}}),
            "spec.prometheus.remoteWrite[0].basicAuth.password.key",
        ),
        (write(tlsConfig={"keySecret": {"key": "k"}}), "spec.prometheus.remoteWrite[0].tlsConfig.keySecret.name"),
    ],
)
@pytest.mark.rule("defaults-and-validation-3.4")
def test_names_the_field_of_each_mistake(spec: Json, field: str) -> None:
    problems = validate_monitor(monitor(**spec))
    assert [field] == [each.field for each in problems]
    assert all(each.message for each in problems)


@pytest.mark.parametrize(
    "spec",
    [
        {},
        {"clusters": None, "dm": {"clusters": [{"name": "dm"}], "initializer": CONTAINERS["initializer"]}},
        {"persistent": True, "storage": "10Gi"},
        {"shards": 0},
        prometheus(retentionTime="1d12h"),
        prometheus(retentionTime="0"),
        prometheus(version="latest"),
        prometheus(service={"loadBalancerSourceRanges": ["10.0.0.0/8", "fd00::/8"]}),
        write(basicAuth={"username": {"name": "a", "key": "b"}, "password": {"name": "a", "key": "c"}}),
    ],
)
@pytest.mark.rule("defaults-and-validation-3.4")
def test_accepts_monitors_that_v1_6_accepts(spec: Json) -> None:
    assert [] == validate_monitor(monitor(**spec))


def test_checks_the_operators_annotations() -> None:
    assert [] == validate_monitor(monitor({CLUSTER_SELECTOR: "team=a, stage=prod"}, clusters=None))
    (problem,) = validate_monitor(monitor({CLUSTER_SELECTOR: "team in (a)"}))
    assert CLUSTER_SELECTOR in problem.field
    (problem,) = validate_monitor(monitor({OPERATOR_NAMESPACE: "tidb-admin"}))
    assert "set spec.clusterScoped" in problem.message
    assert [] == validate_monitor(monitor({OPERATOR_NAMESPACE: "tidb-admin"}, clusterScoped=True))
    assert [] == validate_monitor(monitor({OPERATOR_NAMESPACE: "ns"}))


@pytest.mark.parametrize(("text", "labels"), [("*", {}), ("a=b", {"a": "b"}), (" a=b , c= ", {"a": "b", "c": ""})])
def test_parses_a_selector_of_labels_and_values(text: str, labels: Json) -> None:
    assert labels == labels_selected_by(text)


@pytest.mark.parametrize("text", ["", "a", "=b", "a=b,", "a,b=c"])
def test_refuses_an_invalid_selector(text: str) -> None:
    with pytest.raises(ValueError, match=r".*"):
        labels_selected_by(text)


@pytest.mark.rule("defaults-and-validation-2.4")
def test_absent_fields_have_defaults() -> None:
    spec = monitor(dm={"clusters": [{"name": "dm"}], "initializer": CONTAINERS["initializer"]}).spec
    assert ["ns"] == [each.namespace for each in spec.clusters]
    assert spec.dm
    assert ["ns"] == [each.namespace for each in spec.dm.clusters]
    filled = (spec.pv_reclaim_policy, spec.timezone, spec.replicas, spec.shards)
    assert ("Retain", "UTC", 1, 1) == filled
    assert 0 == monitor(replicas=0).spec.replicas


@pytest.mark.parametrize("part", ["prometheus", "reloader", "initializer"])
def test_names_a_missing_required_part(part: str) -> None:
    with pytest.raises(InvalidField, match=f"spec.{part}: is required"):
        monitor(**{part: None})


def test_an_annotation_raises_the_maximum_of_replicas_and_shards() -> None:
    assert [] == validate_monitor(monitor({MAX_REPLICAS: "2000"}, replicas=2000, shards=2000))
    (problem,) = validate_monitor(monitor(replicas=2000))
    told = "spec.replicas: 2000: must be at most 1000; if so many are meant, annotate the TidbMonitor with "
    assert told + f"{MAX_REPLICAS}=2000" == str(problem)
