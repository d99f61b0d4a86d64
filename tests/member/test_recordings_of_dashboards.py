"""Objects of TidbDashboard and TidbNGMonitoring are those that a live v1.6 made (other-resources.md 4, 5)."""

import re

import pytest

from apis.dashboards import TidbDashboard
from apis.decoding import decode
from apis.defaulting import with_defaults
from apis.ng_monitorings import TidbNGMonitoring
from apis.tidbcluster import TidbCluster
from kube.objects import Json
from member import dashboard as dash
from member.ng_monitoring import desired as ngm
from tests.member.recordings import differences
from tests.member.test_recordings_of_initializers import recorded

FILLED_IN = re.compile(
    r"/metadata/(namespace|ownerReferences/.*)|/(apiVersion|kind)"
    r"|.*/imagePullPolicy|/spec/clusterIPs/1|/spec/template/spec/containers/\d+/command/2"
)
"""Additions of `Reconcile.apply` and the API server; the text of the start script."""
OURS = re.compile(r"/spec/volumeClaimTemplates/\d+/spec/storageClassName: recorded 'standard'.*")


def unexplained(there: Json, made: Json) -> list[str]:
    lines = differences(there, made)
    return [each for each in lines if not FILLED_IN.fullmatch(each.partition(": ")[0]) and not OURS.fullmatch(each)]


def cluster_of(items: dict[str, Json], name: str) -> TidbCluster:
    return with_defaults(decode(items[f"TidbCluster/{name}"], TidbCluster))


@pytest.mark.parametrize("recording", ["dev-monitor", "dev-tls", "dev-ipv6"])
@pytest.mark.rule("other-resources-4")
def test_a_dashboard_equals_v1_6(recording: str) -> None:
    items = recorded(recording)
    (dashboard,) = [decode(each, TidbDashboard) for each in items.values() if each["kind"] == "TidbDashboard"]
    tc = cluster_of(items, dashboard.spec.clusters[0].name)
    for kind, made in (("Service", dash.service(dashboard)), ("StatefulSet", dash.stateful_set(dashboard, tc))):
        assert [] == unexplained(items[f"{kind}/{made['metadata']['name']}"], made)
    copies = [copy for copy, _ in dash.certificates(dashboard, tc).values()]
    name = dashboard.metadata.name
    assert copies == [each.partition("/")[2] for each in items if each.startswith(f"Secret/{name}-tc-")]


@pytest.mark.parametrize("recording", ["dev-monitor", "dev-tls"])
@pytest.mark.rule("other-resources-5")
def test_ng_monitoring_equals_v1_6(recording: str) -> None:
    items = recorded(recording)
    (found,) = [decode(each, TidbNGMonitoring) for each in items.values() if each["kind"] == "TidbNGMonitoring"]
    tc = cluster_of(items, found.spec.clusters[0].name)
    choice = ngm.choose(found, tc, "", None)
    (there,) = [each for key, each in items.items() if key.startswith(f"ConfigMap/{ngm.object_name(found)}-")]
    # the digest as well: another name would restart the pod at a takeover
    assert (there["metadata"]["name"], there["data"]) == (choice.name, choice.data)
    made = {"Service": ngm.service(found), "StatefulSet": ngm.stateful_set(found, tc, choice.name)}
    for kind, ours in made.items():
        assert [] == unexplained(items[f"{kind}/{ngm.object_name(found)}"], ours)
    source = dict.fromkeys(ngm.CERTIFICATE_KEYS, "<bytes>") if ngm.source_secret(tc) else {}
    secret = ngm.certificates(found, tc, source)
    assert items[f"Secret/{secret['metadata']['name']}"]["data"] == secret["data"]
