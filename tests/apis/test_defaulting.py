"""Defaults, in memory only (defaults-and-validation.md 2.1, 2.4)."""

import pytest

from apis.decoding import decode, encode
from apis.defaulting import with_defaults
from apis.shared import Json, ScalePolicy, TLSCluster
from apis.tidbcluster import TidbCluster
from tests.apis.clusters import cluster, golden_clusters, minimal, tree


def test_cluster_level_defaults() -> None:
    spec = cluster(minimal() | {"imagePullPolicy": "", "pvReclaimPolicy": "", "cluster": {"name": "other"}}).spec
    assert ("IfNotPresent", "Retain", TLSCluster()) == (
        spec.image_pull_policy,
        spec.pv_reclaim_policy,
        spec.tls_cluster,
    )
    assert (False, False, "v1") == (spec.enable_pv_reclaim, spec.enable_pvc_replace, spec.start_script_version)
    assert spec.cluster is not None
    assert "ns" == spec.cluster.namespace


def test_component_defaults() -> None:
    tiflash = {"replicas": 1, "storageClaims": [{}]}
    spec = cluster(minimal(tiflash=tiflash, ticdc={"replicas": 1}, tidb={"service": {}})).spec
    assert spec.pd
    assert spec.tikv
    assert spec.tidb
    assert spec.tiflash
    assert spec.ticdc
    assert [3, 3, 3, 3] == [part.max_failover_count for part in (spec.pd, spec.tikv, spec.tidb, spec.tiflash)]
    assert [1, 1] == [spec.pd.spare_vol_replace_replicas, spec.tikv.spare_vol_replace_replicas]
    assert [ScalePolicy(), ScalePolicy()] == [spec.tikv.scale_policy, spec.tidb.scale_policy]
    assert ("1500m", "400s") == (spec.tikv.evict_leader_timeout, spec.tikv.wait_leader_transfer_back_timeout)
    assert (False, False, False) == (
        spec.tikv.privileged,
        spec.tikv.separate_raft_log,
        spec.tikv.separate_rocks_db_log,
    )
    assert (True, False) == (spec.tidb.separate_slow_log, spec.tidb.binlog_enabled)
    assert "10m" == spec.ticdc.graceful_shutdown_timeout
    assert spec.tidb.service
    assert (True, "mysql-client", 4000) == (
        spec.tidb.service.expose_status,
        spec.tidb.service.port_name,
        spec.tidb.service.port,
    )


@pytest.mark.parametrize(("given", "expected"), [({}, 30), ({"startTimeout": 0}, 30), ({"startTimeout": 7}, 7)])
def test_start_timeout_0_counts_as_30(given: Json, expected: int) -> None:
    pd = cluster(minimal(pd=given)).spec.pd
    assert pd
    assert expected == pd.start_timeout


def test_keeps_the_users_values_even_if_they_are_zero() -> None:
    spec = cluster(minimal(pd={"maxFailoverCount": 0}, tidb={"separateSlowLog": False}, pump={"replicas": 1})).spec
    assert spec.pd
    assert spec.tidb
    assert (0, False, True) == (spec.pd.max_failover_count, spec.tidb.separate_slow_log, spec.tidb.binlog_enabled)


def test_absent_components_stay_absent() -> None:
    spec = cluster({"version": "v1"}).spec
    assert [None] * 7 == [spec.pd, spec.tikv, spec.tidb, spec.tiflash, spec.ticdc, spec.tiproxy, spec.pump]


def test_fills_in_a_base_image_only_if_there_is_a_version() -> None:
    parts = {"pd": "pd", "tikv": "tikv", "tidb": "tidb", "ticdc": "ticdc", "tiproxy": "tiproxy", "pump": "tidb-binlog"}
    written = {name: {"replicas": 1, "baseImage": ""} for name in parts}
    versioned, unversioned = cluster({"version": "v1", **written}).spec, cluster({**written}).spec
    for name, image in parts.items():
        assert f"pingcap/{image}" == getattr(versioned, name).base_image
        assert "" == getattr(unversioned, name).base_image


@pytest.mark.parametrize(("name", "item"), golden_clusters())
def test_defaulting_is_idempotent_and_does_not_change_its_input(name: str, item: Json) -> None:
    tc = decode(item, TidbCluster)
    before = encode(tc)
    once = with_defaults(tc)
    assert before == encode(tc), name
    assert once == with_defaults(once)


def test_configuration_is_not_rewritten() -> None:
    tidb = with_defaults(decode(tree(minimal(tidb={"config": 'a = 1  # "why"'})), TidbCluster)).spec.tidb
    assert tidb
    assert 'a = 1  # "why"' == tidb.config
