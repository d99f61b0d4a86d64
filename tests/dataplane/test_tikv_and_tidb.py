"""The status ports of TiKV and TiDB (dataplane-apis.md 5, 6)."""

import pytest

from dataplane.addresses import Address
from dataplane.errors import ApiError, MalformedAnswer
from dataplane.tidb import TiDBClient
from dataplane.tikv import TiKVClient
from ports.clock import FakeClock
from ports.transport import ConnectionRefused, RequestTimeout
from tests.dataplane.scripted import Answer, ScriptedTransport

METRICS = """\
# HELP tikv_raftstore_region_count Number of regions
# TYPE tikv_raftstore_region_count gauge
tikv_raftstore_region_count{{type="region"}} 99
tikv_raftstore_region_count{{type="leader"}} {count}
tikv_engine_size_bytes{{db="kv",type="default"}} 1
"""


def tikv(body: str) -> TiKVClient:
    transport = ScriptedTransport().on("GET /metrics", (200, body))
    return TiKVClient(transport, Address("http://demo-tikv-0:20180"), FakeClock())


@pytest.mark.parametrize(("printed", "expected"), [("0", 0), ("12", 12), ("1.234567e+06", 1234567)])
def test_leader_count_reads_large_counts_too(printed: str, expected: int) -> None:
    assert expected == tikv(METRICS.format(count=printed)).leader_count()


@pytest.mark.parametrize("body", ["", METRICS.format(count="NaN"), METRICS.format(count="many")])
def test_a_missing_leader_count_is_an_error(body: str) -> None:
    with pytest.raises(MalformedAnswer, match="tikv_raftstore_region_count"):
        tikv(body).leader_count()


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ((200, "{}"), True),
        ((200, "no json"), True),
        ((500, ""), False),
        (RequestTimeout, False),
        (ConnectionRefused, False),
    ],
)
@pytest.mark.rule("dataplane-apis-18")
def test_only_a_tidb_that_reports_health_is_healthy(answer: Answer, expected: bool) -> None:
    transport = ScriptedTransport().on("GET /status", answer)
    assert expected is TiDBClient(transport, Address("http://demo-tidb-0:10080"), FakeClock()).healthy()


@pytest.mark.parametrize(
    "body",
    ["success!", '"success!"', "It's a duplicated operation and the cluster is already in upgrading state."],
)
def test_an_upgrade_has_begun_if_tidb_reports_success_or_a_running_one(body: str) -> None:
    transport = ScriptedTransport().on("POST /upgrade/start", (200, body))

    TiDBClient(transport, Address("http://demo-tidb-0:10080"), FakeClock()).start_upgrade()

    assert [30.0] == [request.timeout for request in transport.requests]


@pytest.mark.parametrize(
    "answer", [(200, "It's a duplicated operation and the cluster is already in upgrading state."), (500, "")]
)
def test_an_upgrade_has_ended_only_if_tidb_reports_it(answer: Answer) -> None:
    transport = ScriptedTransport().on("POST /upgrade/finish", answer)

    with pytest.raises(ApiError):
        TiDBClient(transport, Address("http://demo-tidb-0:10080"), FakeClock()).finish_upgrade()


def test_tidb_labels_are_sent_as_an_object() -> None:
    transport = ScriptedTransport().on("GET /info", (200, '{"labels": {"zone": "b"}}')).on("POST /labels", (200, "{}"))

    TiDBClient(transport, Address("http://demo-tidb-0:10080"), FakeClock()).set_labels({"zone": "a"})

    assert [None, b'{"zone":"a"}'] == [request.body for request in transport.requests]


def test_does_not_send_labels_that_a_tidb_server_has() -> None:
    transport = ScriptedTransport().on("GET /info", (200, '{"labels": {"zone": "a", "host": "n1"}}'))

    TiDBClient(transport, Address("http://demo-tidb-0:10080"), FakeClock()).set_labels({"zone": "a"})

    assert ["GET"] == [request.method for request in transport.requests]
