"""The status ports of TiKV and TiDB (dataplane-apis.md 5, 6)."""

import pytest

from dataplane.errors import MalformedAnswer
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
    return TiKVClient(transport, "http://demo-tikv-0:20180", FakeClock())


@pytest.mark.parametrize(("printed", "expected"), [("0", 0), ("12", 12), ("1.234567e+06", 1234567)])
def test_leader_count_reads_large_counts_too(printed: str, expected: int) -> None:
    assert expected == tikv(METRICS.format(count=printed)).leader_count()


@pytest.mark.parametrize("body", ["", METRICS.format(count="NaN"), METRICS.format(count="many")])
def test_no_count_is_an_error_and_not_zero(body: str) -> None:
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
def test_18_15_tidb_is_healthy_when_it_says_so(answer: Answer, expected: bool) -> None:
    transport = ScriptedTransport().on("GET /status", answer)
    assert expected is TiDBClient(transport, "http://demo-tidb-0:10080", FakeClock()).healthy()
