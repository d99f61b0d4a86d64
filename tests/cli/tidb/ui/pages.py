"""A browser without a screen: requests to the page, and what its HTML says."""

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from html.parser import HTMLParser
from urllib.parse import urljoin

import requests

from cli.failures import Failure
from cli.tidb.output import Output
from cli.tidb.session import Session
from cli.tidb.ui.rehearsals import Rehearsals
from cli.tidb.ui.server import serving
from kube.client import Client
from kube.objects import Json
from ports.clock import Clock, FakeClock
from tests.cli.tidb.typing_commands import ThisServer

_VOID = frozenset({"area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "wbr"})


class Browser:
    """A browser that has opened the address with the token, and has its cookie."""

    def __init__(self, address: str) -> None:
        self.address = address
        self.origin = address.partition("/?")[0]
        self.cookie = ask(address).headers["set-cookie"].partition(";")[0]

    def get(self, path: str = "/", **headers: str) -> requests.Response:
        """The answer to a request."""
        return ask(urljoin(self.origin, path), cookie=self.cookie, **headers)

    def press(self, path: str) -> requests.Response:
        """The answer to a button that writes."""
        return ask(urljoin(self.origin, path), "POST", cookie=self.cookie, origin=self.origin)

    def page(self, path: str = "/", status: int = 200) -> "Page":
        """A page, which must have that status."""
        answer = self.get(path)
        assert status == answer.status_code, answer.text
        return Page(answer.text)


def ask(url: str, method: str = "GET", **headers: str) -> requests.Response:
    """The answer to a request with these headers, and without cookies or proxies of its own."""
    with requests.Session() as session:
        session.trust_env = False
        return session.request(method, url, headers=headers, timeout=30, allow_redirects=False)


@contextmanager
def open_page(
    client: Client,
    namespace: str = "",
    clock: Clock | None = None,
    rehearsals: Rehearsals | None = None,
    *,
    writes: bool = False,
) -> Iterator[Browser]:
    """A browser in front of the page about what a client may read; without `rehearsals`, there are none."""
    session = Session(ThisServer(client), clock or FakeClock(), Output(), namespace)
    with serving(session, 0, rehearsals or _NoRehearsals([]), writes=writes) as address:
        yield Browser(address)


class _NoRehearsals(Rehearsals):
    def __call__(self, arguments: Sequence[str]) -> Json:
        raise Failure(f"no rehearsal of {arguments[0]} here")


class Page(HTMLParser):
    """The elements of a page in order, each with its attributes and its text."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.elements: list[Element] = []
        self._open: list[Element] = []
        self.feed(html)
        self.close()
        assert [] == self._open, "an element is not closed"

    @property
    def text(self) -> str:
        """What a reader sees."""
        return self.one("body").text

    def every(self, *tags: str) -> list["Element"]:
        """The elements of these tags."""
        return [each for each in self.elements if each.tag in tags]

    def one(self, tag: str) -> "Element":
        """The only element of a tag."""
        (found,) = self.every(tag)
        return found

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """See HTMLParser."""
        element = Element(tag, dict(attrs))
        self.elements.append(element)
        if tag not in _VOID:
            self._open.append(element)
        elif tag == "br":
            self.handle_data("\n")

    def handle_endtag(self, tag: str) -> None:
        """See HTMLParser."""
        assert tag == self._open.pop().tag, f"</{tag}> closes another element"

    def handle_data(self, data: str) -> None:
        """See HTMLParser."""
        for each in self._open:
            each.data += data


class Element:
    """An element of a page."""

    def __init__(self, tag: str, attributes: Mapping[str, str | None]) -> None:
        self.tag = tag
        self.attributes = attributes
        self.data = ""

    @property
    def text(self) -> str:
        """The text in it, with single blanks."""
        return re.sub(r"\s+", " ", self.data).strip()
