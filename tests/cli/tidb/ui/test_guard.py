"""Who comes in: the browser with the token, and no other client of this machine or of another site."""

import socket
from collections.abc import Iterator

import pytest

from kube.client import Client
from tests.cli.tidb.typing_commands import Listing
from tests.cli.tidb.ui.pages import Browser, ask, open_page


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    empty = Listing(tidbclusters=("TidbCluster", []), dmclusters=("DMCluster", []))
    with open_page(Client(empty)) as browser:
        browser.get("/")  # starts the thread that answers all tests
        yield browser


_PATHS = ("/", "/static/page.js", "/static/page.css", "/nowhere")


@pytest.mark.parametrize("path", _PATHS)
def test_refuses_a_request_without_the_token(browser: Browser, path: str) -> None:
    answer = ask(browser.origin + path)
    assert (403, True) == (answer.status_code, "its token is missing" in answer.text)
    assert "TiDB" not in answer.text


@pytest.mark.parametrize("token", ["", "x", "%00", "%ff", "é"])
def test_refuses_another_token(browser: Browser, token: str) -> None:
    assert 403 == ask(f"{browser.origin}/?token={token}").status_code
    name = browser.cookie.partition("=")[0]
    assert 403 == ask(browser.origin, cookie=f"{name}={token}".encode().decode("latin-1")).status_code


def test_moves_the_token_from_the_address_to_a_cookie_of_this_site_alone(browser: Browser) -> None:
    answer = ask(browser.address)
    assert (303, "/") == (answer.status_code, answer.headers["location"])
    cookie = answer.headers["set-cookie"]
    assert cookie.endswith("; HttpOnly; Path=/; SameSite=strict")
    assert 200 == ask(browser.origin, cookie=cookie.partition(";")[0]).status_code


@pytest.mark.parametrize("host", ["evil.example", "evil.example:80", "127.0.0.1", "127.0.0.1:1", "localhost", "[::1]"])
@pytest.mark.parametrize("path", _PATHS)
def test_refuses_a_foreign_host(browser: Browser, host: str, path: str) -> None:
    for answer in (browser.get(path, host=host), browser.get(browser.address, host=host)):
        assert (403, True) == (answer.status_code, f"this server is not {host}" in answer.text)


def test_answers_for_localhost(browser: Browser) -> None:
    assert 200 == browser.get("/", host=browser.origin.replace("http://127.0.0.1", "localhost")).status_code


@pytest.mark.parametrize("origin", ["http://evil.example", "null", "", "https://{host}", "http://localhost", "{host}"])
def test_refuses_a_foreign_origin(browser: Browser, origin: str) -> None:
    foreign = origin.replace("{host}", browser.origin.removeprefix("http://"))
    assert 403 == browser.get("/", origin=foreign).status_code
    assert 200 == browser.get("/", origin=browser.origin).status_code


@pytest.mark.parametrize("path", _PATHS)
def test_restricts_the_browser_on_every_answer(browser: Browser, path: str) -> None:
    for answer in (browser.get(path), ask(browser.origin + path)):
        policy = dict(part.split(" ", 1) for part in answer.headers["content-security-policy"].split("; "))
        assert "'none'" == policy["default-src"] == policy["base-uri"] == policy["frame-ancestors"]
        assert {"'none'", "'self'"} == set(policy.values())
        assert "nosniff" == answer.headers["x-content-type-options"]
        assert "same-origin" == answer.headers["referrer-policy"]
        assert "no-store" == answer.headers["cache-control"]
        assert "server" not in answer.headers


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE"])
@pytest.mark.parametrize("path", ["/", "/static/page.js"])
def test_changes_nothing(browser: Browser, method: str, path: str) -> None:
    own = {"cookie": browser.cookie, "origin": browser.origin}
    assert 405 == ask(browser.origin + path, method, **own).status_code
    assert 403 == ask(browser.origin + path, method, cookie=browser.cookie).status_code


def test_only_this_machine_reaches_it(browser: Browser) -> None:
    port = int(browser.origin.rpartition(":")[2])
    # all of 127.0.0.0/8 is this machine: a server on all addresses would answer there
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.2", port), timeout=10).close()
