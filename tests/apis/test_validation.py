"""Invalid specs are reported before anything is written (defaults-and-validation.md 3, lifecycle.md 2.2)."""

from typing import Any

import pytest
import yaml
from msgspec import structs

from apis.crd import DIRECTORY
from apis.decoding import decode
from apis.defaulting import with_defaults
from apis.shared import Json
from apis.tidbcluster import TidbCluster
from apis.validation import Running, immutability, validate
from tests.apis.clusters import cluster, golden_clusters, minimal

TIFLASH: Json = {"replicas": 1, "storageClaims": [{"resources": {"requests": {"storage": "1Gi"}}}]}


def fields(spec: Json, **metadata: Any) -> list[str]:
    return [problem.field for problem in validate(cluster(spec, **metadata))]


@pytest.mark.parametrize(("name", "item"), golden_clusters())
def test_clusters_recorded_from_v1_6_are_valid(name: str, item: Json) -> None:
    tc = with_defaults(decode(item, TidbCluster))
    assert [] == validate(tc), name
    assert [] == immutability(tc, Running())


def test_samples_are_valid() -> None:
    samples = sorted((DIRECTORY.parent / "samples").glob("*.yaml"))
    assert samples
    for path in samples:
        for document in yaml.safe_load_all(path.read_text(encoding="utf-8")):
            if document and document["kind"] == "TidbCluster":
                tc = with_defaults(decode(document, TidbCluster))
                assert [] == [*validate(tc), *immutability(tc, Running())]


def test_samples_are_valid_under_v1_6() -> None:
    """Its validation knows no container that only patches another, and no variable from a field of the pod (3.2)."""
    for path in (DIRECTORY.parent / "samples").glob("*.yaml"):
        documents = [each for each in yaml.safe_load_all(path.read_text(encoding="utf-8")) if each]
        specs = [each["spec"] for each in documents if each["kind"] == "TidbCluster"]
        for part in (each for spec in specs for each in spec.values() if isinstance(each, dict)):
            assert all(each.get("image") for each in part.get("additionalContainers", ()))
            sources = [each["valueFrom"] for each in part.get("env", ()) if "valueFrom" in each]
            assert all({*each} <= {"configMapKeyRef", "secretKeyRef"} for each in sources)


@pytest.mark.parametrize("domain", ["[::1", "a b", "-a", "a..b", "a/b", "x" * 254, "a-"])
def test_parts_of_addresses_must_be_domains(domain: str) -> None:
    spec = minimal() | {"clusterDomain": domain, "cluster": {"name": "basic", "clusterDomain": domain}}
    assert ["spec.clusterDomain", "spec.cluster.clusterDomain"] == fields(spec)


@pytest.mark.parametrize("domain", ["", "cluster.local", "Cluster.Local", "k8s_a.example.com.", "x"])
def test_accepts_domains_that_resolvers_accept(domain: str) -> None:
    assert [] == fields(minimal() | {"clusterDomain": domain})


@pytest.mark.parametrize(
    ("other", "wrong"),
    [
        ({"name": "x" * 254}, ["name"]),
        ({"name": "Basic"}, ["name"]),
        ({"name": "basic", "namespace": "a.b"}, ["namespace"]),
        ({"name": "basic", "namespace": "prod"}, []),
    ],
)
def test_the_name_of_a_referenced_cluster_must_be_an_object_name(other: Json, wrong: list[str]) -> None:
    assert [f"spec.cluster.{field}" for field in wrong] == fields(minimal() | {"cluster": other})


def test_all_problems_are_collected_with_field_value_and_way_out() -> None:
    spec = minimal(pd={"requests": {}, "dataSubDir": "/x"}, tikv={"evictLeaderTimeout": "soon"})
    assert [
        "spec.pd.requests.storage: is required; specify the size of the data volume, such as 100Gi",
        'spec.pd.dataSubDir: "/x": must be relative to the data volume; remove the leading /',
        'spec.tikv.evictLeaderTimeout: "soon": must be a duration such as 90s, 10m or 1h30m',
    ] == [str(problem) for problem in validate(cluster(spec))]


@pytest.mark.parametrize("component", ["pd", "tso", "scheduling", "tidb", "tikv", "tiflash", "ticdc", "tiproxy"])
@pytest.mark.parametrize("text", ["", '["1"]', "[-1]"])
def test_delete_slots_of_every_component_are_checked(component: str, text: str) -> None:
    key = f"{component}.tidb.pingcap.com/delete-slots"
    assert [f'metadata.annotations["{key}"]'] == fields(minimal(), annotations={key: text})
    assert [] == fields(minimal(), annotations={key: "[1,3]"})


@pytest.mark.parametrize("key", ["", "-a", "a b", "x/y/z", "UP_/a", "a" * 64, ".com/a"])
def test_annotation_keys_are_qualified_names(key: str) -> None:
    assert ["metadata.annotations"] == fields(minimal(), annotations={key: ""})


def test_annotation_keys_may_have_capitals_and_a_domain() -> None:
    assert [] == fields(minimal(), annotations={"Example.com/Some_Key.x": "", "evictLeaderBeginTime": ""})


def test_annotations_may_not_be_too_large() -> None:
    assert ["metadata.annotations"] == fields(minimal(), annotations={"a": "x" * 262144})


@pytest.mark.parametrize(
    ("entry", "below"),
    [
        ({"value": "x"}, ".name"),
        ({"name": "1a"}, ".name"),
        ({"name": "..a"}, ".name"),
        ({"name": "A", "valueFrom": {}}, ".valueFrom"),
        ({"name": "A", "valueFrom": {"configMapKeyRef": {"name": "a", "key": "k"}, "fieldRef": {}}}, ".valueFrom"),
        ({"name": "A", "value": "x", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}, ".valueFrom"),
        ({"name": "A", "valueFrom": {"secretKeyRef": {"name": "A_", "key": "k"}}}, ".valueFrom.secretKeyRef.name"),
        ({"name": "A", "valueFrom": {"configMapKeyRef": {"name": "a"}}}, ".valueFrom.configMapKeyRef.key"),
        ({"name": "A", "valueFrom": {"secretKeyRef": {"name": "a", "key": "..k"}}}, ".valueFrom.secretKeyRef.key"),
    ],
)
def test_environment_variables_have_a_name_and_one_source(entry: Json, below: str) -> None:
    assert [f"spec.tiproxy.env[1]{below}"] == fields(minimal(tiproxy={"replicas": 1, "env": [{"name": "OK"}, entry]}))


@pytest.mark.parametrize(
    "source",
    [
        {"fieldRef": {"fieldPath": "status.podIP"}},
        {"resourceFieldRef": {"resource": "limits.cpu"}},
        {"secretKeyRef": {"name": "a.b", "key": "K_1"}},
    ],
)
def test_accepts_environment_variables_from_fields_of_the_pod(source: Json) -> None:
    assert [] == fields(minimal(pd={"env": [{"name": "A.b-c_", "valueFrom": source}]}))


@pytest.mark.parametrize(
    ("part", "field"),
    [
        ({"additionalVolumes": [{}]}, "additionalVolumes[0].name"),
        ({"additionalVolumes": [{"name": "A_b", "emptyDir": {}}]}, "additionalVolumes[0].name"),
        ({"additionalVolumes": [{"name": "x"}, {"name": "x"}]}, "additionalVolumes[1].name"),
        ({"additionalVolumeMounts": [{"mountPath": "/x"}]}, "additionalVolumeMounts[0].name"),
        ({"requests": {"storage": "1Gi", "cpu": "-1"}}, "requests.cpu"),
        ({"additionalContainers": [{"image": "x:v1"}]}, "additionalContainers[0].name"),
        ({"initContainers": [{"image": "x:v1"}]}, "initContainers[0].name"),
        ({"labels": {"a": "b c"}}, 'labels["a"]'),
        ({"labels": {"a": "x" * 64}}, 'labels["a"]'),
        ({"labels": {"a b": "c"}}, "labels"),
        ({"annotations": {"a b": "c"}}, "annotations"),
    ],
)
@pytest.mark.parametrize("component", ["pd", "tikv", "tidb"])
def test_names_and_labels_of_pods_are_well_formed(component: str, part: Json, field: str) -> None:
    assert [f"spec.{component}.{field}"] == fields(minimal(**{component: part}))


def test_labels_of_all_pods_are_well_formed() -> None:
    assert ['spec.labels["a"]'] == fields(minimal(labels={"a": "b c"}))
    assert [] == fields(minimal(labels={"example.com/a": "B.c_1"}, tikv={"labels": {"a": ""}}))


def test_only_a_container_that_is_not_generated_needs_an_image() -> None:
    patches = [{"name": name} for name in ("tikv", "raftlog", "rocksdblog", "mine")]
    parts = {"additionalContainers": patches, "separateRaftLog": True}
    assert [f"spec.tikv.additionalContainers[{index}].image" for index in (2, 3)] == fields(minimal(tikv=parts))
    merged = [{"name": name} for name in ("tidb", "slowlog")]
    assert [] == fields(minimal(tidb={"additionalContainers": merged}))
    merged = [{"name": name} for name in ("tiflash", "serverlog", "errorlog", "clusterlog")]
    assert [] == fields(minimal(tiflash={**TIFLASH, "additionalContainers": merged}))


@pytest.mark.parametrize("component", ["pd", "tikv", "pump"])
def test_data_volumes_have_a_size_even_without_replicas(component: str) -> None:
    part = {"replicas": 0, "requests": {"cpu": "1"}}
    assert [f"spec.{component}.requests.storage"] == fields(minimal(**{component: part}))


@pytest.mark.parametrize(
    ("part", "field"),
    [
        ({"requests": {"storage": "1Gi", "cpu": "much"}}, "requests.cpu"),
        ({"limits": {"memory": "1GiB"}}, "limits.memory"),
        ({"storageVolumes": [{"name": "", "storageSize": "1Gi"}]}, "storageVolumes[0].name"),
        ({"storageVolumes": [{"name": "a", "storageSize": "big"}]}, "storageVolumes[0].storageSize"),
        ({"dataSubDir": "a/../b"}, "dataSubDir"),
        ({"dataSubDir": "/a"}, "dataSubDir"),
        ({"separateRaftLog": True, "raftLogVolumeName": "wal"}, "raftLogVolumeName"),
        ({"separateRocksDBLog": True, "rocksDBLogVolumeName": "wal"}, "rocksDBLogVolumeName"),
        (
            {
                "separateRaftLog": True,
                "raftLogVolumeName": "w",
                "storageVolumes": [{"name": "w", "storageSize": "1Gi"}],
            },
            "raftLogVolumeName",
        ),
        ({"scalePolicy": {"scaleInParallelism": 0}}, "scalePolicy.scaleInParallelism"),
        ({"scalePolicy": {"scaleOutParallelism": -1}}, "scalePolicy.scaleOutParallelism"),
        ({"evictLeaderTimeout": "0s"}, "evictLeaderTimeout"),
        ({"waitLeaderTransferBackTimeout": "1 minute"}, "waitLeaderTransferBackTimeout"),
        ({"config": "= 1"}, "config"),
        ({"config": {"security": 1}}, "config.security"),
    ],
)
def test_reports_a_problem_of_tikv(part: Json, field: str) -> None:
    assert [f"spec.tikv.{field}"] == fields(minimal(tikv=part))


@pytest.mark.parametrize(
    "part",
    [
        {"raftLogVolumeName": "wal"},
        {
            "separateRaftLog": True,
            "raftLogVolumeName": "w",
            "storageVolumes": [{"name": "w", "storageSize": "1Gi", "mountPath": "/w"}],
        },
        {
            "separateRocksDBLog": True,
            "rocksDBLogVolumeName": "w",
            "additionalVolumes": [{"name": "w"}],
            "additionalVolumeMounts": [{"name": "w"}],
        },
        {"dataSubDir": "a/b..c"},
    ],
)
def test_accepts_log_volumes_and_directories_that_work(part: Json) -> None:
    assert [] == fields(minimal(tikv=part))


@pytest.mark.parametrize(
    ("part", "field"),
    [
        ({"slowLogVolumeName": "w"}, "slowLogVolumeName"),
        ({"slowLogVolumeName": "w", "additionalVolumes": [{"name": "w"}]}, "slowLogVolumeName"),
        ({"slowLogVolumeName": "w", "storageVolumes": [{"name": "w", "storageSize": "1Gi"}]}, "slowLogVolumeName"),
        ({"service": {"loadBalancerSourceRanges": ["10.0.0.0/8", "10.0.0.1"]}}, "service.loadBalancerSourceRanges[1]"),
        ({"service": {"loadBalancerSourceRanges": ["10.0.0.0/33"]}}, "service.loadBalancerSourceRanges[0]"),
        ({"config": {"log": {"file": "x"}}}, "config.log.file"),
        ({"config": {"status": {"status-port": 10090}}}, "config.status.status-port"),
        ({"config": "[status]\nstatus-port = 10090\n"}, "config.status.status-port"),
        ({"config": "[Status]\nStatus-Port = 10090\n"}, "config.Status.Status-Port"),
        ({"config": {"status": {"status-port": "10080"}}}, "config.status.status-port"),
        ({"config": {"status": {"report-status": False}}}, "config.status.report-status"),
        ({"config": {"status": {"report-status": 1}}}, "config.status.report-status"),
        ({"config": {"status": {"status-host": "127.0.0.1"}}}, "config.status.status-host"),
        ({"config": "port = 4001"}, "config.port"),
        ({"arguments": ["--status=10090"]}, "arguments[0]"),
        ({"arguments": ["--log-slow-query=/x", "-P 4001"]}, "arguments[1]"),
        ({"arguments": ["-P", "4001"]}, "arguments[0]"),
        ({"arguments": ["-report-status=false"]}, "arguments[0]"),
        ({"arguments": ["--status-host=$POD_IP"]}, "arguments[0]"),
    ],
)
def test_reports_a_problem_of_tidb(part: Json, field: str) -> None:
    assert [f"spec.tidb.{field}"] == fields(minimal(tidb=part))


@pytest.mark.rule("R25")
def test_refuses_settings_that_move_a_server_unless_a_flag_wins() -> None:
    config = {"server": {"advertise-status-addr": "10.0.0.1:20180", "addr": "0.0.0.0:20161"}}
    assert ["spec.tikv.config.server.advertise-status-addr"] == fields(minimal(tikv={"config": config}))


@pytest.mark.rule("R25")
def test_accepts_settings_that_repeat_the_defaults() -> None:
    assert [] == fields(
        minimal(
            pd={"config": {"client-urls": "http://0.0.0.0:2379", "advertise-peer-urls": "", "peer-urls": None}},
            tikv={"config": '[server]\naddr = "[::]:20160"\nstatus-addr = "0.0.0.0:20180"\nadvertise-addr = ""\n'},
            tidb={
                "config": {"host": "::", "port": 4000, "status": {"report-status": True, "status-host": "0.0.0.0"}},
                "arguments": ["--status=10080 -P 4000", "--report-status", "--status-host=::"],
            },
        )
    )


def test_accepts_source_ranges_with_ipv6_or_host_bits() -> None:
    ranges = ["fd00::/8", " 10.1.2.3/8 "]
    assert [] == fields(minimal(pd={"service": {"loadBalancerSourceRanges": ranges}}, tidb={"slowLogVolumeName": ""}))


@pytest.mark.parametrize(
    ("part", "field"),
    [
        ({"storageClaims": []}, "storageClaims"),
        ({"storageClaims": [{}]}, "storageClaims[0].resources.requests.storage"),
        ({"config": {"config": {"flash": {"overlap_threshold": 1.5}}}}, "config.config.flash.overlap_threshold"),
        ({"config": {"config": "[flash]\noverlap_threshold = 1\n"}}, "config.config.flash.overlap_threshold"),
        ({"config": {"config": {"logger": {"log": "/x.log"}}}}, "config.config.logger.log"),
        ({"config": {"config": {"flash": {"flash_cluster": {"log": 1}}}}}, "config.config.flash.flash_cluster.log"),
        ({"config": {"config": {"logger": {"log": "/var/log/x.log"}}}}, "config.config.logger.log"),
        ({"config": {"config": {"flash": {"service_addr": "0.0.0.0:1"}}}}, "config.config.flash.service_addr"),
        ({"config": {"proxy": {"server": {"status-addr": "0.0.0.0:1"}}}}, "config.proxy.server.status-addr"),
        ({"config": {"proxy": "["}}, "config.proxy"),
    ],
)
def test_reports_a_problem_of_tiflash(part: Json, field: str) -> None:
    assert [f"spec.tiflash.{field}"] == fields(minimal(tiflash={**TIFLASH, **part}))


def test_tiflash_with_sensible_settings_is_valid() -> None:
    server = {
        "flash": {"overlap_threshold": 1, "proxy": {"log-file": "/data0/x.log"}},
        "logger": {"errorlog": "/data0/b"},
    }
    assert [] == fields(minimal(tiflash={**TIFLASH, "config": {"config": server, "proxy": "a = 1"}}))


@pytest.mark.parametrize("address", ["pd:2379", "10.0.0.1:2379", "ftp://pd", "http://", "http://[::1"])
def test_pd_addresses_are_http_urls(address: str) -> None:
    assert ["spec.pdAddresses[1]"] == fields({**minimal(), "pdAddresses": ["https://pd:2379", address]})


def test_reports_problems_of_cluster_level_lists() -> None:
    flags = ["WaitForDnsNameIpMatch", "PreferPDAddressesOverDiscovery", "BashShebang", "NoWaitDNS", "Hurry"]
    tso = {"name": "tso", "replicas": 1}
    assert ["spec.startScriptV2FeatureFlags[4]", "spec.pdms[1].name"] == fields(
        {**minimal(), "startScriptV2FeatureFlags": flags, "pdms": [tso, tso]}
    )


def test_graceful_shutdown_timeout_is_a_duration() -> None:
    assert ["spec.ticdc.gracefulShutdownTimeout"] == fields(
        minimal(ticdc={"replicas": 1, "gracefulShutdownTimeout": "1d"})
    )


def test_negative_replicas_are_refused() -> None:
    tc = cluster(minimal())
    assert tc.spec.tidb
    spec = structs.replace(tc.spec, tidb=structs.replace(tc.spec.tidb, replicas=-1))
    assert ["spec.tidb.replicas"] == [problem.field for problem in validate(structs.replace(tc, spec=spec))]


STORE: Json = {"id": "1", "podName": "p", "ip": "x", "leaderCount": 0, "state": "Up"}


@pytest.mark.parametrize(
    ("status", "parts", "expected"),
    [
        ({"stores": {"1": STORE}}, {}, ["spec.tikv.replicas"]),
        ({"stores": {"1": STORE}}, {"pd": {"replicas": 0}}, []),
        ({"stores": {"1": STORE}, "peerStores": {"2": STORE}}, {}, []),
        ({}, {}, []),
    ],
)
def test_tikv_is_not_scaled_to_0_while_it_holds_the_only_data(status: Json, parts: Json, expected: list[str]) -> None:
    tc = cluster(minimal(tikv={"replicas": 0}, **parts), status={"tikv": status})
    assert expected == [problem.field for problem in validate(tc)]
