"""Stores in TiKV's status."""

import pytest

from apis.shared import TiKVStore
from member.stores.status import _leader_count


@pytest.mark.parametrize(
    ("now", "before", "shown"), [(100, 100, 100), (109, 100, 100), (112, 100, 112), (0, 30, 0), (30, 0, 30), (5, 4, 5)]
)
@pytest.mark.rule("I29")
def test_a_leader_that_moved_is_no_reason_to_write(now: int, before: int, shown: int) -> None:
    old = TiKVStore(id="1", pod_name="p", ip="i", leader_count=before, state="Up")
    assert shown == _leader_count(now, old)
    assert now == _leader_count(now, None)
