"""The requests of a cluster of 3/3/2 until it is Ready, so that no later feature raises their number unnoticed."""

from collections import Counter

import pytest

from tests.operator_world import OPERATOR, OperatorWorld, sample

_MOST = {
    # each StatefulSet is created for an existing owner, and replaces no foreign object
    "GET tidbclusters": 3,
    "GET statefulsets": 3,
    "GET pods": 3,
    "GET persistentvolumeclaims": 2,
    # which resources the server has
    "GET ": 2,
    "POST statefulsets": 3,
    "POST services": 6,
    "POST configmaps": 3,
    "POST deployments": 1,
    "POST roles": 1,
    "POST rolebindings": 1,
    "POST serviceaccounts": 1,
    # one each, with all ids of the data plane
    "PATCH pods": 9,
    "PATCH persistentvolumeclaims": 6,
    "PATCH persistentvolumes": 6,
    "PATCH tidbclusters": 6,
    # the created and patched objects, by moment
    "POST events": 6,
}


@pytest.mark.slow
@pytest.mark.rule("3.8")
def test_bring_up_sends_only_the_expected_requests() -> None:
    world = OperatorWorld()
    tree = sample("basic")
    for component, count in (("pd", 3), ("tikv", 3), ("tidb", 2)):
        tree["spec"][component]["replicas"] = count
    world.apply(tree)
    world.run_until_ready()
    world.run(60.0)
    calls = [entry.call for entry in world.world.server.audit.recent() if entry.call.user == OPERATOR]
    world.stop()

    asked = Counter(f"{call.request.method} {call.resource.partition('.')[0]}" for call in calls)

    assert {} == dict(asked - Counter(_MOST))
