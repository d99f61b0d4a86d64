"""Quantities, as Kubernetes reads them."""

from decimal import Decimal

import pytest

from ports import quantity


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
        ("1k", 1000),
        ("250m", Decimal("0.25")),
        ("1e-05", Decimal("0.00001")),
        (7, 7),
        (0.5, Decimal("0.5")),
    ],
)
def test_parses_quantities_exactly(text: str | int | float, value: Decimal | int) -> None:
    assert value == quantity.parse(text)


@pytest.mark.parametrize(
    "text", ["", "10GiB", "1 Gi", "ten", "1e", "1ki", "--1", "0x1", "pods", "Infinity", "nan", " 1", "1_0"]
)
def test_refuses_an_invalid_quantity(text: str) -> None:
    with pytest.raises(ValueError, match="is not a quantity; use, for example, 10Gi"):
        quantity.parse(text)


def test_units_round_up() -> None:
    assert [1, 1024, 2] == [quantity.units("1m"), quantity.units("1Ki"), quantity.units("1500m")]
