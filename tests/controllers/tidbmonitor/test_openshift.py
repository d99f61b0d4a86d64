"""On OpenShift the pods of monitors may have any user, as in v1.6."""

import pytest

from kube.objects import Json
from kube.resources import CUSTOM_RESOURCE_DEFINITIONS, ROLES
from tests.controllers.tidbmonitor.monitors import Monitors, monitor

SERVED: Json = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "securitycontextconstraints.security.openshift.io"},
    "spec": {
        "group": "security.openshift.io",
        "scope": "Cluster",
        "names": {
            "plural": "securitycontextconstraints",
            "singular": "securitycontextconstraints",
            "kind": "SecurityContextConstraints",
        },
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
            }
        ],
    },
}
_PODS: Json = {"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list", "watch"]}
_ANY_USER: Json = {
    "apiGroups": ["security.openshift.io"],
    "resources": ["securitycontextconstraints"],
    "resourceNames": ["anyuid"],
    "verbs": ["use"],
}


@pytest.mark.parametrize("on_openshift", [False, True])
@pytest.mark.rule("other-resources-3.2")
def test_the_role_grants_any_user_on_openshift_alone_and_costs_one_question(
    monitors: Monitors, on_openshift: bool
) -> None:
    world = monitors.world
    if on_openshift:
        world.admin.create(CUSTOM_RESOURCE_DEFINITIONS, SERVED)
    world.forget()
    monitors.create(monitor())
    world.run(700.0)
    expected = [_PODS, _ANY_USER] if on_openshift else [_PODS]
    assert expected == world.get(ROLES, "basic-monitor")["rules"]
    asked = [each for each in world.world.server.audit.recent() if "security.openshift.io" in each.call.request.url]
    assert 1 == len(asked)
