"""The names and kinds of clusters (defaults-and-validation.md 8.4)."""

import pytest

from apis.identity import instance_name, is_heterogeneous, scheme
from apis.shared import Json
from tests.apis.clusters import cluster, minimal


@pytest.mark.parametrize(
    ("labels", "name"), [({}, "basic"), ({"app.kubernetes.io/instance": "legacy"}, "legacy"), ({"other": "x"}, "basic")]
)
def test_the_instance_name_is_the_clusters_label_or_its_name(labels: dict[str, str], name: str) -> None:
    assert name == instance_name(cluster(minimal(), labels=labels))


@pytest.mark.parametrize(("tls", "expected"), [({}, "http"), ({"enabled": True}, "https"), (None, "http")])
def test_scheme_follows_the_tls_of_the_cluster(tls: Json | None, expected: str) -> None:
    assert expected == scheme(cluster({**minimal(), "tlsCluster": tls}))


@pytest.mark.parametrize(("reference", "expected"), [(None, False), ({"name": ""}, False), ({"name": "a"}, True)])
def test_a_cluster_that_names_another_one_is_heterogeneous(reference: Json | None, expected: bool) -> None:
    assert expected == is_heterogeneous(cluster({**minimal(), "cluster": reference}))
