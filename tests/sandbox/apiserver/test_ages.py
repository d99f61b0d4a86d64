"""Ages as kubectl shows them."""

import pytest

from sandbox.apiserver.ages import human

_MINUTE, _HOUR, _DAY, _YEAR = 60, 3600, 86400, 365 * 86400


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0s"),
        (119, "119s"),
        (2 * _MINUTE, "2m"),
        (5 * _MINUTE + 30, "5m30s"),
        (10 * _MINUTE + 30, "10m"),
        (179 * _MINUTE, "179m"),
        (3 * _HOUR + 5 * _MINUTE, "3h5m"),
        (8 * _HOUR + 5 * _MINUTE, "8h"),
        (47 * _HOUR, "47h"),
        (2 * _DAY + 5 * _HOUR, "2d5h"),
        (9 * _DAY, "9d"),
        (700 * _DAY, "700d"),
        (3 * _YEAR + 2 * _DAY, "3y2d"),
        (9 * _YEAR + 2 * _DAY, "9y"),
    ],
)
def test_one_or_two_units(seconds: int, text: str) -> None:
    assert text == human(seconds)
