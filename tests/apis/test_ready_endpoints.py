"""The annotation with which pods count as ready when their servers say so."""

from typing import Any

import pytest

from apis.cluster import Cluster
from apis.decoding import decode
from apis.defaulting import with_defaults
from apis.dmcluster import DMCluster
from apis.ready_endpoints import READY_ENDPOINTS, without_effect
from apis.validation import validate
from kube.objects import Json
from kube.resources import DM_CLUSTERS
from member.components import workload
from simulate.engine.other_kinds import spec_of_kind
from tests.apis.clusters import cluster, minimal

ON = {READY_ENDPOINTS: "true"}
PLACE = f'metadata.annotations["{READY_ENDPOINTS}"]'
COMMAND = {"exec": {"command": ["true"]}}


def made(spec: Json | None = None, version: str = "v9.0.0", annotations: dict[str, str] | None = None) -> Any:
    tree = minimal() | {"version": version}
    for name, fields in (spec or {}).items():
        tree[name] = tree.get(name, {}) | fields
    return with_defaults(cluster(tree, annotations=ON if annotations is None else annotations))


def probe(tc: Any, component: str) -> Json:
    containers = workload(component).stateful_set(tc, "")["spec"]["template"]["spec"]["containers"]
    (found,) = (each.get("readinessProbe", {}) for each in containers if each["name"] == component)
    assert isinstance(found, dict)
    return {key: value for key, value in found.items() if key in ("httpGet", "exec", "tcpSocket")}


def reported(tc: Cluster) -> list[str]:
    return [str(each).removeprefix(f'{PLACE}: "true": has no effect') for each in without_effect(tc)]


@pytest.mark.parametrize("value", ["", "True", "yes"])
def test_another_value_than_true_or_false_is_refused(value: str) -> None:
    (problem,) = validate(made(annotations={READY_ENDPOINTS: value}))
    assert str(problem).startswith(f'{PLACE}: "{value}": must be "true" or "false"')


def test_tikv_and_tidb_ask_their_servers_and_all_else_stays() -> None:
    on, off = made(), made(annotations={})
    assert {"httpGet": {"path": "/ready", "port": 20180}} == probe(on, "tikv")
    assert ["curl", "http://127.0.0.1:10080/status", "--fail", "--location"] == probe(on, "tidb")["exec"]["command"]
    assert workload("pd").stateful_set(off, "") == workload("pd").stateful_set(on, "")
    assert ({}, {"tcpSocket": {"port": 4000}}, []) == (probe(off, "tikv"), probe(off, "tidb"), reported(on))


def test_with_tls_the_probe_presents_a_certificate_of_the_pod() -> None:
    command = probe(made({"tlsCluster": {"enabled": True}}), "tikv")["exec"]["command"]
    assert ["curl", "https://127.0.0.1:20180/ready", "--fail", "--cacert", "/var/lib/tikv-tls/ca.crt"] == command[:5]


@pytest.mark.parametrize(("version", "why"), [("v8.5.2", "v8.5.2: it needs v9.0.0 or later"), ("nightly", "nightly: ")])
def test_a_version_that_may_lack_the_endpoint_keeps_its_probe_and_is_reported(version: str, why: str) -> None:
    tc = made(version=version)
    assert {} == probe(tc, "tikv")
    assert f" on tikv, which runs {why}" in reported(tc)[0]


@pytest.mark.parametrize("component", ["tikv", "tidb"])
def test_a_probe_of_the_user_comes_first_and_is_reported(component: str) -> None:
    tcp = made({component: {"readinessProbe": {"type": "tcp"}}})
    container = {"name": component, "readinessProbe": COMMAND}
    merged = made({component: {"additionalContainers": [container]}})
    assert ["tcpSocket"] == list(probe(tcp, component))
    assert COMMAND["exec"] == probe(merged, component)["exec"]
    assert "httpGet" not in probe(merged, component)
    own = f"spec.{component}.readinessProbe"
    assert [f" on {component}, because {own} is the user's; remove that probe"] == reported(tcp)
    assert f"spec.{component}.additionalContainers[0].readinessProbe is the user's" in reported(merged)[0]


def test_a_cluster_without_such_a_component_reports_the_annotation() -> None:
    metadata = {"name": "basic", "namespace": "ns", "annotations": ON}
    tc = with_defaults(decode({"metadata": metadata, "spec": spec_of_kind(DM_CLUSTERS)}, DMCluster))
    assert [", because only tikv, tidb have such an endpoint; remove it"] == reported(tc)
