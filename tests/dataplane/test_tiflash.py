"""TiFlash's status port, and PD's rules for TiFlash replicas (dataplane-apis.md 3.2, 7)."""

import pytest

from dataplane.addresses import Address
from dataplane.errors import ApiError, MalformedAnswer
from dataplane.pd import PDClient, PlacementRule
from dataplane.tiflash import TiFlashClient
from ports.clock import FakeClock
from tests.dataplane.scripted import Answer, ScriptedTransport

STATUS = "GET /tiflash/store-status"
RULES = "GET /pd/api/v1/config/rules/group/tiflash"


def tiflash(answer: Answer) -> TiFlashClient:
    return TiFlashClient(ScriptedTransport().on(STATUS, answer), Address("http://demo-tiflash-0:20292"), FakeClock())


def pd(call: str, answer: Answer) -> PDClient:
    return PDClient(ScriptedTransport().on(call, answer), Address("http://demo-pd:2379"), clock=FakeClock())


@pytest.mark.parametrize("printed", ["Running", "Running\n", "Idle", "Ready", "Stopping", "Terminated"])
def test_the_status_of_a_store_is_one_word(printed: str) -> None:
    assert printed.strip() == tiflash((200, printed)).store_status()


def test_an_unknown_status_is_an_error() -> None:
    with pytest.raises(MalformedAnswer, match="none of Idle, Ready, Running"):
        tiflash((200, "Sleeping")).store_status()
    with pytest.raises(ApiError):
        tiflash((500, "")).store_status()


@pytest.mark.parametrize(
    ("answer", "rules"),
    [
        ((200, '[{"group_id":"tiflash","id":"table-45-r","role":"learner","count":2}]'), [("table-45-r", 2)]),
        ((200, "[]"), []),
        ((200, "null"), []),
        ((412, '"placement rules feature is disabled"'), []),
        ((404, "404 page not found"), []),
    ],
)
def test_reads_the_rules_of_tables_on_tiflash(answer: Answer, rules: list[tuple[str, int]]) -> None:
    expected = [PlacementRule("tiflash", name, count) for name, count in rules]
    assert expected == list(pd(RULES, answer).tiflash_rules())


def test_missing_rules_are_an_error() -> None:
    with pytest.raises(ApiError):
        pd(RULES, (500, '"no leader"')).tiflash_rules()


def test_enables_placement_rules_with_a_text_instead_of_a_boolean() -> None:
    transport = ScriptedTransport().on("POST /pd/api/v1/config/replicate", (200, '"The config is updated."'))
    PDClient(transport, Address("http://demo-pd:2379"), clock=FakeClock()).enable_placement_rules()
    assert [b'{"enable-placement-rules":"true"}'] == [request.body for request in transport.requests]


@pytest.mark.parametrize(("body", "marked"), [('{"marked":true}', True), ('{"marked":false}', False), ("{}", False)])
def test_reads_whether_a_restore_runs(body: str, marked: bool) -> None:
    assert marked is pd("GET /pd/api/v1/admin/cluster/markers/snapshot-recovering", (200, body)).is_recovering()
