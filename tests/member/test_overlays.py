"""The objects of each component with an overlay (ADR 18), or with hooks (ADR 19)."""

import json

import pytest
from msgspec import structs

from apis.accessor import workloads
from apis.cluster import Cluster
from apis.decoding import decode
from apis.defaulting import with_defaults
from apis.dmcluster import DMCluster
from apis.graceful_stop import GRACEFUL_STOP
from apis.overlays import overlay_annotation
from apis.tidbcluster import TidbCluster
from apis.validation import validate
from kube.objects import Json
from kube.resources import DM_CLUSTERS
from member.components import workload
from simulate.engine.other_kinds import spec_of_kind
from simulate.engine.worlds import CLUSTERS


def cluster(kind: type[Cluster], **overlays: Json) -> Cluster:
    """A cluster with every component of its kind."""
    spec = CLUSTERS["complete"]()["spec"] if kind is TidbCluster else spec_of_kind(DM_CLUSTERS)
    texts = {overlay_annotation(name): json.dumps(overlay) for name, overlay in overlays.items()}
    metadata = {"name": "basic", "namespace": "ns", "annotations": texts}
    return with_defaults(decode({"metadata": metadata, "spec": spec}, kind))


def built(tc: Cluster, component: str) -> Json:
    return workload(component).stateful_set(tc, "")


@pytest.mark.parametrize("kind", [TidbCluster, DMCluster])
def test_an_overlay_changes_the_pods_and_claims_of_its_component_alone(kind: type[Cluster]) -> None:
    plain = cluster(kind)
    names = [own.name for own in workloads(plain)]
    for name in names:
        before = built(plain, name)["spec"]
        claims = before.get("volumeClaimTemplates", [])
        added = [{"metadata": {"name": claim["metadata"]["name"], "labels": {"team": "a"}}} for claim in claims]
        overlay = {"template": {"spec": {"enableServiceLinks": False}}, "volumeClaimTemplates": added}
        overlaid = cluster(kind, **{name: overlay})
        assert [] == validate(overlaid)
        after = built(overlaid, name)["spec"]
        assert before["template"]["spec"] | {"enableServiceLinks": False} == after["template"]["spec"]
        expected = [claim | {"metadata": claim["metadata"] | {"labels": {"team": "a"}}} for claim in claims]
        assert expected == after.get("volumeClaimTemplates", [])
        for other in set(names) - {name}:
            assert built(plain, other) == built(overlaid, other)


def test_a_graceful_stop_gives_three_components_hooks_and_changes_nothing_else() -> None:
    plain = cluster(TidbCluster)
    graceful = structs.replace(plain, metadata=structs.replace(plain.metadata, annotations={GRACEFUL_STOP: "true"}))
    changed: dict[str, list[str]] = {}
    for name in (own.name for own in workloads(plain)):
        after = built(graceful, name)
        (main,) = (each for each in after["spec"]["template"]["spec"]["containers"] if each["name"] == name)
        changed |= {name: list(main.pop("lifecycle"))} if built(plain, name) != after and "lifecycle" in main else {}
        assert built(plain, name) == after
        content = workload(name).content
        assert content(plain).says_the_same(content(graceful))
    assert {"pd": ["preStop"], "tikv": ["postStart", "preStop"], "ticdc": ["preStop"]} == changed
