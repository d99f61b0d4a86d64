"""Durations and booleans as Go writes them."""

import pytest

from controller_manager.go_values import parse_bool, parse_duration


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("30s", 30),
        ("5m", 300),
        ("1h30m", 5400),
        ("1.5h", 5400),
        ("500ms", 0.5),
        ("0", 0),
        ("1m0.5s", 60.5),
        (".5s", 0.5),
    ],
)
@pytest.mark.rule("3.1")
def test_a_duration_is_read(text: str, seconds: float) -> None:
    assert seconds == parse_duration(text)


@pytest.mark.parametrize("text", ["", "5", "5 m", "-5m", "m", "5d", "5m3", "1.2.3s"])
@pytest.mark.rule("3.1")
def test_refuses_an_invalid_duration(text: str) -> None:
    with pytest.raises(ValueError, match=r"such as 90s|for example, 90s"):
        parse_duration(text)


@pytest.mark.parametrize(("text", "value"), [("1", True), ("T", True), ("true", True), ("0", False), ("FALSE", False)])
@pytest.mark.rule("3.7")
def test_a_boolean_is_read(text: str, value: bool) -> None:
    assert value is parse_bool(text)


@pytest.mark.parametrize("text", ["", "yes", "tRue"])
@pytest.mark.rule("3.7")
def test_refuses_an_invalid_boolean(text: str) -> None:
    with pytest.raises(ValueError, match="write true or false"):
        parse_bool(text)
