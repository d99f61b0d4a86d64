"""Specs that v1.6 accepts and that can't work: refused by field, unless they already run."""

from typing import Any

import pytest

from apis.problem import Problem
from apis.shared import Json
from apis.validation import immutability, observe
from apis.validation.replica_limit import MAX_REPLICAS
from tests.apis.clusters import cluster, minimal


def _problems(spec: Json, *running: Json, status: Json | None = None, **metadata: Any) -> list[Problem]:
    sets = {each["metadata"]["name"].rpartition("-")[2]: each for each in running}
    return immutability(cluster(spec, status=status, **metadata), observe(sets, {}))


def _stateful_set(component: str, image: str = "", **spec: Any) -> Json:
    """A running cluster, with the relevant fields."""
    container = {"name": component, "image": image or f"pingcap/{component}:v8.5.2", **spec.pop("container", {})}
    selector = {"matchLabels": {"app.kubernetes.io/instance": "basic"}}
    template = {"spec": {"containers": [container]}}
    return {"metadata": {"name": f"basic-{component}"}, "spec": {"selector": selector, "template": template, **spec}}


_REFUSED: dict[str, tuple[Json, str]] = {
    "no size": (minimal(pd={"requests": {"storage": "0"}}), "spec.pd.requests.storage"),
    "a negative size": (minimal(tikv={"requests": {"storage": "-1Gi"}}), "spec.tikv.requests.storage"),
    "a size beyond 64 bits": (minimal(tikv={"requests": {"storage": "8Ei"}}), "spec.tikv.requests.storage"),
    "a size of a thousand digits": (minimal(tikv={"requests": {"storage": "1e99"}}), "spec.tikv.requests.storage"),
    "a further volume without size": (
        minimal(tikv={"storageVolumes": [{"name": "a", "storageSize": "0", "mountPath": "/a"}]}),
        "spec.tikv.storageVolumes[0].storageSize",
    ),
    "a base image in capitals": (minimal(tidb={"baseImage": "pingcap/TiDB"}), "spec.tidb.baseImage"),
    "a base image with a scheme": (minimal(tidb={"baseImage": "https://x/tidb"}), "spec.tidb.baseImage"),
    "a version with a blank": (minimal() | {"version": "v8.5 2"}, "spec.version"),
    "a component's version": (minimal(tikv={"version": "v8/5"}), "spec.tikv.version"),
    "a helper's pull policy": (minimal() | {"helper": {"imagePullPolicy": "always"}}, "spec.helper.imagePullPolicy"),
    "a tailer's pull policy": (
        minimal(tidb={"slowLogTailer": {"imagePullPolicy": "Sometimes"}}),
        "spec.tidb.slowLogTailer.imagePullPolicy",
    ),
    "a layout of certificates": (
        minimal() | {"tiproxy": {"replicas": 1, "certLayout": "V1"}},
        "spec.tiproxy.certLayout",
    ),
    "a helper's image": (minimal() | {"helper": {"image": "al pine"}}, "spec.helper.image"),
    "a container's image": (
        minimal(pd={"additionalContainers": [{"name": "a", "image": "A:b"}]}),
        "spec.pd.additionalContainers[0].image",
    ),
    "a reclaim policy": (minimal() | {"pvReclaimPolicy": "Keep"}, "spec.pvReclaimPolicy"),
    "a pull policy": (minimal() | {"imagePullPolicy": "Sometimes"}, "spec.imagePullPolicy"),
    "a component's pull policy": (minimal(pd={"imagePullPolicy": "always"}), "spec.pd.imagePullPolicy"),
    "a config strategy": (minimal() | {"configUpdateStrategy": "Rolling"}, "spec.configUpdateStrategy"),
    "a component's strategy": (minimal(tidb={"configUpdateStrategy": "x"}), "spec.tidb.configUpdateStrategy"),
    "a DNS policy": (minimal() | {"dnsPolicy": "x"}, "spec.dnsPolicy"),
    "a pod management policy": (minimal() | {"podManagementPolicy": "x"}, "spec.podManagementPolicy"),
    "a set's strategy": (minimal(pd={"statefulSetUpdateStrategy": "x"}), "spec.pd.statefulSetUpdateStrategy"),
    "a time zone": (minimal() | {"timezone": "Mars/Base"}, "spec.timezone"),
    "a time zone that is a directory": (minimal() | {"timezone": "Europe"}, "spec.timezone"),
    "a time zone outside of the database": (minimal() | {"timezone": "../etc/passwd"}, "spec.timezone"),
    "a million replicas": (minimal(tidb={"replicas": 1000000}), "spec.tidb.replicas"),
}


@pytest.mark.parametrize("case", _REFUSED)
def test_refuses_settings_that_cannot_work_in_a_new_cluster(case: str) -> None:
    spec, field = _REFUSED[case]
    assert [field] == [problem.field for problem in _problems(spec)]


_CONFIG = {"name": "config", "mountPath": "/x"}


@pytest.mark.parametrize(
    ("part", "field"),
    [
        ({"additionalVolumes": [{"name": "x", "emptyDir": {}, "secret": {}}]}, "additionalVolumes[0]"),
        ({"additionalVolumeMounts": [{"name": "config"}]}, "additionalVolumeMounts[0].mountPath"),
        ({"additionalVolumeMounts": [_CONFIG | {"mountPath": "a:b"}]}, "additionalVolumeMounts[0].mountPath"),
        ({"additionalVolumeMounts": [_CONFIG, _CONFIG]}, "additionalVolumeMounts[1].mountPath"),
        ({"additionalContainers": [{"name": "a", "image": "x"}] * 2}, "additionalContainers[1].name"),
        ({"initContainers": [{"name": "a", "image": "x"}] * 2}, "initContainers[1].name"),
    ],
)
@pytest.mark.parametrize("component", ["pd", "tikv", "tidb"])
def test_refuses_settings_that_no_pod_can_combine(component: str, part: Json, field: str) -> None:
    assert [f"spec.{component}.{field}"] == [each.field for each in _problems(minimal(**{component: part}))]


def test_mounts_of_all_volumes_of_a_pod_are_accepted() -> None:
    names = ("own", "tikv", "tikv-wal", "config", "tikv-tls", "annotations")
    tikv = {
        "additionalVolumes": [{"name": "own"}],
        "storageVolumes": [{"name": "wal", "storageSize": "1Gi"}],
        "additionalVolumeMounts": [{"name": name, "mountPath": f"/{name}"} for name in names],
    }
    assert [] == _problems(minimal(tikv=tikv))


@pytest.mark.parametrize("image", ["pd", "a.b:5000/x_y/pd:v1", "pingcap/pd:v8.5.2@sha256:" + "a" * 64, "[::1]:80/pd"])
def test_accepts_image_references_that_runtimes_accept(image: str) -> None:
    container = {"name": "a", "image": image}
    assert [] == _problems(minimal(pd={"additionalContainers": [container]}))


@pytest.mark.parametrize("zone", ["", "UTC", "Asia/Shanghai", "EST5EDT"])
def test_accepts_time_zones_of_the_database(zone: str) -> None:
    assert [] == _problems(minimal() | {"timezone": zone})


def test_the_way_out_of_too_many_replicas_is_an_annotation() -> None:
    spec = minimal(tikv={"replicas": 1001})
    (problem,) = _problems(spec)
    assert str(problem) == (
        "spec.tikv.replicas: 1001: must be at most 1000; "
        "if so many are meant, annotate the TidbCluster with tidb.pingcap.com/max-replicas=1001"
    )
    assert [] == _problems(spec, annotations={MAX_REPLICAS: "1001"})
    assert ["spec.tikv.replicas"] == [each.field for each in _problems(spec, annotations={MAX_REPLICAS: "1000"})]
    told = [each.field for each in _problems(minimal(), annotations={MAX_REPLICAS: "many"})]
    assert [f'metadata.annotations["{MAX_REPLICAS}"]'] == told


@pytest.mark.parametrize(
    ("name", "told"), [("a.b", "has a dot"), ("a" * 48, "shorter by 1"), ("a" * 64, "is too long")]
)
def test_refuses_a_cluster_name_that_makes_object_names_invalid(name: str, told: str) -> None:
    problems = _problems(minimal(), name=name)
    assert "metadata.name" == problems[0].field
    assert told in problems[0].message


def test_the_longest_name_that_works_is_accepted() -> None:
    assert [] == _problems(minimal(), name="a" * 47)


_RUNNING: dict[str, tuple[Json, Json]] = {
    "replicas": (minimal(tidb={"replicas": 2000}), _stateful_set("tidb", replicas=2000)),
    "an image": (
        minimal(tidb={"baseImage": "pingcap/TiDB"}),
        _stateful_set("tidb", "pingcap/TiDB:v8.5.2"),
    ),
    "a time zone": (
        minimal() | {"timezone": "Mars/Base"},
        _stateful_set("tidb", container={"env": [{"name": "TZ", "value": "Mars/Base"}]}),
    ),
    "a size": (
        minimal(tikv={"requests": {"storage": "9Ei"}}),
        _stateful_set(
            "tikv", volumeClaimTemplates=[{"spec": {"resources": {"requests": {"storage": "9Ei"}}}}], replicas=3
        ),
    ),
    "a strategy that v1.6 reads as its default": (
        minimal(tikv={"statefulSetUpdateStrategy": "x"}),
        _stateful_set("tikv"),
    ),
    "a smaller size, which is refused when volumes are looked at": (
        minimal(tikv={"requests": {"storage": "0"}}),
        _stateful_set("tikv"),
    ),
}


@pytest.mark.parametrize("case", _RUNNING)
def test_accepts_values_that_already_run(case: str) -> None:
    """Ratcheting: nothing is tighter than v1.6 for a cluster that runs."""
    spec, running = _RUNNING[case]
    assert [] == _problems(spec, running)


@pytest.mark.parametrize("case", ["an image", "a time zone", "replicas"])
def test_refuses_a_new_value_in_a_running_cluster(case: str) -> None:
    spec, _ = _RUNNING[case]
    assert 1 == len(_problems(spec, _stateful_set("tidb")))


def test_ignores_the_name_of_a_running_cluster() -> None:
    assert [] == _problems(minimal(), status={"clusterID": "17"}, name="a.b")


def test_accepts_reported_replicas_while_the_stateful_set_is_recreated() -> None:
    status = {"tidb": {"statefulSet": {"replicas": 2000}}}
    assert [] == _problems(minimal(tidb={"replicas": 2000}), status=status)
