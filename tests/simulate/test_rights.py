"""The simulated operator may do what manifests/operator grants, and nothing else (scheduler-deployment.md 8)."""

import pytest

from kube.client import Client
from kube.errors import Forbidden, NotFound
from kube.resources import CONFIG_MAPS, NODES, TIDB_CLUSTERS, Resource
from ports.clock import FakeClock
from ports.randomness import SeededRandomness
from ports.transport import Request
from rehearsal.operator import USER
from rehearsal.rights import AuthorizedTransport, Right, granted, right_for
from sandbox.world import World


@pytest.fixture
def client() -> Client:
    return Client(AuthorizedTransport(World(FakeClock(), SeededRandomness(1)).transport(USER)))


def test_granted_requests_pass(client: Client) -> None:
    assert [] == client.list_page(CONFIG_MAPS, "default").items
    with pytest.raises(NotFound):
        client.get(NODES, "nowhere")


def test_requests_without_a_grant_are_refused_by_verb_and_resource(client: Client) -> None:
    with pytest.raises(Forbidden, match='cannot delete resource "nodes" in API group ""'):
        client.delete(NODES, "node-0")


@pytest.mark.parametrize(
    ("method", "path", "expected"),
    [
        ("GET", "/api/v1/namespaces/default/pods/p", Right("get", "", "pods")),
        ("GET", "/api/v1/namespaces/default/pods?limit=1", Right("list", "", "pods")),
        ("GET", "/api/v1/namespaces/default", Right("get", "", "namespaces")),
        ("PATCH", f"{TIDB_CLUSTERS.path('a', 'b')}/status", Right("patch", "pingcap.com", "tidbclusters/status")),
        ("GET", "/apis/pingcap.com/v1alpha1", None),
        ("GET", "/version", None),
    ],
)
@pytest.mark.rule("scheduler-deployment-8")
def test_each_request_needs_the_right_of_its_verb_and_resource(method: str, path: str, expected: Right | None) -> None:
    assert expected == right_for(Request(method, path))


def test_every_resource_that_may_be_changed_may_be_read() -> None:
    """An observer reads the objects that a write would change (kube/dry_run.py)."""
    rights = {each for each in granted() if each.verb in ("patch", "delete") and "/" not in each.resource}
    unread = {each.resource for each in rights if Right("get", each.group, each.resource) not in granted()}
    assert {"events"} == unread


def test_requests_for_foreign_kinds_are_not_judged(client: Client) -> None:
    with pytest.raises(NotFound):
        client.get(Resource("post.example.com", "v1", "mailboxes", "Mailbox"), "a", "b")
