"""TiKV's objects (objects.md 4.3, 6.4)."""

import pytest

from apis import toml
from apis.problem import InvalidField
from kube.objects import Json
from member.objects.config_map import CONFIG_FILE
from member.tikv import desired as tikv
from tests.member.clusters import TLS, cluster, container_of, names, pod_of, values


def _tikv(**fields: object) -> Json:
    return tikv.stateful_set(cluster(tikv=fields), "cm")


@pytest.mark.parametrize(
    ("limit", "expected"),
    [
        (None, "0"),
        ("2Gi", "2GB"),
        ("1536Mi", "1536MB"),
        ("1G", "953MB"),
        ("500m", "0"),
        ("0", "0"),
        (1073741824, "1GB"),
    ],
)
@pytest.mark.rule("objects-4.3")
def test_capacity_in_tikvs_notation(limit: str | int | None, expected: str) -> None:
    limits = {} if limit is None else {"storage": limit}
    assert expected == values(container_of(_tikv(limits=limits), "tikv"))["CAPACITY"]


@pytest.mark.rule("objects-4.3")
def test_security_context_defaults_to_unprivileged() -> None:
    assert {"privileged": False} == container_of(_tikv(), "tikv")["securityContext"]
    assert {"privileged": True} == container_of(_tikv(privileged=True), "tikv")["securityContext"]
    own = container_of(_tikv(privileged=True, securityContext={"runAsUser": 1}), "tikv")
    assert {"runAsUser": 1} == own["securityContext"]


@pytest.mark.rule("objects-4.3")
def test_an_empty_security_context_switches_privileges_off() -> None:
    assert "securityContext" not in container_of(_tikv(privileged=True, securityContext={}), "tikv")


@pytest.mark.rule("objects-4.3")
def test_the_status_port_is_named_when_wished() -> None:
    assert ["server"] == names(container_of(_tikv(), "tikv")["ports"])
    assert ["server", "status"] == names(container_of(_tikv(enableNamedStatusPort=True), "tikv")["ports"])


@pytest.mark.rule("objects-4.3")
def test_readiness_only_when_wished() -> None:
    assert "readinessProbe" not in container_of(_tikv(), "tikv")
    wished = container_of(_tikv(readinessProbe={"initialDelaySeconds": 30}), "tikv")
    assert {"tcpSocket": {"port": 20160}, "initialDelaySeconds": 30} == wished["readinessProbe"]


@pytest.mark.rule("objects-4.3")
def test_mounts_in_order() -> None:
    fields = {
        "mountClusterClientSecret": True,
        "storageVolumes": [{"name": "wal", "storageSize": "1Gi", "mountPath": "/wal"}],
        "additionalVolumeMounts": [{"name": "x", "mountPath": "/x"}],
    }
    made = tikv.stateful_set(cluster(tlsCluster=TLS, tikv=fields), "cm")
    generated = ["annotations", "tikv", "config", "startup-script"]
    assert [*generated, "x", "tikv-tls", "cluster-client-tls", "tikv-wal"] == names(
        container_of(made, "tikv")["volumeMounts"]
    )
    assert ["annotations", "config", "startup-script", "tikv-tls", "cluster-client-tls"] == names(
        pod_of(made)["volumes"]
    )


@pytest.mark.parametrize(
    ("version", "rocksdb", "raft"),
    [
        ("v8.5.0", "/var/lib/tikv/rocksdb.info", "/var/lib/tikv/raftdb.info"),
        ("v4.0.9", "/var/lib/tikv/db/LOG", "/var/lib/tikv/raft/LOG"),
        ("nightly", "/var/lib/tikv/rocksdb.info", "/var/lib/tikv/raftdb.info"),
    ],
)
@pytest.mark.rule("objects-4.3")
def test_tailers_print_the_log_files(version: str, rocksdb: str, raft: str) -> None:
    tailer = {"limits": {"cpu": "1", "storage": "1Gi"}, "securityContext": {"runAsUser": 1}}
    made = _tikv(separateRocksDBLog=True, separateRaftLog=True, version=version, logTailer=tailer)
    assert ["rocksdblog", "raftlog", "tikv"] == names(pod_of(made)["containers"])
    assert {
        "name": "rocksdblog",
        "image": "busybox:1.26.2",
        "imagePullPolicy": "IfNotPresent",
        "command": ["sh", "-c", f"touch {rocksdb}; tail -n0 -F {rocksdb};"],
        "volumeMounts": [{"name": "tikv", "mountPath": "/var/lib/tikv"}],
        "resources": {"limits": {"cpu": "1"}},
        "securityContext": {"runAsUser": 1},
    } == container_of(made, "rocksdblog")
    assert f"touch {raft}; tail -n0 -F {raft};" == container_of(made, "raftlog")["command"][2]


@pytest.mark.rule("objects-4.3")
def test_a_log_file_may_lie_on_an_additional_mount() -> None:
    mount = {"name": "logs", "mountPath": "/logs", "subPath": "raft"}
    made = _tikv(separateRaftLog=True, raftLogVolumeName="logs", additionalVolumeMounts=[mount])
    tailer = container_of(made, "raftlog")
    assert ([mount], "touch /logs/raftdb.info; tail -n0 -F /logs/raftdb.info;") == (
        tailer["volumeMounts"],
        tailer["command"][2],
    )


@pytest.mark.rule("objects-4.3")
def test_a_log_file_on_an_unknown_volume_is_refused() -> None:
    with pytest.raises(InvalidField, match=r"spec\.tikv\.raftLogVolumeName.*nowhere"):
        _tikv(separateRaftLog=True, raftLogVolumeName="nowhere")


@pytest.mark.rule("objects-6.4")
def test_tls_paths_and_digits_without_quotes() -> None:
    config = '[pessimistic-txn]\nwait-for-lock-timeout = "1000"\nwake-up-delay-duration = "20ms"\n'
    made = toml.loads(tikv.content(cluster(tlsCluster=TLS, tikv={"config": config})).data[CONFIG_FILE])
    assert {
        "pessimistic-txn": {"wait-for-lock-timeout": 1000, "wake-up-delay-duration": "20ms"},
        "security": {
            "ca-path": "/var/lib/tikv-tls/ca.crt",
            "cert-path": "/var/lib/tikv-tls/tls.crt",
            "key-path": "/var/lib/tikv-tls/tls.key",
        },
    } == made


@pytest.mark.rule("TAIL-1", "TAIL-2")
@pytest.mark.parametrize(("seconds", "rest"), [(None, ""), (0, ""), (7, "sleep 7; ")])
def test_native_sidecars_are_the_last_init_containers_and_handle_sigterm(seconds: int | None, rest: str) -> None:
    tailer = {"useSidecar": True, "sleepTimeSeconds": seconds, "limits": {"cpu": "1"}}
    own = {"name": "mine", "image": "i"}
    made = pod_of(_tikv(separateRocksDBLog=True, separateRaftLog=True, logTailer=tailer, initContainers=[own]))
    assert (["mine", "rocksdblog", "raftlog"], ["tikv"]) == (names(made["initContainers"]), names(made["containers"]))
    log = "/var/lib/tikv/rocksdb.info"
    assert {
        "name": "rocksdblog",
        "image": "busybox:1.26.2",
        "imagePullPolicy": "IfNotPresent",
        "command": ["sh", "-c", f'trap "{rest}exit 0" TERM; touch {log}; tail -n0 -F {log} & wait $!'],
        "volumeMounts": [{"name": "tikv", "mountPath": "/var/lib/tikv"}],
        "resources": {"limits": {"cpu": "1"}},
        "restartPolicy": "Always",
    } == made["initContainers"][1]


@pytest.mark.rule("TAIL-6")
def test_an_additional_container_changes_the_native_sidecar_of_its_name() -> None:
    more = [{"name": "raftlog", "image": "own:1"}, {"name": "other", "image": "i"}]
    made = pod_of(_tikv(separateRaftLog=True, logTailer={"useSidecar": True}, additionalContainers=more))
    assert ["own:1"] == [each["image"] for each in made["initContainers"]]
    assert ["tikv", "other"] == names(made["containers"])
