"""A spec with parts that nothing is made for is noticed."""

import pytest

from apis.tidbcluster import TidbCluster
from member.components import unsupported
from tests.member.clusters import cluster

STORED = {"replicas": 1, "requests": {"storage": "1Gi"}}


@pytest.mark.parametrize(
    ("tc", "expected"),
    [
        (cluster(), []),
        (cluster(pdms=[{"name": "tso", "replicas": 1}]), []),
        (cluster(pdms=[{"name": "tso", "replicas": 1}], pd={"mode": "ms"}), []),
        (cluster(tidb={"initializer": {"createPassword": False}}), []),
        (cluster(tidb={"initializer": {"createPassword": True}}), []),
        (
            cluster(ticdc={"replicas": 1}, pump=STORED, tiproxy={"replicas": 0}),
            [],
        ),
    ],
)
def test_parts_without_a_manager_are_named(tc: TidbCluster, expected: list[str]) -> None:
    assert expected == unsupported(tc)
