"""The world in which a change is rehearsed."""

from datetime import UTC, datetime

from rehearsal.stage import Stage
from sandbox.timings import Timings


def test_the_fraction_of_the_second_at_which_a_user_asks_does_not_count() -> None:
    """With it, the same drill showed failovers up to ten seconds later or earlier."""
    with Stage([], datetime(2026, 11, 29, 4, 40, 16, 123456, tzinfo=UTC), Timings.real()) as stage:
        assert datetime(2026, 11, 29, 4, 40, 16, tzinfo=UTC) == stage.clock.wall()
