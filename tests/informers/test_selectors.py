import pytest

from informers.selectors import EVERYTHING, NOTHING, SelectorError, parse_selector

LABELS = {"app": "tikv", "size": "5", "example.com/tier": "gold", "empty": ""}


@pytest.mark.parametrize(
    "selector",
    [
        "",
        "app=tikv",
        "app==tikv",
        "app!=pd",
        "absent!=pd",
        "app in (pd, tikv)",
        "app notin (pd,tidb)",
        "absent notin (pd)",
        "app",
        "!absent",
        "size>4",
        "size<6",
        "empty=",
        "example.com/tier=gold",
        "app in (pd,tikv),size>4,!absent",
    ],
)
@pytest.mark.rule("LST-4")
def test_selectors_that_match(selector: str) -> None:
    assert parse_selector(selector).matches(LABELS)


@pytest.mark.parametrize(
    "selector",
    [
        "app=pd",
        "absent=tikv",
        "app!=tikv",
        "app in (pd)",
        "app notin (tikv)",
        "absent",
        "!app",
        "size>5",
        "size<5",
        "app>1",
        "absent<1",
        "app=tikv,size>5",
    ],
)
@pytest.mark.rule("LST-4")
def test_selectors_that_do_not_match(selector: str) -> None:
    assert not parse_selector(selector).matches(LABELS)


@pytest.mark.parametrize("selector", ["app=tikv,", "=tikv", "app in pd", "app in (p d)", "size>big", "a b", "app=a=b"])
@pytest.mark.rule("LST-4")
def test_the_error_for_an_invalid_selector_quotes_it(selector: str) -> None:
    with pytest.raises(SelectorError, match="unable to parse label selector requirement '"):
        parse_selector(selector)


@pytest.mark.rule("LST-1")
def test_everything_and_nothing() -> None:
    assert EVERYTHING.matches({})
    assert not NOTHING.matches(LABELS)
