"""The flags of failover reach the stages (lifecycle.md 9.1)."""

import pytest

from controller_manager.flags import parse
from controller_manager.tidb import settings_of
from member.context import FailoverSettings


@pytest.mark.rule("lifecycle-9.1")
def test_without_flags_failover_is_on_after_five_minutes() -> None:
    assert FailoverSettings(True, 300.0, 300.0, 300.0, False, 86400.0) == settings_of(parse([], {}, "v1")).failover


@pytest.mark.rule("lifecycle-9.1")
def test_every_flag_of_failover_has_its_effect() -> None:
    flags = [
        "-auto-failover=false",
        "-pd-failover-period=1m",
        "-tikv-failover-period=2m",
        "-tidb-failover-period=3m",
        "-detect-node-failure",
        "-pod-hard-recovery-period=1h",
    ]
    assert FailoverSettings(False, 60.0, 120.0, 180.0, True, 3600.0) == settings_of(parse(flags, {}, "v1")).failover
