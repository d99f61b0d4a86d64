"""`make bench BENCH=clients` keeps to the fields and words that it uses."""

import pytest

from apis.decoding import decode
from apis.tidbcluster import TidbCluster
from apis.validation.cluster import validate
from bench.clients import main, manifest


def test_the_cluster_of_the_bench_is_valid() -> None:
    assert [] == validate(decode(manifest(), TidbCluster))


def test_an_unknown_operation_is_named_with_the_known_ones(capsys: pytest.CaptureFixture[str]) -> None:
    assert 2 == main(["upgrad"])
    assert "unknown: upgrad; there are sandbox, real, ours, v1.6.6, take_over, upgrade" in capsys.readouterr().err
