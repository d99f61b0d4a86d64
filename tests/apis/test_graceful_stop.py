"""The annotation with which pods stop gracefully by themselves (ADR 19)."""

import pytest

from apis.cluster import Cluster
from apis.decoding import decode
from apis.defaulting import with_defaults
from apis.dmcluster import DMCluster
from apis.graceful_stop import GRACEFUL_STOP, without_effect
from apis.tidbcluster import TidbCluster
from apis.validation import validate
from kube.objects import Json
from kube.resources import DM_CLUSTERS
from simulate.engine.other_kinds import spec_of_kind
from tests.apis.clusters import cluster, minimal

ON = {GRACEFUL_STOP: "true"}
PLACE = f'metadata.annotations["{GRACEFUL_STOP}"]'


def reported(tc: Cluster) -> str:
    return "; ".join(str(each) for each in without_effect(tc))


@pytest.mark.parametrize("value", ["", "True", "yes", " true", "1"])
def test_another_value_than_true_or_false_is_refused(value: str) -> None:
    (problem,) = validate(cluster(minimal(), annotations={GRACEFUL_STOP: value}))
    assert str(problem).startswith(f'{PLACE}: "{value}": must be "true" or "false"')


@pytest.mark.parametrize("value", ["true", "false"])
def test_true_and_false_are_valid_and_have_an_effect(value: str) -> None:
    tc = cluster(minimal(), annotations={GRACEFUL_STOP: value})
    assert ([], "") == ([str(each) for each in validate(tc)], reported(tc))


@pytest.mark.parametrize(
    ("kind", "spec"),
    [(DMCluster, spec_of_kind(DM_CLUSTERS)), (TidbCluster, {"tidb": {"replicas": 1}, "cluster": {"name": "main"}})],
)
def test_a_cluster_without_such_a_component_reports_the_annotation(kind: type[Cluster], spec: Json) -> None:
    metadata = {"name": "basic", "namespace": "ns", "annotations": ON}
    tc = with_defaults(decode({"metadata": metadata, "spec": spec}, kind))
    assert f'{PLACE}: "true": has no effect, because only pd, tikv, ticdc have these hooks' in reported(tc)


@pytest.mark.parametrize(("name", "hook", "why"), [("tikv", "postStart", "[0].lifecycle is"), ("other", "preStop", "")])
def test_only_a_hook_of_the_main_container_comes_before_ours(name: str, hook: str, why: str) -> None:
    spec = minimal()
    own = {"name": name, "image": "x", "lifecycle": {hook: {"exec": {"command": ["true"]}}}}
    spec["tikv"]["additionalContainers"] = [own]
    assert why in reported(cluster(spec, annotations=ON))
    assert bool(why) == bool(reported(cluster(spec, annotations=ON)))
