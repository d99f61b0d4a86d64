"""SQL clients that retry get through every kind of operation (docs/operations.md, "What SQL clients notice")."""

import json

import pytest

from bench.clients import main
from tests.controlplane.processes import require_or_reason
from tests.e2e import upstream

_OPERATIONS = ("upgrade", "tikv_3_to_4", "tikv_4_to_3", "drain_tikv_node", "lose_tikv_node")
_GIVEN_UP = "_given_up"


@pytest.mark.thorough
@pytest.mark.slow
@pytest.mark.timeout(1500)
def test_no_client_gives_up_during_a_take_over_a_roll_scaling_a_drain_and_a_failover(
    capsys: pytest.CaptureFixture[str],
) -> None:
    if reason := require_or_reason():
        pytest.skip(reason)
    if not upstream.BINARY.exists():
        pytest.skip("v1.6.6 was not built: make upstream")
    assert 0 == main(["sandbox", "ours", *_OPERATIONS])
    figures = map(json.loads, filter(lambda line: line.startswith("{"), capsys.readouterr().out.splitlines()))
    given_up = {figure["name"]: figure["ours"] for figure in figures if figure["name"].endswith(_GIVEN_UP)}
    # an operation that does not end has no figure
    assert {f"clients_sandbox_{name}{_GIVEN_UP}": 0 for name in ("take_over", *_OPERATIONS)} == given_up
