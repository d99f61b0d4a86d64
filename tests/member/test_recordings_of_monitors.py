"""The objects of a TidbMonitor are those that a live v1.6 made, by field (other-resources.md 3.2 to 3.7)."""

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from apis.decoding import decode
from apis.defaulting import with_defaults
from apis.identity import instance_name, tls_enabled
from apis.monitors import TidbMonitor, with_monitor_defaults
from apis.tidbcluster import TidbCluster
from apis.validation.monitors import validate_monitor
from kube.objects import Json
from member.monitor.naming import Inputs, Target, asset, first_dm_of, first_of
from member.monitor.objects import everything
from member.naming import cluster_client_secret
from tests.member.recordings import GOLDEN, differences

SETS = ["dev-monitor", "dev-tls", "dev-ipv6", "dev-dm"]
ADDED = re.compile(
    r".*Probe/httpGet/scheme|.*/containers/0/imagePullPolicy|/spec/template/spec/dnsPolicy|/spec/clusterIPs/1"
)
"""Additions of the API server."""
OURS = re.compile(
    r"/spec/template/spec/(initContainers|containers)/\d+/command/2"  # scripts, which recordings leave out
    r"|/data/(username|password)"  # recorded as <bytes>
    r"|.*/env/GF_LOG_LEVEL/.*|.*/containers/\d+/env/#order"  # grafana.logLevel, which v1.6 ignores
    r"|.*/annotations/tidb.pingcap.com/prometheus-config-digest"  # without a reloader
)
"""Intended differences (docs/compat.md)."""


def monitor_inputs(recorded: list[Json]) -> tuple[TidbMonitor, Inputs]:
    """The TidbMonitor of a recording, and its targets at that time."""
    (raw,) = [each for each in recorded if each["kind"] == "TidbMonitor"]
    monitor = with_monitor_defaults(decode(raw, TidbMonitor))
    clusters = {each["metadata"]["name"]: each for each in recorded if each["kind"] == "TidbCluster"}
    found = [with_defaults(decode(clusters[each.name], TidbCluster)) for each in monitor.spec.clusters]
    targets = [
        Target(tc.metadata.namespace, tc.metadata.name, instance_name(tc), secret)
        for tc in found
        for secret in [cluster_client_secret(tc) if tls_enabled(tc) else ""]
    ]
    keys = ("ca.crt", "tls.crt", "tls.key")
    assets = {asset(each.namespace, each.secret, key) for each in targets if each.secret for key in keys}
    dm = [
        Target(each.namespace, each.name, each.name) for each in (monitor.spec.dm.clusters if monitor.spec.dm else [])
    ]
    inputs = Inputs(
        clusters=targets,
        dm_clusters=dm,
        first=next((first_of(tc) for tc in found if tc.spec.pd is not None), None),
        first_dm=next((first_dm_of(each) for each in dm), None),
        assets=dict.fromkeys(assets, "<bytes>"),
    )
    return monitor, inputs


class Recorded:
    """A set with one TidbMonitor."""

    def __init__(self, name: str) -> None:
        path = GOLDEN / f"{name}.json"
        if not path.exists():
            pytest.skip("the recordings of v1.6 are not beside the repository")
        items = [each for each in json.loads(path.read_text())["items"] if "metadata" in each]
        self.items: dict[tuple[str, str], Json] = {(each["kind"], each["metadata"]["name"]): each for each in items}
        self.monitor, self.inputs = monitor_inputs(items)

    def made(self) -> dict[tuple[str, str], Json]:
        """Our objects for the same monitor."""
        return {
            (resource.kind, body["metadata"]["name"]): {"apiVersion": resource.api_version, "kind": resource.kind}
            | body
            for resource, body in everything(self.monitor, self.inputs)
        }

    def owned(self) -> Iterator[tuple[str, str]]:
        """The objects that v1.6 created for it."""
        for key, item in self.items.items():
            owners = item["metadata"].get("ownerReferences") or ()
            if any(owner["kind"] == "TidbMonitor" for owner in owners):
                yield key


def as_trees(item: Json) -> Json:
    """Texts that are YAML as trees, scrape jobs by name: in which order they stand means nothing."""
    data: dict[str, Any] = {
        key: yaml.safe_load(text.replace("\t", " ")) if key.endswith((".yml", ".yaml")) else text
        for key, text in (item.get("data") or {}).items()
    }
    for tree in data.values():
        if isinstance(tree, dict) and "scrape_configs" in tree:
            tree["scrape_configs"] = {each["job_name"]: each for each in tree["scrape_configs"]}
    return item | ({"data": data} if data else {})


@pytest.mark.parametrize("name", SETS)
def test_objects_equal_v1_6(name: str) -> None:
    recorded = Recorded(name)
    assert [] == validate_monitor(recorded.monitor)
    made = recorded.made()
    assert set(recorded.owned()) <= made.keys()
    unexplained = {
        key: left
        for key in recorded.owned()
        if (
            left := [
                line
                for line in differences(as_trees(recorded.items[key]), as_trees(made[key]))
                if not ADDED.fullmatch(path := line.partition(": ")[0]) and not OURS.fullmatch(path)
            ]
        )
    }
    assert {} == unexplained


@pytest.mark.parametrize("name", SETS)
def test_only_the_headless_service_is_additional(name: str) -> None:
    recorded = Recorded(name)
    shards = recorded.monitor.spec.shards or 1
    base = f"{recorded.monitor.metadata.name}-monitor"
    names = {("Service", f"{base}-shard-{n}" if n else base) for n in range(shards)}
    assert names == recorded.made().keys() - set(recorded.owned())


def test_v1_6_keeps_the_order_of_containers_and_jobs_are_all_there() -> None:
    recorded = Recorded("dev-monitor")
    there, ours = (
        each["StatefulSet", "watch-monitor"]["spec"]["template"]["spec"] for each in (recorded.items, recorded.made())
    )
    for part in ("containers", "initContainers"):
        assert [each["name"] for each in there[part]] == [each["name"] for each in ours[part]]
    text = recorded.made()["ConfigMap", "watch-monitor"]["data"]["prometheus.yml"]
    assert 2 * 12 == len(yaml.safe_load(text)["scrape_configs"])
