"""TiCI's desired objects, TiFlash's reader, and the sink of the changefeed (TICI-10 to TICI-31)."""

import tomllib
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from msgspec import convert

from apis.defaulting import with_defaults
from apis.tidbcluster import TidbCluster
from apis.validation.cluster import validate
from kube.objects import Json
from member.objects.config_map import CONFIG_FILE
from member.tici import desired
from member.tici.desired import Keys, leads_to_the_same, sink, without_keys
from member.tiflash.desired import configured_by_v16, content, proxy_tables, server_tables
from member.tiflash.desired import stateful_set as tiflash
from tests.controllers.tidbcluster.test_tici import with_tici

BOTH = pytest.mark.parametrize("name", ["tici-meta", "tici-worker"])


def cluster(patch: Json | None = None, **tici: Any) -> TidbCluster:
    body = with_tici(**tici)
    body["metadata"] |= {"namespace": "ns", "uid": "u"}
    body["spec"] |= patch or {}
    return with_defaults(convert(body, TidbCluster))


def by_secret() -> TidbCluster:
    return cluster(s3={"endpoint": "http://minio:9000", "bucket": "fts", "secretName": "keys"})


def config(tc: TidbCluster, name: str) -> dict[str, Any]:
    return tomllib.loads(desired.content(tc, name).data[CONFIG_FILE])


def container(tc: TidbCluster, name: str) -> Json:
    found: Json = desired.stateful_set(tc, name, "cm")["spec"]["template"]["spec"]["containers"][0]
    return found


@pytest.mark.rule("TICI-17", "TICI-18")
@BOTH
def test_the_bucket_in_the_configuration(name: str) -> None:
    awkward = {"endpoint": "http://minio:9000", "bucket": "fts", "accessKey": 'a"\\', "secretKey": "b", "prefix": "p"}
    expected = {"access-key": 'a"\\', "secret-key": "b", "region": "us-east-1", "use-path-style": True, "prefix": "p"}
    found = config(cluster(s3=awkward), name)
    assert expected | {"endpoint": "http://minio:9000", "bucket": "fts"} == found["s3"]
    assert "basic-pd:2379" == found["server"]["pd-addr"]
    assert (name == "tici-meta") == (found.get("tidb-server") == {"dsns": ["mysql://root@basic-tidb:4000"]})


@pytest.mark.rule("TICI-17")
def test_the_users_settings_win() -> None:
    meta = {"replicas": 1, "config": '[tidb-server]\ndsns = ["mysql://a:b@c:4000"]\n[shard]\nmax-size = "1GB"\n'}
    found = config(cluster(meta=meta), "tici-meta")
    assert (["mysql://a:b@c:4000"], "1GB") == (found["tidb-server"]["dsns"], found["shard"]["max-size"])
    assert "fts" == found["s3"]["bucket"]


@pytest.mark.rule("TICI-10", "TICI-11", "TICI-19")
@BOTH
def test_the_start_line_is_the_one_of_v17(name: str) -> None:
    made = container(cluster({"clusterDomain": "cluster.local"}), name)
    kind, (peer, status) = name.removeprefix("tici-"), (8500, 8501) if name == "tici-meta" else (8510, 8511)
    own = f"${{POD_NAME}}.basic-{name}-peer.ns.svc.cluster.local"
    line = (
        f"exec /tici-server {kind} --config=/etc/tici/tici.toml --host=0.0.0.0 --port={peer} "
        f"--status-port={status} --advertise-host={own} --pd-addr=basic-pd:2379"
    )
    assert (["/bin/sh", "-c"], [line]) == (made["command"], made["args"])
    assert [{"containerPort": peer}, {"containerPort": status}] == made["ports"]
    assert {"name": "config", "mountPath": "/etc/tici"} in made["volumeMounts"]


@pytest.mark.rule("TICI-12")
@BOTH
def test_what_v17_lacks_is_added_and_nothing_else(name: str) -> None:
    tc = cluster({"timezone": "Asia/Shanghai"})
    made = desired.stateful_set(tc, name, "cm")
    (own,) = made["spec"]["template"]["spec"]["containers"]
    (old,) = desired.as_built_by_v17(tc, name, made)["spec"]["template"]["spec"]["containers"]
    assert {"name": "TZ", "value": "Asia/Shanghai"} in own["env"]
    assert "tcpSocket" in own["readinessProbe"]
    assert ["POD_NAME"] == [each["name"] for each in old["env"]]
    assert own.keys() - old.keys() == {"readinessProbe"}


@BOTH
def test_keys_of_a_secret_are_in_no_config_map_and_reach_the_server_through_memory(name: str) -> None:
    tc = by_secret()
    found = config(tc, name)
    assert not {"access-key", "secret-key"} & found["s3"].keys()
    assert desired.content(tc, name).data[CONFIG_FILE].rpartition("\n\n")[2].startswith("[s3]")
    made = desired.stateful_set(tc, name, "cm")["spec"]["template"]["spec"]
    keys = {each["name"]: each["valueFrom"] for each in made["containers"][0]["env"] if "valueFrom" in each}
    assert {"secretKeyRef": {"name": "keys", "key": "secret_key"}} == keys["S3_SECRET_KEY"]
    assert {"name": "config-with-keys", "emptyDir": {"medium": "Memory"}} in made["volumes"]
    assert "--config=/var/lib/tici-config/tici.toml" in made["containers"][0]["args"][0]


@pytest.mark.rule("TICI-20", "TICI-21")
def test_the_reader_in_tiflash() -> None:
    tc = cluster(reader={"port": 8888})
    found = server_tables(tc)
    own = "basic-tiflash-POD_NUM.basic-tiflash-peer.ns.svc"
    assert {"addr": "0.0.0.0:8888", "advertise-addr": f"{own}:8888"} == found["tici"]["reader-node"]
    assert ("fts", "/data0/tici/searchlib") == (found["tici"]["s3"]["bucket"], found["tici"]["storage"]["data-dir"])
    assert f"{own}:3930" == found["flash"]["service_addr"]
    assert f"{own}:20170" == proxy_tables(tc)["server"]["advertise-addr"]
    without = cluster()
    without.spec.tici = None
    assert "tici" not in server_tables(without)


@pytest.mark.rule("TICI-20")
def test_tiflash_keeps_the_reserve_of_its_disk_which_v17_gives_away() -> None:
    assert "storage" not in proxy_tables(cluster())
    assert 'reserve-space = "1KB"' in configured_by_v16(cluster()).data["proxy_templ.toml"]


def test_tiflashs_init_container_appends_the_keys_of_a_secret() -> None:
    tc = by_secret()
    text = content(tc).data["config_templ.toml"]
    assert text.rpartition("\n\n")[2].startswith("[tici.s3]")
    assert "fts" == tomllib.loads(text)["tici"]["s3"]["bucket"]
    (init,) = tiflash(tc, "cm")["spec"]["template"]["spec"]["initContainers"]
    assert init["command"][2].rstrip().endswith('>>"$FILE"')
    assert "S3_ACCESS_KEY" in [each["name"] for each in init["env"]]


@pytest.mark.rule("TICI-30", "TICI-31")
def test_the_sink_escapes_keys_and_names_region_and_path_style() -> None:
    url = urlsplit(sink(cluster(), Keys("minio", "a+b&c/d")).uri)
    assert ("s3", "fts", "/tici_default_prefix/cdc") == (url.scheme, url.netloc, url.path)
    expected = {
        "endpoint": "http://minio:9000",
        "access-key": "minio",
        "secret-access-key": "a+b&c/d",
        "region": "us-east-1",
        "force-path-style": "true",
        "provider": "minio",
        "protocol": "canal-json",
        "enable-tidb-extension": "true",
        "output-row-key": "true",
        "use-table-id-as-path": "true",
    }
    assert expected == {key: value for key, (value,) in parse_qs(url.query).items()}


@pytest.mark.rule("TICI-30", "TICI-31")
@pytest.mark.parametrize(
    ("endpoint", "beginning", "has"),
    [
        ("https://STORAGE.googleapis.com", "gcs://fts/a%20b/cdc?protocol=canal-json", "use-table-id-as-path"),
        ("https://s3.eu-west-1.amazonaws.com", "s3://fts/a%20b/cdc?endpoint=https://s3.eu-west-1", "region=us-east-1"),
        (
            "https://s3.cn-north-1.amazonaws.com.cn",
            "s3://fts/a%20b/cdc?endpoint=https://s3.cn",
            "force-path-style=true",
        ),
    ],
)
def test_the_sink_of_a_cloud(endpoint: str, beginning: str, has: str) -> None:
    uri = sink(cluster(s3={"endpoint": endpoint, "bucket": "fts", "prefix": "a b/"}), Keys()).uri
    assert uri.startswith(beginning)
    assert has in uri
    assert "provider" not in uri
    assert "access-key" not in uri


def test_what_is_shown_of_a_sink_has_no_keys() -> None:
    tc = cluster()
    one, other = sink(tc, Keys("minio", "a+b&c/d")), sink(tc, Keys("minio", "new"))
    assert one.shown == other.shown
    assert one.version != other.version
    assert "a%2Bb" in one.uri
    assert "a%2Bb" not in one.shown
    assert "kafka://b:9092/t?sasl-password=***" == without_keys("kafka://u:p@b:9092/t?sasl-password=x")


def test_v17s_sink_leads_to_the_same_place() -> None:
    old = "s3://fts/tici_default_prefix/cdc?endpoint=http://minio:9000&access-key=xxxxx&provider=minio"
    assert leads_to_the_same(old, sink(cluster(), Keys("minio", "secret")).uri)
    assert not leads_to_the_same(old.replace("fts", "other"), sink(cluster(), Keys("minio", "secret")).uri)


REFUSED: dict[str, tuple[Json, str]] = {
    "no bucket": ({"tici": {"s3": None}}, "spec.tici.s3"),
    "an endpoint without a scheme": ({"tici": {"s3": {"endpoint": "minio:9000"}}}, "spec.tici.s3.endpoint"),
    "keys twice": ({"tici": {"s3": {"secretName": "keys"}}}, "spec.tici.s3.secretName"),
    "TLS": ({"tlsCluster": {"enabled": True}}, "spec.tici"),
    "across Kubernetes": ({"acrossK8s": True}, "spec.tici"),
    "another PD": ({"pdAddresses": ["http://pd.example.com:2379"]}, "spec.tici"),
    "another cluster": ({"cluster": {"name": "other"}}, "spec.tici"),
    "no TiDB": ({"tidb": None}, "spec.tidb"),
    "no TiFlash": ({"tiflash": None}, "spec.tiflash"),
    "no TiCDC": ({"ticdc": None}, "spec.ticdc"),
    "no meta server": ({"tici": {"meta": None}}, "spec.tici.meta"),
    "no worker": ({"tici": {"worker": None}}, "spec.tici.worker"),
    "a password": ({"tidb": {"initializer": {"createPassword": True}}}, "spec.tici.meta.config.tidb-server.dsns"),
    "a name of TiCDC": ({"tici": {"changefeed": {"changefeedID": "a_b"}}}, "spec.tici.changefeed.changefeedID"),
    "no URI": ({"tici": {"changefeed": {"sinkURI": "bucket"}}}, "spec.tici.changefeed.sinkURI"),
    "a mounted configuration": (
        {"tiflash": {"annotations": {"tiflash.tidb.pingcap.com/mount-cm-in-tiflash-container": "true"}}},
        'spec.tiflash.annotations["tiflash.tidb.pingcap.com/mount-cm-in-tiflash-container"]',
    ),
}


def merged(tree: Json, patch: Json) -> Json:
    found = {key: value for key, value in tree.items() if patch.get(key, value) is not None}
    for key, value in patch.items():
        if value is not None:
            found[key] = merged(tree.get(key) or {}, value) if isinstance(value, dict) else value
    return found


@pytest.mark.rule("TICI-2", "TICI-3", "TICI-4", "TICI-5", "TICI-13", "TICI-14", "TICI-22")
@pytest.mark.parametrize("what", REFUSED)
def test_what_cannot_work_is_refused_by_field(what: str) -> None:
    patch, field = REFUSED[what]
    body = with_tici()
    body["spec"] = merged(body["spec"], patch)
    problems = validate(with_defaults(convert(body, TidbCluster)))
    assert [field] == [each.field for each in problems]


def test_without_a_changefeed_no_ticdc_is_needed() -> None:
    tc = cluster(changefeed={"enable": False})
    tc.spec.ticdc = None
    assert [] == validate(tc)


def test_with_a_secret_the_section_of_the_bucket_has_no_keys_of_the_user() -> None:
    tc = cluster(
        s3={"endpoint": "http://minio:9000", "bucket": "fts", "secretName": "keys"},
        worker={"replicas": 1, "config": {"s3": {"access-key": "a", "more": {"b": 1}}}},
    )
    expected = ["spec.tici.worker.config.s3.access-key", "spec.tici.worker.config.s3.more"]
    assert expected == [each.field for each in validate(tc)]
