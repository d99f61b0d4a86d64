"""A monitor that v1.6 ran for clusters of another namespace runs on, whether or not these consent.

As recorded, but for its namespace, and for a certificate that v1.6 would have copied with every key of the Secret.
"""

import base64
import json
import re
from collections.abc import Iterator

import pytest

import kube.resources
from kube.objects import Json
from kube.resources import (
    CONFIG_MAPS,
    NAMESPACES,
    SECRETS,
    STATEFUL_SETS,
    TIDB_CLUSTERS,
    TIDB_MONITORS,
    Resource,
)
from tests.apis.field_trees import shared_file
from tests.controllers.simple_world import NAMESPACE, SimpleWorld

pytestmark = pytest.mark.slow

_KINDS = {
    each.kind: each
    for each in vars(kube.resources).values()
    if isinstance(each, Resource) and each != kube.resources.ADVANCED_STATEFUL_SETS
}
CLUSTERS = "ex-dev-monitor"
SECRET = f"secret_{CLUSTERS}_mona-cluster-client-secret"
COPIED = {f"{SECRET}_{key}": base64.b64encode(key.encode()).decode() for key in ("ca.crt", "tls.crt", "tls.key")}
TOO_MUCH = {f"{SECRET}_password": "c2VjcmV0"}
CONFIG, ASSETS = "watch-monitor", "tidbmonitor-watch-tls-assets"


def recorded() -> list[Json]:
    items: list[Json] = json.loads(shared_file("golden", "dev-monitor.json").read_text(encoding="utf-8"))["items"]
    return items


@pytest.fixture
def world() -> Iterator[SimpleWorld]:
    """Everything that v1.6 left; the operator has not started yet."""
    made = SimpleWorld(TIDB_MONITORS)
    made.admin.create(NAMESPACES, {"metadata": {"name": CLUSTERS}})
    items = recorded()
    for item in (each for each in items if each["kind"] == "TidbCluster"):
        spec = item["spec"] | {"paused": True}
        meta = {"name": item["metadata"]["name"]}
        made.admin.create(TIDB_CLUSTERS, _headed(item) | {"metadata": meta, "spec": spec}, CLUSTERS)
    monitor = next(each for each in items if each["kind"] == "TidbMonitor")
    body = _headed(monitor) | {"metadata": {"name": "watch"}, "spec": monitor["spec"]}
    uid = made.admin.create(TIDB_MONITORS, body, NAMESPACE).metadata.uid
    for item in (each for each in items if _owner(each) == "watch"):
        made.admin.create(_KINDS[item["kind"]], _moved(item, uid), NAMESPACE)
    try:
        yield made
    finally:
        made.stop()


def _headed(item: Json) -> Json:
    return {"apiVersion": item["apiVersion"], "kind": item["kind"]}


def _owner(item: Json) -> str:
    owners = item["metadata"].get("ownerReferences") or ()
    return next((each["name"] for each in owners if each["kind"] == "TidbMonitor"), "")


def _moved(item: Json, uid: str) -> Json:
    meta = {key: item["metadata"][key] for key in ("name", "labels", "annotations") if key in item["metadata"]}
    owner = item["metadata"]["ownerReferences"][0] | {"uid": uid}
    body = {key: value for key, value in item.items() if key not in ("metadata", "status")}
    if item["kind"] == "Secret":
        body["data"] = COPIED | TOO_MUCH if meta["name"] == ASSETS else dict.fromkeys(item.get("data") or (), "eA==")
    return body | {"metadata": meta | {"ownerReferences": [owner]}}


def jobs(world: SimpleWorld) -> set[str]:
    """The clusters that have scrape jobs."""
    text = world.get(CONFIG_MAPS, CONFIG)["data"]["prometheus.yml"]
    return set(re.findall(r"^- job_name: (.*)-tikv$", text, re.MULTILINE))


def test_the_monitor_keeps_its_clusters_and_says_what_their_owners_can_do(world: SimpleWorld) -> None:
    uid = world.get(STATEFUL_SETS, CONFIG)["metadata"]["uid"]
    world.run(60.0)
    assert {f"{CLUSTERS}-mona", f"{CLUSTERS}-monb"} == jobs(world)
    assert COPIED == world.get(SECRETS, ASSETS)["data"]
    assert uid == world.get(STATEFUL_SETS, CONFIG)["metadata"]["uid"]
    status, reason, message = world.condition(name="watch")
    assert ("True", "ReferenceNotAllowed") == (status, reason)
    for cluster in ("mona", "monb"):
        command = f"kubectl -n {CLUSTERS} annotate tidbcluster {cluster}"
        assert f"{command} tidb.pingcap.com/allow-references-from={NAMESPACE}" in message


def test_the_monitor_is_taken_over_completely_after_their_consent(world: SimpleWorld) -> None:
    world.run(60.0)
    for cluster in ("mona", "monb"):
        annotations = {"tidb.pingcap.com/allow-references-from": NAMESPACE}
        world.admin.patch(TIDB_CLUSTERS, cluster, CLUSTERS, {"metadata": {"annotations": annotations}})
    world.run(60.0)
    assert {f"{CLUSTERS}-mona", f"{CLUSTERS}-monb"} == jobs(world)
    assert {} == (world.get(SECRETS, ASSETS).get("data") or {})  # neither speaks TLS now
    assert "ReferenceNotAllowed" not in world.condition(name="watch")[1]
