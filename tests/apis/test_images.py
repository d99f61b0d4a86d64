"""Images and versions (objects.md 3.2, defaults-and-validation.md 8.1)."""

import pytest

from apis import images
from apis.accessor import component, helper_image, helper_image_pull_policy
from apis.shared import Json
from tests.apis.clusters import cluster, minimal


@pytest.mark.parametrize(
    ("image", "parts"),
    [
        ("pingcap/pd:v8.5.2", ("pingcap/pd", "v8.5.2", "")),
        ("registry:5000/pd", ("registry:5000/pd", "", "")),
        ("registry:5000/a/pd:v1", ("registry:5000/a/pd", "v1", "")),
        ("pd@sha256:abc", ("pd", "", "sha256:abc")),
        ("r:5/pd:v1@sha256:abc", ("r:5/pd", "v1", "sha256:abc")),
        ("pd", ("pd", "", "")),
    ],
)
def test_an_image_reference_survives_parsing_and_printing(image: str, parts: tuple[str, str, str]) -> None:
    reference = images.parse(image)
    assert parts == (reference.repository, reference.tag, reference.digest)
    assert image == str(reference)


@pytest.mark.parametrize(
    ("base", "version", "image"),
    [
        ("pingcap/pd", "v8.5.2", "pingcap/pd:v8.5.2"),
        ("pingcap/pd", "", "pingcap/pd"),
        ("registry:5000/pd", "v1", "registry:5000/pd:v1"),
        ("registry:5000/pd:old", "v1", "registry:5000/pd:v1"),
        ("pd@sha256:abc", "v1", "pd:v1@sha256:abc"),
        ("", "v1", ""),
    ],
)
def test_version_replaces_the_tag(base: str, version: str, image: str) -> None:
    assert image == images.with_version(base, version)


@pytest.mark.parametrize(
    ("image", "version"), [("pd:v1", "v1"), ("registry:5000/pd", "latest"), ("pd@sha256:abc", "latest"), ("", "latest")]
)
def test_the_version_of_an_image_is_its_tag(image: str, version: str) -> None:
    assert version == images.version_of(image)


def test_versions_are_ordered_by_number_without_suffix() -> None:
    assert images.order("v5.4.0-alpha") == images.order("v5.4.0") == images.order("5.4") == (5, 4, 0)
    assert images.at_least("v6.10.0", "v6.9.9")
    assert not images.at_least("v7.0.5", "v7.1.0")


@pytest.mark.parametrize("version", ["latest", "nightly", "master", "nightly-20240101", "feature/x", "", "sha-1f"])
@pytest.mark.rule("F25", "#5173")
def test_a_non_numeric_version_is_the_newest(version: str) -> None:
    assert images.at_least(version, "v99.0.0")


@pytest.mark.parametrize(
    ("spec", "image"),
    [
        ({"version": "v1", "pd": {}}, "pingcap/pd:v1"),
        ({"version": "v1", "pd": {"version": "v2"}}, "pingcap/pd:v2"),
        ({"version": "v1", "pd": {"version": ""}}, "pingcap/pd"),
        ({"version": "v1", "pd": {"baseImage": "mirror:5000/pd"}}, "mirror:5000/pd:v1"),
        ({"version": "v1", "pd": {"baseImage": "", "image": "old:1"}}, "pingcap/pd:v1"),
        ({"pd": {"baseImage": "", "image": "old:1"}}, "old:1"),
        ({"pd": {"baseImage": "", "version": "v2"}}, "pingcap/pd:v2"),
    ],
)
def test_image_of_a_component(spec: Json, image: str) -> None:
    spec["pd"]["replicas"] = 1
    assert image == component(cluster(spec), "pd").image


def test_a_pd_microservice_without_an_image_runs_pds_image() -> None:
    pdms = [{"name": "tso", "replicas": 1, "baseImage": ""}, {"name": "scheduling", "replicas": 1, "version": "v9"}]
    tc = cluster({"pd": {"replicas": 1, "baseImage": "mirror/pd"}, "pdms": pdms})
    assert ["mirror/pd", "pingcap/pd:v9"] == [component(tc, name).image for name in ("tso", "scheduling")]


def test_a_null_base_image_of_a_pd_microservice_means_its_default() -> None:
    tc = cluster({"version": "v1", "pdms": [{"name": "tso", "replicas": 1, "baseImage": None}]})
    assert "pingcap/pd:v1" == component(tc, "tso").image


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({}, ("busybox:1.26.2", "IfNotPresent")),
        ({"tidb": {"slowLogTailer": {"image": "t", "imagePullPolicy": "Always"}}}, ("t", "Always")),
        (
            {"helper": {"image": "h", "imagePullPolicy": "Never"}, "tidb": {"slowLogTailer": {"image": "t"}}},
            ("h", "Never"),
        ),
    ],
)
def test_helper_image_falls_back_to_the_slow_log_tailer(spec: Json, expected: tuple[str, str]) -> None:
    tc = cluster(minimal(**spec))
    assert expected == (helper_image(tc), helper_image_pull_policy(tc))
