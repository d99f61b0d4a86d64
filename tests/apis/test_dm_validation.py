"""Defaults and rules of DMClusters (defaults-and-validation.md 2.2, 3.5, other-resources.md 6.1)."""

from typing import Any

import msgspec
import pytest

from apis.accessor import component
from apis.defaulting import with_defaults
from apis.dmcluster import DMCluster
from apis.validation import stricter, validate


def dm(annotations: dict[str, str] | None = None, **spec: Any) -> DMCluster:
    """A defaulted cluster of three masters and two workers, `spec` laid onto it."""
    plain: dict[str, Any] = {"version": "v8.5.2", "master": {"replicas": 3}, "worker": {"replicas": 2}}
    metadata = {"name": "sync", "namespace": "etl", "annotations": annotations or {}}
    return with_defaults(msgspec.convert({"metadata": metadata, "spec": plain | spec}, DMCluster))


def problems(dc: DMCluster) -> list[str]:
    return [each.field for each in validate(dc) or list(stricter.check(dc, {}))]


@pytest.mark.rule("2.2")
def test_absent_fields_have_defaults() -> None:
    dc = dm()
    assert ("IfNotPresent", False, "Retain") == (
        dc.spec.image_pull_policy,
        dc.spec.enable_pv_reclaim,
        dc.spec.pv_reclaim_policy,
    )
    for name in ("dm-master", "dm-worker"):
        own = component(dc, name)
        assert ("pingcap/dm:v8.5.2", "10Gi") == (own.image, own.storage_request)
    assert dc.spec.master is not None
    assert 3 == dc.spec.master.max_failover_count
    assert [] == problems(dc)


@pytest.mark.parametrize("version", ["v1.0.7", "1.0", "v1"])
@pytest.mark.rule("3.5")
def test_DM_v1_is_refused(version: str) -> None:
    assert ["spec.version"] == problems(dm(version=version))


@pytest.mark.parametrize("version", ["v2.0.0", "nightly", "latest", "v8.5.2-patch", "7f3a9c1"])
@pytest.mark.rule("3.5")
def test_accepts_newer_and_non_numeric_versions(version: str) -> None:
    assert [] == problems(dm(version=version))


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        ({"master": None}, "spec.master"),
        ({"master": {"replicas": 3, "storageSize": "much"}}, "spec.master.storageSize"),
        ({"worker": {"replicas": 1, "storageSize": "9Ei"}}, "spec.worker.storageSize"),
        ({"worker": {"replicas": 5000}}, "spec.worker.replicas"),
        ({"master": {"replicas": 1, "dataSubDir": "../x"}}, "spec.master.dataSubDir"),
        ({"master": {"replicas": 1, "config": "a = "}}, "spec.master.config"),
        ({"master": {"replicas": 1, "service": {"loadBalancerSourceRanges": ["x"]}}}, "loadBalancerSourceRanges[0]"),
        ({"worker": {"replicas": 1, "env": [{}]}}, "spec.worker.env[0].name"),
        ({"discovery": {"additionalContainers": [{"image": "x"}]}}, "spec.discovery.additionalContainers[0].name"),
        ({"tlsClientSecretNames": ["a", "a"]}, "spec.tlsClientSecretNames[1]"),
        ({"timezone": "Nowhere"}, "spec.timezone"),
        ({"configUpdateStrategy": "Sometimes"}, "spec.configUpdateStrategy"),
    ],
    ids=str,
)
@pytest.mark.rule("3.2")
def test_names_the_field_of_a_setting_that_cannot_work(spec: dict[str, Any], field: str) -> None:
    found = problems(dm(**spec))
    assert [] != found
    assert all(each.endswith(field) for each in found)


@pytest.mark.parametrize("name", ["dm-master", "dm-worker"])
@pytest.mark.parametrize("text", ["", "{}", '["1"]', "[1.5]"])
@pytest.mark.rule("defaults-and-validation-3.1")
def test_refuses_delete_slots_that_are_no_list_of_ordinals(name: str, text: str) -> None:
    key = f"{name}.tidb.pingcap.com/delete-slots"
    assert [f'metadata.annotations["{key}"]'] == problems(dm({key: text}))
