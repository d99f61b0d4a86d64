"""A default that the spec states explicitly changes no pod (lifecycle.md 7.1)."""

from collections.abc import Iterator
from typing import Any

import pytest

from apis.decoding import decode, encode
from apis.defaulting import with_defaults
from apis.dmcluster import DMCluster
from apis.tidbcluster import TidbCluster
from kube.objects import Json
from kube.resources import DM_CLUSTERS
from member.apply.last_applied import same_template
from member.components import workload, workload_names
from simulate.engine.other_kinds import spec_of_kind
from simulate.engine.trees import merged
from simulate.engine.worlds import CLUSTERS
from simulate.families.homes import home_of

_OF_PODS: Json = {
    "schedulerName": "default-scheduler",
    "terminationGracePeriodSeconds": 30,
    "dnsPolicy": "ClusterFirst",
    "hostNetwork": False,
}
"""The values that the API server sets on every pod, by the component's field for them."""

_CONTAINER: Json = {"name": "beside", "image": "beside:1", "ports": [{"name": "web", "containerPort": 80}]}
_SPELLED: Json = {"imagePullPolicy": "IfNotPresent", "terminationMessagePolicy": "File"}


def cluster(component: str) -> Any:
    home = home_of(component)
    if home.is_of_dm:
        return decode({"metadata": {"name": "a", "namespace": "b"}, "spec": spec_of_kind(DM_CLUSTERS)}, DMCluster)
    return decode(CLUSTERS[home.cluster](), TidbCluster)


def changed(component: str, tc: Any, **fields: Any) -> Any:
    tree, home = encode(tc), home_of(component)
    section = tree["spec"][home.part]
    if isinstance(section, list):
        tree["spec"][home.part] = [merged(each, fields) if each["name"] == component else each for each in section]
    else:
        tree["spec"][home.part] = merged(section, fields)
    return decode(tree, type(tc))


def template(component: str, tc: Any) -> Json:
    found: Json = workload(component).stateful_set(with_defaults(tc), "")["spec"]["template"]
    return found


def ours(component: str) -> Iterator[tuple[str, Any]]:
    """The fields of a component's section that are filled in where the user leaves them out."""
    before = cluster(component)
    home = home_of(component)
    if isinstance(encode(before)["spec"][home.part], list):
        return
    left, filled = (encode(each)["spec"][home.part] for each in (before, with_defaults(before)))
    yield from ((key, value) for key, value in filled.items() if key not in left)


_COMPONENTS = (*workload_names(), *workload_names("DMCluster"))


@pytest.mark.parametrize("component", _COMPONENTS)
@pytest.mark.rule("lifecycle-7.1")
def test_a_default_that_is_spelled_out_makes_no_other_pods(component: str) -> None:
    tc = cluster(component)
    found = {key: changed(component, tc, **{key: value}) for key, value in (*_OF_PODS.items(), *ours(component))}
    assert [] == [
        key for key, each in found.items() if not same_template(template(component, tc), template(component, each))
    ]


@pytest.mark.parametrize("component", _COMPONENTS)
@pytest.mark.rule("lifecycle-7.1")
def test_another_value_changes_pods(component: str) -> None:
    tc = cluster(component)
    others = {"schedulerName": "mine", "terminationGracePeriodSeconds": 31, "dnsPolicy": "Default"}
    found = {key: changed(component, tc, **{key: value}) for key, value in others.items()}
    assert [] == [
        key for key, each in found.items() if same_template(template(component, tc), template(component, each))
    ]


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        (_SPELLED, True),
        ({"imagePullPolicy": "Always"}, False),
        ({"restartPolicy": "Always"}, False),
        ({"ports": [{"name": "web", "containerPort": 80, "protocol": "TCP"}]}, True),
        ({"ports": [{"name": "web", "containerPort": 80, "hostPort": 80}]}, False),
        ({"livenessProbe": {"terminationGracePeriodSeconds": 30}}, False),
    ],
)
@pytest.mark.rule("lifecycle-7.1")
def test_so_it_is_in_containers(more: Json, *, expected: bool) -> None:
    one, other = ({"spec": {"containers": [each]}} for each in (_CONTAINER, _CONTAINER | more))
    assert expected is same_template(one, other)


@pytest.mark.rule("lifecycle-7.1")
def test_the_keys_of_users_have_no_defaults() -> None:
    one, other = ({"spec": {"containers": [], "nodeSelector": each}} for each in ({}, {"protocol": "TCP"}))
    assert not same_template(one, other)
