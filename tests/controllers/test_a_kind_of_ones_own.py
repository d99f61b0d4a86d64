"""A made-up custom resource with its controller, through the kit, in this file alone: a Mailbox owns a Service."""

from collections.abc import Iterator, Sequence

import pytest
from msgspec import field
from structlog.testing import capture_logs

from apis.problem import Problem
from apis.shared import Model
from controllers.simple_kind import Reconcile, SimpleKind
from controllers.stages import Stage
from kube.errors import NotFound
from kube.objects import Json
from kube.resources import CONFIG_MAPS, EVENTS, SERVICES, Resource
from member.outcome import Done, Outcome, Refused, Waiting
from ports.clock import FakeClock
from ports.randomness import SeededRandomness
from rehearsal.operator import USER, Operator
from sandbox.world import World

# the kind, from here ...
MAILBOXES = Resource("post.example.com", "v1", "mailboxes", "Mailbox")


class MailboxSpec(Model, kw_only=True):
    owner: str
    port: int = 25
    rented_to: str = ""


class MailboxStatus(Model, kw_only=True):
    address: str = ""


class Mailbox(Model, kw_only=True):
    spec: MailboxSpec
    status: MailboxStatus = field(default_factory=MailboxStatus)


def serve(ctx: Reconcile[Mailbox]) -> Outcome:
    spec, name = ctx.model.spec, f"{ctx.owner.metadata.name}-post"
    ports = [{"name": "smtp", "port": spec.port}]
    service = ctx.apply(
        SERVICES, {"metadata": {"name": name}, "spec": {"selector": {"of": spec.owner}, "ports": ports}}
    )
    if not (address := service.decode()["spec"].get("clusterIP")):
        return Waiting("NoAddress", f"Service {name} has no address yet", retry_after=1.0)
    ctx.model.status.address = address
    return Done()


def deliver(ctx: Reconcile[Mailbox]) -> Outcome:
    if ctx.model.spec.rented_to:
        return Refused("NotForRent", "a mailbox is not for rent: remove spec.rentedTo")
    if ctx.model.spec.owner == "nobody":
        ctx.apply(CONFIG_MAPS, {"metadata": {"name": "undelivered"}})
    return Done()


def problems(mailbox: Mailbox) -> Sequence[Problem]:
    port = mailbox.spec.port
    return () if 0 < port < 65536 else (Problem("spec.port", port, "must be from 1 to 65535"),)


STAGES = [Stage("serve", serve), Stage("deliver", deliver)]
MAILBOX = SimpleKind(resource=MAILBOXES, model=Mailbox, stages=STAGES, owns=[SERVICES], problems=problems)
# ... to here

_OPEN = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
CRD: Json = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "mailboxes.post.example.com"},
    "spec": {
        "group": MAILBOXES.group,
        "scope": "Namespaced",
        "names": {"kind": "Mailbox", "listKind": "MailboxList", "plural": "mailboxes", "singular": "mailbox"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": _OPEN, "status": _OPEN}}},
            }
        ],
    },
}


class Post:
    """A world with the controller of mailboxes in it, and one mailbox."""

    def __init__(self, clock: FakeClock) -> None:
        self.world = World(clock, SeededRandomness(1), nodes=[], crds=[CRD])
        self.admin = self.world.client()
        self.operator = Operator(self.world, clock, 1, build=MAILBOX.controllers)
        self.create(owner="ada")

    def create(self, **spec: object) -> None:
        identity = {"apiVersion": MAILBOXES.api_version, "kind": MAILBOXES.kind, "metadata": {"name": "ada"}}
        self.admin.create(MAILBOXES, identity | {"spec": spec}, "default")
        self.work()

    def work(self, seconds: float = 0.0) -> None:
        self.operator.work()
        self.world.advance(seconds)
        self.operator.work()

    def change(self, **spec: object) -> None:
        self.admin.patch(MAILBOXES, "ada", "default", {"spec": spec})
        self.work()

    @property
    def status(self) -> Json:
        found: Json = self.admin.get(MAILBOXES, "ada", "default").decode()["status"]
        return found

    def condition(self, kind: str) -> tuple[str, str, str]:
        (found,) = [each for each in self.status["conditions"] if each["type"] == kind]
        return found["status"], found["reason"], found["message"]

    def service(self) -> Json:
        return self.admin.get(SERVICES, "ada-post", "default").decode()

    def reported(self, reason: str) -> int:
        events = [each.decode() for each in self.admin.list_page(EVENTS, "default").items]
        return sum(each["count"] for each in events if each["reason"] == reason)


@pytest.fixture
def post(clock: FakeClock) -> Iterator[Post]:
    made = Post(clock)
    yield made
    made.world.stop()


def test_a_custom_kind_is_created_reported_and_followed(post: Post) -> None:
    service = post.service()
    assert [25] == [port["port"] for port in service["spec"]["ports"]]
    assert service["spec"]["clusterIP"] == post.status["address"]
    assert [("False", "Done"), ("True", "Ready")] == [post.condition(kind)[:2] for kind in ("Progressing", "Ready")]

    post.change(port=2525)
    assert [2525] == [port["port"] for port in post.service()["spec"]["ports"]]
    post.admin.delete(SERVICES, "ada-post", "default")
    post.work()
    assert post.service()["spec"]["clusterIP"] == post.status["address"]

    version = post.admin.get(MAILBOXES, "ada", "default").metadata.resource_version
    post.work(100.0)
    assert version == post.admin.get(MAILBOXES, "ada", "default").metadata.resource_version, "at rest"


@pytest.mark.parametrize(
    ("spec", "message"),
    [({"port": 0}, "spec.port: 0: must be from 1 to 65535"), ({"owner": 7}, "spec.owner: 7: must be a string")],
)
@pytest.mark.rule("I28")
def test_an_invalid_spec_is_refused_once_and_nothing_is_done(post: Post, spec: Json, message: str) -> None:
    before = post.service()
    post.change(**spec)
    post.work(100.0)
    assert ("False", "InvalidSpec", message) == post.condition("Progressing")
    assert (1, before) == (post.reported("FailedValidation"), post.service())
    post.change(port=26, owner="ada")
    assert "Done" == post.condition("Progressing")[1]


def test_a_refusal_is_a_condition_and_an_event(post: Post) -> None:
    post.change(rentedTo="bob")
    post.work(100.0)
    expected = "NotForRent", "a mailbox is not for rent: remove spec.rentedTo"
    assert ("False", *expected) == post.condition("Progressing") == post.condition("Ready")
    assert 1 == post.reported("NotForRent")


def test_names_a_resource_that_the_kind_does_not_own(post: Post) -> None:
    with capture_logs():
        post.change(owner="nobody")
    status, reason, message = post.condition("Progressing")
    assert ("True", "InternalError") == (status, reason)
    assert "the kind mailbox does not own configmaps: add it to `owns`" in message


def test_forgets_a_deleted_object(post: Post) -> None:
    post.change(port=0)
    post.admin.delete(MAILBOXES, "ada", "default")
    post.work(10.0)
    with pytest.raises(NotFound):
        post.admin.get(MAILBOXES, "ada", "default")
    post.create(owner="ada", port=0)
    assert "InvalidSpec" == post.condition("Progressing")[1]
    assert 2 == post.reported("FailedValidation"), "it is another object, and nothing is known of it"


@pytest.mark.rule("EXP-1")
def test_creates_an_object_once_although_the_cache_lacks_it(clock: FakeClock) -> None:
    post = Post(clock)
    post.operator.caches[SERVICES].blind = True
    post.admin.delete(SERVICES, "ada-post", "default")
    post.operator.caches[SERVICES].empty()
    post.world.server.audit.clear()
    for number in range(25):
        post.change(owner=f"owner-{number}")
        post.work(1.0)

    made = post.world.server.audit.count(user=USER, verb="create", resource="services")
    assert (1, 0) == (made, post.world.server.audit.count(user=USER, verb="get", resource="services"))
    assert "owner-24" in str(post.service())
