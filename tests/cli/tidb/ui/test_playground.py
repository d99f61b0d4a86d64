"""The playground of a sandbox: buttons that break and heal nodes."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from cli.tidb.ui.command import page_of_sandbox
from kube.client import Client
from ports.clock import SystemClock
from tests.cli.tidb.ui.pages import Browser, ask, open_page
from tests.cli.tidb.ui.test_overview import clusters


@pytest.fixture
def browser(kubeconfig: Path) -> Iterator[Browser]:
    with page_of_sandbox(kubeconfig, SystemClock()) as address:
        browser = Browser(address)
        yield browser
        browser.press("/playground?heal=")


@pytest.mark.slow
def test_a_button_loses_a_node_and_another_heals_it(browser: Browser) -> None:
    assert "Nothing is broken." in browser.page("/playground").text
    buttons = [str(each.attributes["action"]) for each in browser.page("/playground").every("form")]
    assert {f"/playground?fault={fault}&on=node-1" for fault in ("node-lost", "node-cut-off")} <= set(buttons)
    answer = browser.press("/playground?fault=node-lost&on=node-1")
    assert (303, "/playground") == (answer.status_code, answer.headers["location"])
    page = browser.page("/playground")
    assert "node-lost node-1 Heal node-lost node-1" in page.text
    assert "node-1 is broken" in page.text
    (heal,) = [
        str(each.attributes["action"]) for each in page.every("form") if "heal" in str(each.attributes["action"])
    ]
    assert 303 == browser.press(heal).status_code
    assert "Nothing is broken." in browser.page("/playground").text


@pytest.mark.slow
def test_only_its_own_buttons_break_something(browser: Browser) -> None:
    lose = "/playground?fault=node-lost&on=node-1"
    assert 403 == ask(browser.origin + lose, "POST", origin=browser.origin).status_code
    assert 403 == ask(browser.origin + lose, "POST", cookie=browser.cookie).status_code
    foreign = ask(browser.origin + lose, "POST", cookie=browser.cookie, origin="http://evil.example")
    assert 403 == foreign.status_code
    assert 409 == browser.press("/playground?fault=webhook&on=x").status_code
    assert 502 == browser.press("/playground?fault=node-lost&on=nowhere").status_code
    assert 200 == browser.get(lose).status_code  # reads what is broken
    assert "Nothing is broken." in browser.page("/playground").text


@pytest.mark.slow
def test_a_sandbox_without_the_extra_says_so(kubeconfig: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "cli.tidb.ui.server", raising=False)
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    with page_of_sandbox(kubeconfig, SystemClock()) as said:
        assert said.startswith("uvicorn is missing; the page needs an extra")


def test_the_page_of_a_cluster_has_no_playground() -> None:
    with open_page(Client(clusters())) as browser:
        assert "/playground" not in [each.attributes["href"] for each in browser.page().every("a")]
        browser.page("/playground", 404)
        assert 404 == browser.press("/playground?fault=node-lost&on=node-1").status_code
