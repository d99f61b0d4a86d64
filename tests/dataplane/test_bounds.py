"""Answers with values beyond their bounds raise an error that names server and field."""

import json
import tracemalloc
from collections.abc import Callable
from typing import Any

import pytest

from dataplane.addresses import Address
from dataplane.calls import Caller
from dataplane.dm import DMMasterClient
from dataplane.errors import MalformedAnswer, error_text
from dataplane.pd import PDClient
from dataplane.ticdc import TiCDCClient
from dataplane.tikv import TiKVClient
from ports.clock import FakeClock
from ports.fencing import OpenFence
from ports.transport import ByteStream, Request, Response

URL = Address("http://demo-pd.ns:2379")


class Says:
    """Answers every request with one body."""

    def __init__(self, body: bytes) -> None:
        self._body = body

    def request(self, request: Request) -> Response:
        return Response(200, {}, self._body)

    def stream(self, request: Request, idle_timeout: float) -> ByteStream:
        raise AssertionError(request.url)


def pd(said: Any) -> PDClient:
    body = said if isinstance(said, bytes) else json.dumps(said).encode()
    return PDClient(Says(body), URL, OpenFence(), FakeClock())


def store(**fields: Any) -> Any:
    return {"stores": [{"store": {"id": 1, "address": "a:1", **fields}, "status": {}}]}


def member(**fields: Any) -> Any:
    return [{"name": "a", "member_id": 1, "client_urls": ["u"], "health": True, **fields}]


_HOSTILE: dict[str, tuple[Callable[[], object], str]] = {
    "id-of-65-bits": (lambda: pd(store(id=2**64)).stores(), r"`id` does not fit into 64 bits"),
    "id-below-zero": (lambda: pd(store(id=-1)).stores(), r"\$\.stores\[0\]\.store\.id"),
    "number-of-5000-digits": (lambda: pd(b'{"id": ' + b"9" * 5000 + b"}").cluster_id(), r"out of range - at `\$\.id`"),
    "address-with-an-escape": (
        lambda: pd(store(address="a\x1b[2J")).stores(),
        r"malformed answer: Expected a text without control characters - at `\$\.stores\[0\]\.store\.address`$",
    ),
    "leaders-below-zero": (
        lambda: pd({"stores": [{"store": {"id": 1}, "status": {"leader_count": -5}}]}).stores(),
        r"leader_count",
    ),
    "regions-beyond-int64": (
        lambda: pd({"stores": [{"store": {"id": 1}, "status": {"region_count": 2**63}}]}).stores(),
        r"region_count",
    ),
    "replicas-below-zero": (lambda: pd({"replication": {"max-replicas": -3}}).config(), r"max-replicas"),
    "escape-in-a-name": (lambda: pd(member(name="\x1b[2J")).health(), r"name"),
    "escape-of-one-byte": (lambda: pd(member(name="\x9b2J")).health(), r"name"),
    "right-to-left-name": (lambda: pd(member(name="a\u202eb")).health(), r"name"),
    "end-of-line-in-an-address": (lambda: pd(store(address="a:1\nb")).stores(), r"address"),
    "name-of-a-megabyte": (lambda: pd(member(name="n" * 1_000_000)).health(), r"length <= 512"),
    "ten-thousand-members": (lambda: pd(member(name="n" * 300) * 1_500).health(), r"`array` of length <= 1000"),
    "ten-thousand-urls": (lambda: pd(member(client_urls=["u" * 99] * 5_000)).health(), r"client_urls"),
    "deep-json": (lambda: pd(b'{"other":' + b"[" * 100_000).stores(), r"nested too deeply"),
    "member-of-65-bits": (lambda: pd(member(member_id=2**64)).health(), r"`member_id` does not fit"),
}


@pytest.mark.parametrize(("ask", "field"), _HOSTILE.values(), ids=_HOSTILE)
def test_a_value_out_of_bounds_raises_an_error_with_server_and_field(ask: Callable[[], object], field: str) -> None:
    with pytest.raises(MalformedAnswer, match=field) as raised:
        ask()
    text = str(raised.value)
    assert URL in text
    assert text.isprintable()
    assert len(text) < 500


def test_the_largest_id_of_64_bits_stays_exact() -> None:
    assert 2**64 - 1 == pd(store(id=2**64 - 1)).stores()[0].id


def test_other_components_have_bounds_as_well() -> None:
    def call(said: Any) -> Caller:
        return Caller(Says(json.dumps(said).encode()), URL, OpenFence(), FakeClock())

    with pytest.raises(MalformedAnswer, match="length <= 1000"):
        TiCDCClient(call([{"id": "c" * 40}] * 2_000)).captures()
    masters = {"result": True, "members": [{"master": {"masters": [{"name": "\x1b[2J"}]}}]}
    with pytest.raises(MalformedAnswer, match="name"):
        DMMasterClient(call(masters)).masters()


@pytest.mark.parametrize("count", ["-1", "1e300", "SECRET", "NaN"])
def test_does_not_quote_a_malformed_leader_count(count: str) -> None:
    metrics = f'tikv_raftstore_region_count{{type="leader"}} {count}\n'.encode()
    with pytest.raises(MalformedAnswer, match="is no number of regions") as raised:
        TiKVClient(Says(metrics), URL, FakeClock()).leader_count()
    assert "SECRET" not in str(raised.value)


@pytest.mark.parametrize("value", [b"{},", b'"ab",', b"1,", b"[],"])
@pytest.mark.slow
def test_many_small_values_cost_no_more_memory_than_the_answer(value: bytes) -> None:
    body = b'{"stores":[' + value * (4_000_000 // len(value)) + b"{}]}"
    tracemalloc.start()
    try:
        with pytest.raises(MalformedAnswer, match="more values than its API allows"):
            pd(body).stores()
        assert tracemalloc.get_traced_memory()[1] < 10_000_000
    finally:
        tracemalloc.stop()


class SaysAtLength(Says):
    """Answers every request with a megabyte and does not keep it."""

    def request(self, request: Request) -> Response:
        return Response(200, {}, b'{"x":"' + b"y" * 1_000_000 + super().request(request).body)


@pytest.mark.parametrize(
    "end", [b'","stores":1}', b"", b'"' + b"," * 40_000], ids=["of-another-type", "no-json", "dense"]
)
def test_an_error_does_not_keep_the_answer_that_it_is_about(end: bytes) -> None:
    client = PDClient(SaysAtLength(end), URL, OpenFence(), FakeClock())
    kept = []
    tracemalloc.start()
    try:
        for _ in range(10):
            with pytest.raises(MalformedAnswer) as raised:
                client.stores()
            kept.append(raised.value)
        assert tracemalloc.get_traced_memory()[0] < 3_000_000
    finally:
        tracemalloc.stop()
    assert 10 == len(kept)


@pytest.mark.parametrize(
    ("body", "quoted"),
    [
        (b'"[PD:core:ErrStoreNotFound]store 9 not found"\n', "[PD:core:ErrStoreNotFound]store 9 not found"),
        (b'{"code":"input","msg":"bad id","data":null}', "bad id"),
        (b'{"error_msg":"[CDC:ErrX]no owner","error_code":"CDC:ErrX"}', "[CDC:ErrX]no owner"),
        (b"404 page not found\n", "404 page not found"),
        (b'"' + b"x" * 5_000 + b'"', "x" * 199 + "…"),
        (b'"a\\u001b[2Jb\\nc"', "a\N{REPLACEMENT CHARACTER}[2Jb c"),
        (b"<html>SECRET</html>", "answered with 19 bytes that are not JSON"),
        (b'{"aws":"SECRET"}', "answered with 16 bytes that are no error message"),
        (b'["SECRET"]', "answered with 10 bytes that are no error message"),
        (b"\xff\xfe", "answered with 2 bytes that are not JSON"),
    ],
)
def test_quotes_a_server_only_if_its_error_has_a_documented_form(body: bytes, quoted: str) -> None:
    assert quoted == error_text(body)
