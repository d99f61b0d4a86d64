"""TiCDC's objects, and the versions that can hand over (objects.md 4.7, 7.7; lifecycle.md 7.7)."""

from typing import Any

import pytest

from apis import toml
from apis.tidbcluster import TidbCluster
from kube.objects import Json
from member.objects.config_map import CONFIG_FILE
from member.ticdc import desired as ticdc
from member.ticdc.handover import can_hand_over
from tests.member.clusters import TLS, cluster, container_of, names, pod_of, values


def replicating(*, tls: bool = False, spec: Json | None = None, **fields: Any) -> TidbCluster:
    return cluster(tlsCluster=TLS if tls else None, ticdc={"replicas": 2} | fields, **(spec or {}))


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        (None, None),
        ("", None),
        ("tz = 'UTC'\ngc-ttl = 1\nlog-level = 'warn'\nlog-file = 'f'\n", None),
        ({"timezone": "UTC", "gcTTL": 1}, None),
        ({"gcTTL": 1, "filter": {}, "sink": {"x": {}}}, None),
        ("gc-ttl = 1\ndata-dir = '/d'\n", {"gc-ttl": 1, "data-dir": "/d"}),
        ({"gcTTL": 1, "sorter": {"num-workers": 2}}, {"gc-ttl": 1, "sorter": {"num-workers": 2}}),
    ],
)
@pytest.mark.rule("1.1")
def test_the_file_contains_only_settings_without_a_flag(config: object, expected: Json | None) -> None:
    tc = replicating(config=config)
    data = ticdc.content(tc).data
    assert ([] if expected is None else [expected]) == [toml.loads(text) for text in data.values()]
    assert data.keys() <= {CONFIG_FILE}
    made = ticdc.stateful_set(tc, "cm")
    assert (expected is not None) is ("config" in names(pod_of(made).get("volumes", [])))


@pytest.mark.rule("4.7")
def test_volumes_and_mounts_in_their_different_orders() -> None:
    fields: Json = {
        "config": "data-dir = '/d'\n",
        "storageVolumes": [{"name": "sort", "storageSize": "1Gi", "mountPath": "/sort"}],
        "additionalVolumes": [{"name": "x", "emptyDir": {}}],
        "additionalVolumeMounts": [{"name": "x", "mountPath": "/x"}],
        "tlsClientSecretNames": ["sink"],
    }
    made = ticdc.stateful_set(replicating(tls=True, spec={"startScriptVersion": "v2"}, **fields), "cm")
    tls = ["ticdc-tls", "cluster-client-tls"]
    mounts = container_of(made, "ticdc")["volumeMounts"]
    assert ["annotations", *tls, "ticdc-sort", "x", "config", "sink"] == names(mounts)
    assert ["annotations", *tls, "sink", "config", "x"] == names(pod_of(made)["volumes"])
    assert "/var/lib/sink-tls/sink" == mounts[-1]["mountPath"]


@pytest.mark.parametrize(
    ("tc", "expected"),
    [
        (replicating(), "UTC"),
        (replicating(spec={"timezone": "Europe/Berlin"}), "Europe/Berlin"),
        (replicating(config="tz = 'Asia/Tokyo'\n", spec={"timezone": "Europe/Berlin"}), "Asia/Tokyo"),
        (replicating(config="tz = 7\n"), "UTC"),
    ],
)
@pytest.mark.rule("4.7")
def test_the_time_zone(tc: TidbCluster, expected: str) -> None:
    assert expected == values(container_of(ticdc.stateful_set(tc, "cm"), "ticdc"))["TZ"]


@pytest.mark.rule("2")
def test_its_service_does_not_say_for_whom() -> None:
    (service,) = ticdc.services(replicating())
    assert ("demo-ticdc-peer", "None") == (service["metadata"]["name"], service["spec"]["clusterIP"])
    assert "app.kubernetes.io/used-by" not in service["metadata"]["labels"]


@pytest.mark.parametrize(
    ("running", "wanted", "expected"),
    [
        ("v8.5.2", "v8.5.2", True),
        ("v6.2.0", "v6.2.0", True),
        ("v6.2.0", "v6.3.0", False),
        ("v6.3.0", "v6.4.0", True),
        ("v6.5.0", "v7.5.0", True),
        ("v6.5.0", "v8.0.0", False),
        ("v8.5.2", "v7.1.0", True),
        ("nightly", "v8.5.2", True),
        ("v8.5.2", "latest", True),
    ],
)
@pytest.mark.rule("7.7")
def test_only_captures_that_understand_each_other_hand_over(running: str, wanted: str, expected: bool) -> None:
    assert expected is can_hand_over(running, wanted)
