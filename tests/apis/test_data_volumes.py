"""The owner of the data on a volume claim."""

from collections.abc import Mapping

import pytest

from apis.data_volumes import COMPONENT_LABEL, POD_NAME_LABEL, clusters_of_claim, is_claim_of

_PD = {COMPONENT_LABEL: "pd"}


@pytest.mark.parametrize(
    ("name", "labels", "clusters"),
    [
        ("pd-demo-pd-0", _PD, ["demo"]),
        ("pd-log-demo-pd-0", _PD, ["log-demo", "demo"]),
        ("pd-log-demo-pd-0", _PD | {POD_NAME_LABEL: "demo-pd-0"}, ["demo"]),
        ("pd-demo-pd-0", {COMPONENT_LABEL: "tikv"}, []),
        ("pd-demo-pd-zero", _PD, []),
        ("demo-pd-0", _PD, []),
        ("pd-demo-pd-0", _PD | {POD_NAME_LABEL: "something"}, []),
        ("pd-demo-pd-0", {}, []),
        ("", {}, []),
    ],
)
def test_finds_the_clusters_of_a_claim_by_pod_label_or_name(
    name: str, labels: Mapping[str, str], clusters: list[str]
) -> None:
    assert clusters == clusters_of_claim(name, labels)
    assert all(is_claim_of(cluster, name, labels) for cluster in clusters)
    assert not is_claim_of("other", name, labels)
