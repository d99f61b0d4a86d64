"""Discovery's HTTP API (objects.md 10.2)."""

import base64
from typing import Any

import pytest

from discovery.app import MissingSetting, make_handler
from ports.clock import FakeClock
from ports.transport import ConnectionRefused, Request, Response
from tests.dataplane.scripted import ScriptedTransport
from tests.discovery.worlds import SERVICE, World, address, cluster, membership

JOIN = "--join=http://demo-pd-0.demo-pd-peer.default.svc:2379"


def b64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def get(path: str, **world: Any) -> Response:
    tc = world.pop("tc", cluster())
    return World(tc, {SERVICE: membership(0)}).app().handle(Request("GET", path))


@pytest.mark.parametrize(
    "path",
    [
        f"/new/{b64(address(1))}",
        f"/new/{b64(address(1))}/pd",
        f"/new/{b64(address(1)).replace('=', '%3D')}",
        f"http://demo-discovery.default.svc:10261/new/{b64(address(1))}",
    ],
)
@pytest.mark.rule("objects-10.2")
def test_answers_new(path: str) -> None:
    answer = get(path)
    assert (200, JOIN) == (answer.status, answer.body.decode())
    assert answer.headers["content-type"].startswith("text/plain")


@pytest.mark.parametrize(
    ("path", "status", "body"),
    [
        (f"/new/{b64(address(1))}/dr", 500, "register type dr is not supported; only pd and dm are\n"),
        (f"/new/{b64('x')}", 500, "'x' is not an address <pod>.<cluster>-pd-peer.<namespace>.svc[.<domain>]:2380\n"),
        ("/", 404, "404 page not found\n"),
        ("/verify", 404, "404 page not found\n"),
    ],
)
@pytest.mark.rule("objects-10.2")
def test_refusals_carry_their_reason(path: str, status: int, body: str) -> None:
    answer = get(path)
    assert (status, body) == (answer.status, answer.body.decode())


@pytest.mark.parametrize("encoded", ["%21", "YQ", b64("a")[:-1] + "*", base64.b64encode(b"a\xff").decode()])
@pytest.mark.rule("objects-10.2")
def test_rejects_invalid_base64(encoded: str) -> None:
    answer = get(f"/new/{encoded}")
    assert 500 == answer.status
    assert b"is not base64" in answer.body


@pytest.mark.rule("objects-10.2")
def test_accepts_url_safe_base64() -> None:
    url = "http://demo-pd:2379/?>"
    assert (
        "-" in base64.urlsafe_b64encode(url.encode()).decode() or "_" in base64.urlsafe_b64encode(url.encode()).decode()
    )
    answer = get(f"/verify/{base64.urlsafe_b64encode(url.encode()).decode()}")
    assert (200, url) == (answer.status, answer.body.decode())


@pytest.mark.rule("objects-10.2")
def test_answers_verify() -> None:
    answer = get(f"/verify/{b64('demo-pd:2379')}")
    assert (200, b"demo-pd:2379") == (answer.status, answer.body)


@pytest.mark.rule("objects-10.2")
def test_a_failed_verification_returns_the_argument() -> None:
    answer = get(f"/verify/{b64('other:2379')}")
    assert 500 == answer.status
    assert answer.body.endswith(b"\nother:2379")


@pytest.mark.rule("objects-10.2")
def test_accepts_only_get() -> None:
    assert 405 == World(cluster()).app().handle(Request("POST", "/new/x")).status


TC = '{"metadata":{"name":"demo","namespace":"default","uid":"u"},"spec":{"pd":{"replicas":1},"tikv":null%s}}'
GET_TC = "GET /apis/pingcap.com/v1alpha1/namespaces/default/tidbclusters/demo"
SECRET = '{"metadata":{"name":"x"},"data":{"ca.crt":"Yw==","tls.crt":"Yw==","tls.key":"Yw=="}}'
GET_SECRET = "GET /api/v1/namespaces/default/secrets/demo-cluster-client-secret"
GET_CLAIMS = "GET /api/v1/namespaces/default/persistentvolumeclaims?labelSelector=tidb.pingcap.com%2Fcluster-id"
NO_CLAIMS = (
    200,
    '{"kind":"PartialObjectMetadataList","apiVersion":"meta.k8s.io/v1","metadata":{"resourceVersion":"1"},"items":[]}',
)
GET_POD = "GET /api/v1/namespaces/default/pods/demo-pd-0"
POD = (
    200,
    '{"apiVersion":"v1","kind":"Pod","metadata":{"name":"demo-pd-0","namespace":"default",'
    '"ownerReferences":[{"apiVersion":"apps/v1","kind":"StatefulSet","name":"demo-pd","uid":"u"}]},"status":{"podIP":"10.0.0.1"}}',
)
MEMBERS = "GET /pd/api/v1/members"


class Kubernetes(ScriptedTransport):
    """An API server that answers by path."""

    def request(self, request: Request) -> Response:
        return super().request(Request(request.method, f"https://api{request.url}", request.headers, request.body))


def in_process(kubernetes: ScriptedTransport, dataplane: ScriptedTransport) -> Response:
    handle = make_handler({"MY_POD_NAMESPACE": "default"}, kubernetes, lambda _: dataplane, FakeClock())
    return handle(Request("GET", f"/new/{b64(address(0))}", client="10.0.0.1"))


@pytest.mark.rule("objects-12")
def test_discovery_in_process_reads_the_cluster_and_pd() -> None:
    pd = ScriptedTransport().on(MEMBERS, ConnectionRefused)
    answer = in_process(Kubernetes().on(GET_TC, (200, TC % "")).on(GET_CLAIMS, NO_CLAIMS).on(GET_POD, POD), pd)
    assert b"--initial-cluster=demo-pd-0=http://demo-pd-0.demo-pd-peer.default.svc:2380" == answer.body
    assert {"http://demo-pd.default:2379/pd/api/v1/members"} == {request.url for request in pd.requests}


@pytest.mark.rule("objects-9.1")
def test_with_tls_pd_is_read_with_the_client_certificate() -> None:
    kubernetes = Kubernetes().on(GET_TC, (200, TC % ',"tlsCluster":{"enabled":true}')).on(GET_SECRET, (200, SECRET))
    kubernetes.on(GET_CLAIMS, NO_CLAIMS).on(GET_POD, POD)
    answer = in_process(kubernetes, ScriptedTransport().on(MEMBERS, ConnectionRefused))
    assert b"--initial-cluster=demo-pd-0=https://demo-pd-0.demo-pd-peer.default.svc:2380" == answer.body
    assert [GET_TC, GET_SECRET, GET_POD, GET_CLAIMS] == kubernetes.calls


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        ((403, '{"kind":"Status","code":403,"reason":"Forbidden","message":"not for you"}'), b"not for you"),
        ((200, TC % ',"paused":"yes"'), b"spec.paused"),
        (ConnectionRefused, b"as scripted"),
    ],
)
@pytest.mark.rule("objects-10.3")
def test_an_unreadable_cluster_is_a_500_with_the_reason(answer: Any, reason: bytes) -> None:
    response = in_process(Kubernetes().on(GET_TC, answer), ScriptedTransport())
    assert 500 == response.status
    assert reason in response.body


@pytest.mark.rule("objects-10.1")
def test_a_missing_setting_is_named() -> None:
    with pytest.raises(MissingSetting, match="MY_POD_NAMESPACE"):
        make_handler({}, ScriptedTransport(), lambda _: ScriptedTransport(), FakeClock())
