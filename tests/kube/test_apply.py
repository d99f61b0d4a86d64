from typing import Any

import msgspec
import pytest

from kube.apply import Applier, ForeignOwner
from kube.client import Client
from kube.errors import Conflict, NotFound
from kube.objects import Json, Object
from kube.resources import SERVICES, TIDB_CLUSTERS
from kube.retrying import RetryingTransport
from kube.throttle import Rate, Throttle
from ports.clock import FakeClock
from ports.fencing import LeaseExpired
from ports.stopping import Stop
from tests.kube.fakes import FakeApi, ScriptedTransport, answer

PATH = "/api/v1/namespaces/ns/services/basic-pd"
OWNER = {"apiVersion": "pingcap.com/v1alpha1", "kind": "TidbCluster", "name": "basic", "uid": "tc", "controller": True}
LABELS = {"app.kubernetes.io/managed-by": "tidb-operator", "app.kubernetes.io/instance": "basic"}


def service(port: int = 2379, **meta: Any) -> Json:
    named = {"name": "basic-pd", "namespace": "ns", "labels": LABELS, "ownerReferences": [OWNER]}
    return {"apiVersion": "v1", "kind": "Service", "metadata": named | meta, "spec": {"ports": [{"port": port}]}}


def cached(tree: Json) -> Object:
    return Object(msgspec.json.encode(tree))


@pytest.fixture
def api() -> FakeApi:
    return FakeApi()


@pytest.fixture
def applier(api: FakeApi, clock: FakeClock) -> Applier:
    return Applier(Client(api), clock)


def test_creates_an_absent_object(api: FakeApi, applier: Applier) -> None:
    created = applier.apply(SERVICES, service(), None)

    assert "1" == created.metadata.resource_version
    assert ["POST services"] == api.calls


@pytest.mark.rule("I29")
def test_sends_no_request_without_a_difference(api: FakeApi, applier: Applier) -> None:
    there = cached(api.put(PATH, service() | {"status": {"loadBalancer": {}}}))

    assert there is applier.apply(SERVICES, service(), there)
    assert [] == api.calls


def test_a_difference_is_patched_for_the_version_and_identity_it_was_computed_from(
    api: FakeApi, applier: Applier
) -> None:
    there = cached(api.put(PATH, service()))

    applier.apply(SERVICES, service(port=2380), there)

    assert ["PATCH basic-pd"] == api.calls
    assert api.requests[0].body is not None
    assert {
        "spec": {"ports": [{"port": 2380}]},
        "metadata": {"uid": f"uid-{PATH}", "resourceVersion": "1"},
    } == msgspec.json.decode(api.requests[0].body)


@pytest.mark.rule("F3")
def test_rejects_a_write_based_on_an_outdated_object(api: FakeApi, applier: Applier) -> None:
    there = cached(api.put(PATH, service()))
    api.put(PATH, service(annotations={"somebody": "else"}))

    with pytest.raises(Conflict):
        applier.apply(SERVICES, service(port=2380), there)
    assert ["PATCH basic-pd"] == api.calls


@pytest.mark.rule("EXP-1")
def test_reads_an_object_live_if_its_name_is_taken(api: FakeApi, applier: Applier) -> None:
    api.put(PATH, service())

    applied = applier.apply(SERVICES, service(port=2380), None)

    assert [{"port": 2380}] == applied.decode()["spec"]["ports"]
    assert ["POST services", "GET basic-pd", "PATCH basic-pd"] == api.calls


@pytest.mark.parametrize("known", [True, False])
@pytest.mark.rule("EXP-1")
def test_leaves_an_object_of_another_owner_alone(api: FakeApi, applier: Applier, known: bool) -> None:
    theirs = OWNER | {"uid": "other", "name": "rival"}
    there = cached(api.put(PATH, service(ownerReferences=[theirs])))

    with pytest.raises(ForeignOwner, match="controlled by TidbCluster rival") as refusal:
        applier.apply(SERVICES, service(port=2380), there if known else None)

    assert refusal.value.owner is not None
    assert "other" == refusal.value.owner.uid
    assert not any(call.startswith("PATCH") for call in api.calls)


def test_objects_11_6_adopts_an_orphan_with_its_labels_and_keeps_other_owners(api: FakeApi, applier: Applier) -> None:
    bystander = {"apiVersion": "v1", "kind": "ConfigMap", "name": "x", "uid": "by"}
    there = cached(api.put(PATH, service(ownerReferences=[bystander])))

    adopted = applier.apply(SERVICES, service(), there)

    assert ["by", "tc"] == [owner.uid for owner in adopted.metadata.owner_references]


def test_leaves_an_orphan_without_its_labels_alone(api: FakeApi, applier: Applier) -> None:
    there = cached(api.put(PATH, service(ownerReferences=[], labels={"app": "handmade"})))

    with pytest.raises(ForeignOwner, match="not labelled as ours"):
        applier.apply(SERVICES, service(), there)


def test_keeps_foreign_finalizers(api: FakeApi, applier: Applier) -> None:
    there = cached(api.put(PATH, service(finalizers=["cloud/lb"])))

    applied = applier.apply(SERVICES, service(finalizers=["ours"]), there)

    assert ("cloud/lb", "ours") == applied.metadata.finalizers


def test_removes_fields_that_are_no_longer_desired(api: FakeApi, applier: Applier) -> None:
    before = service(annotations={"ours": "1"})
    there = cached(api.put(PATH, service(annotations={"ours": "1", "foreign": "2"})))

    applied = applier.apply(SERVICES, service(), there, applied=before)

    assert {"foreign": "2"} == dict(applied.metadata.annotations)


@pytest.mark.parametrize(
    ("field", "made"),
    [
        ({"serviceAccountName": "mine"}, {"serviceAccount": None}),
        ({"hostNetwork": True}, {"containers": [{"name": "pd"}]}),
    ],
)
@pytest.mark.rule("R22")
def test_removes_fields_that_the_api_server_derived(api: FakeApi, applier: Applier, field: Json, made: Json) -> None:
    def with_pod(spec: Json) -> Json:
        return service() | {"spec": {"template": {"spec": spec | {"containers": [{"name": "pd"}]}}}}

    there = cached(api.put(PATH, with_pod(field)))
    applier.apply(SERVICES, with_pod({}), there, applied=with_pod(field))

    assert api.requests[0].body is not None
    sent = msgspec.json.decode(api.requests[0].body)
    assert dict.fromkeys(field) | made == sent["spec"]["template"]["spec"]


@pytest.mark.rule("LE-22")
def test_no_write_without_a_valid_lease(api: FakeApi) -> None:
    class Closed:
        def check(self) -> None:
            raise LeaseExpired

    clock = FakeClock()
    fenced = RetryingTransport(api, clock, Throttle(Rate(), clock), Stop(), fence=Closed())

    with pytest.raises(LeaseExpired):
        Applier(Client(fenced), clock).apply(SERVICES, service(), None)
    assert [] == api.calls


TC_PATH = "/apis/pingcap.com/v1alpha1/namespaces/ns/tidbclusters/basic"


def patch_status(
    applier: Applier, old: Json, new: Json, subresource: bool = False, version: str = "1"
) -> Object | None:
    return applier.patch_status(
        TIDB_CLUSTERS, "basic", "ns", uid="tc", resource_version=version, old=old, new=new, subresource=subresource
    )


@pytest.mark.rule("I29")
def test_an_equal_status_is_no_request(api: FakeApi, applier: Applier) -> None:
    assert patch_status(applier, {"a": {"b": 1}, "c": None}, {"a": {"b": 1}}) is None
    assert [] == api.calls


@pytest.mark.parametrize(("subresource", "path"), [(True, f"{TC_PATH}/status"), (False, TC_PATH)])
@pytest.mark.rule("I30")
def test_only_the_difference_of_the_status_is_sent(
    api: FakeApi, applier: Applier, subresource: bool, path: str
) -> None:
    old = {"pd": {"phase": "Normal", "image": "x"}, "gone": 1, "conditions": [1]}
    new = {"pd": {"phase": "Upgrade", "image": "x"}, "conditions": [1, 2]}
    api.put(TC_PATH, {"metadata": {"name": "basic", "uid": "tc"}, "spec": {"a": 1}, "status": old})

    patched = patch_status(applier, old, new, subresource)

    assert patched is not None
    assert ({"a": 1}, new) == (patched.decode()["spec"], patched.decode()["status"])
    assert path == api.requests[0].url
    assert api.requests[0].body is not None
    assert {
        "metadata": {"uid": "tc", "resourceVersion": "1"},
        "status": {"pd": {"phase": "Upgrade"}, "gone": None, "conditions": [1, 2]},
    } == msgspec.json.decode(api.requests[0].body)


def test_rejects_a_status_based_on_an_outdated_object(api: FakeApi, applier: Applier) -> None:
    api.put(TC_PATH, {"metadata": {"name": "basic", "uid": "tc"}})

    with pytest.raises(Conflict):
        patch_status(applier, {}, {"a": 1}, version="0")


def test_a_dry_run_that_a_webhook_does_not_support_returns_none(clock: FakeClock) -> None:
    said = {"kind": "Status", "reason": "BadRequest", "message": 'admission webhook "w" does not support dry run'}
    transport = ScriptedTransport(lambda _: answer(400, said))
    there, applier = cached(service()), Applier(Client(transport), clock)

    assert applier.try_out(SERVICES, there, {"spec": {}}) is None
    assert not applier.annotate_alone(SERVICES, there, {"a": "b"})
    assert {f"{PATH}?dryRun=All"} == {request.url for request in transport.requests}


@pytest.mark.parametrize("served", [["tidbclusters"], ["tidbclusters", "tidbclusters/status"]])
def test_reads_discovery_once_for_the_status_subresource(served: list[str]) -> None:
    transport = ScriptedTransport([answer(200, {"resources": [{"name": name} for name in served]})])
    applier = Applier(Client(transport), FakeClock())

    expected = len(served) == 2
    assert (expected, expected) == tuple(applier.has_status_subresource(TIDB_CLUSTERS) for _ in range(2))
    assert ["/apis/pingcap.com/v1alpha1"] == [request.url for request in transport.requests]


def test_an_ignored_status_makes_it_read_discovery_again() -> None:
    tree = {"metadata": {"name": "basic", "uid": "tc"}}
    without = answer(200, {"resources": [{"name": "tidbclusters"}]})
    with_it = answer(200, {"resources": [{"name": "tidbclusters/status"}]})
    applier = Applier(Client(ScriptedTransport([without, answer(200, tree), with_it])), FakeClock())

    assert not applier.has_status_subresource(TIDB_CLUSTERS)
    patch_status(applier, {}, {"a": 1})

    assert applier.has_status_subresource(TIDB_CLUSTERS)
    assert {} == applier.status_of(TIDB_CLUSTERS, cached(tree)), "it was not written"


def test_a_missing_status_subresource_makes_it_read_discovery_again(api: FakeApi, applier: Applier) -> None:
    with pytest.raises(NotFound):
        patch_status(applier, {}, {"a": 1}, subresource=True)
