"""kubectl's protobuf bodies."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ports.transport import Request
from sandbox.apiserver import import_protobuf, protobuf
from tests.sandbox.apiserver.calls import CORE, Calls, pod


def _varint(number: int) -> bytes:
    encoded = b""
    while number >= 0x80:
        encoded += bytes([number & 0x7F | 0x80])
        number >>= 7
    return encoded + bytes([number])


def _field(number: int, value: bytes | str | int) -> bytes:
    if isinstance(value, int):
        return _varint(number << 3) + _varint(value & (1 << 64) - 1)
    raw = value.encode() if isinstance(value, str) else value
    return _varint(number << 3 | 2) + _varint(len(raw)) + raw


def _body(api_version: str, kind: str, raw: bytes) -> bytes:
    type_meta = _field(1, api_version) + _field(2, kind)
    return b"k8s\0" + _field(1, type_meta) + _field(2, raw)


def _meta(name: str) -> bytes:
    return _field(1, _field(1, name) + _field(2, "") + _field(7, 0))


def test_a_protobuf_object_equals_its_json() -> None:
    port = _field(1, "http") + _field(3, 80) + _field(4, _field(1, 1) + _field(2, 0) + _field(3, "web"))
    selector = _field(1, "app") + _field(2, "pd")
    raw = _meta("s") + _field(2, _field(1, port) + _field(2, selector) + _field(3, ""))
    assert {
        "kind": "Service",
        "apiVersion": "v1",
        "metadata": {"name": "s"},
        "spec": {"ports": [{"name": "http", "port": 80, "targetPort": "web"}], "selector": {"app": "pd"}},
    } == protobuf.decode(_body("v1", "Service", raw))


def test_embedded_structs_are_shown_in_place() -> None:
    volume = _field(1, "data") + _field(2, _field(19, _field(1, _field(1, "config"))))
    raw = _meta("p") + _field(2, _field(1, volume))
    tree = protobuf.decode(_body("v1", "Pod", raw))
    assert [{"name": "data", "configMap": {"name": "config"}}] == tree["spec"]["volumes"]


def test_meaningful_zeros_survive() -> None:
    raw = _meta("d") + _field(2, _field(1, 0) + _field(5, 0))
    spec = protobuf.decode(_body("apps/v1", "Deployment", raw))["spec"]
    assert {"replicas": 0} == spec


@given(st.integers(min_value=-(2**63), max_value=2**63 - 1))
def test_integers_keep_their_sign(number: int) -> None:
    options = _body("policy/v1", "DeleteOptions", _field(1, number))
    assert number == protobuf.decode(options)["gracePeriodSeconds"]


@pytest.mark.parametrize(
    "body", [b"{}", b"k8s\0\x0a\xff", _body("v1", "Nothing", b""), _body("v1", "Pod", b"\x0a\x7f")]
)
def test_rejects_malformed_protobuf(call: Calls, body: bytes) -> None:
    headers = {"content-type": protobuf.MEDIA_TYPE}
    answer = call.server.handle("kubectl", Request("POST", f"{CORE}/pods", headers, body))
    assert 400 == answer.status


def test_kubectl_creates_and_deletes_in_protobuf(call: Calls) -> None:
    headers = {"content-type": protobuf.MEDIA_TYPE, "accept": f"{protobuf.MEDIA_TYPE},application/json"}
    namespace = _body("v1", "Namespace", _meta("tidb"))
    assert 201 == call.server.handle("kubectl", Request("POST", "/api/v1/namespaces", headers, namespace)).status
    call.made(f"{CORE}/pods", pod("p", nodeName="n1"))
    options = _body("v1", "DeleteOptions", _field(1, 0))
    call.server.handle("kubectl", Request("DELETE", f"{CORE}/pods/p", headers, options))
    assert 404 == call("GET", f"{CORE}/pods/p").code


def test_field_numbers_are_read_from_proto_files() -> None:
    text = """
package k8s.io.api.core.v1;
// A comment.
message Thing {
  // The name.
  // +optional
  optional string name = 1;
  repeated Part parts = 3;
  map<string, .k8s.io.other.Quantity> sizes = 12;
}

message Part {
}
"""
    found = import_protobuf.messages(text)
    assert {
        "1": ["name", "string"],
        "3": ["parts", "k8s.io.api.core.v1.Part", "repeated"],
        "12": ["sizes", "k8s.io.other.Quantity", "map"],
    } == found["k8s.io.api.core.v1.Thing"]
    assert set(found) == set(import_protobuf.reachable(["k8s.io.api.core.v1.Thing"], found))
