"""Quantities and durations, as Kubernetes and Go read them."""

from decimal import Decimal

import pytest

from apis import duration, quantity


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("10Gi", 10 * 1024**3),
        ("1.5Ki", 1536),
        ("500m", Decimal("0.5")),
        ("1e3", 1000),
        ("1E", 10**18),
        ("1E2", 100),
        ("2M", 2_000_000),
        ("-.5", Decimal("-0.5")),
        ("3n", Decimal("0.000000003")),
        (7, 7),
    ],
)
def test_parses_quantities_exactly(text: str | int, value: Decimal | int) -> None:
    assert value == quantity.parse(text)


@pytest.mark.parametrize("text", ["", "10GiB", "1 Gi", "ten", "1e", "1ki", "--1", "0x1"])
def test_refuses_an_invalid_quantity(text: str) -> None:
    with pytest.raises(ValueError, match="is not a quantity; use, for example, 10Gi"):
        quantity.parse(text)


def test_units_round_up() -> None:
    assert [1, 1024, 2] == [quantity.units("1m"), quantity.units("1Ki"), quantity.units("1500m")]


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("1500m", 90000), ("1h30m", 5400), ("400s", 400), ("1.5h", 5400), ("250ms", 0.25), ("0", 0), ("-1m", -60)],
)
def test_parses_durations_as_seconds(text: str, seconds: float) -> None:
    assert seconds == duration.seconds(text)


@pytest.mark.parametrize("text", ["", "10", "1d", "m", "1h 30m", "ten minutes", "."])
def test_refuses_an_invalid_duration(text: str) -> None:
    with pytest.raises(ValueError, match="is not a duration; use, for example, 90s"):
        duration.seconds(text)
