"""The addresses of the page, and the templates that answer them. All are reads: nothing is written."""

from collections.abc import Callable, Mapping
from http import HTTPStatus
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from cli.failures import Failure
from cli.tidb.ages import ago
from cli.tidb.session import Session
from cli.tidb.ui.overview import needs_user, read_overview
from kube.errors import ApiError
from ports.foreign_text import printable
from ports.transport import TransportError

_HERE = Path(__file__).parent


def application(session: Session) -> Starlette:
    """The page about what the user of a session may read."""
    pages = Pages(session)
    return Starlette(
        routes=[
            Route("/", pages.overview),
            Mount("/static", StaticFiles(directory=_HERE / "static")),
        ],
        exception_handlers={
            HTTPException: pages.no_page,
            Failure: pages.failed,
            ApiError: pages.failed,
            TransportError: pages.failed,
        },
    )


class Pages:
    """Each method answers requests for one address; Starlette runs it in a thread of its own."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._templates = templates()

    def overview(self, _: Request) -> Response:
        """All clusters."""
        session = self._session
        return self._page("overview", view=read_overview(session.client, session.asked_namespace, session.namespace))

    def no_page(self, _: Request, error: Exception) -> Response:
        """An address without a page."""
        assert isinstance(error, HTTPException)
        return self._page("error", HTTPStatus(error.status_code), title=error.detail, message="")

    def failed(self, _: Request, error: Exception) -> Response:
        """The API server refused a read, or cannot be reached."""
        message = f"The API server refuses: {error.message}" if isinstance(error, ApiError) else str(error)
        return self._page("error", HTTPStatus.BAD_GATEWAY, title="The clusters cannot be read", message=message)

    def _page(self, name: str, status: HTTPStatus = HTTPStatus.OK, **values: object) -> Response:
        now = self._session.clock.wall()
        text = self._templates.get_template(f"{name}.html").render(values, ago=lambda time: ago(time, now))
        return HTMLResponse(text, status)


def templates() -> Environment:
    """The templates. Every value is escaped, and restricted to printable characters."""
    made = Environment(
        loader=FileSystemLoader(_HERE / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_printable,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= _FILTERS
    return made


def _printable(value: object) -> object:
    # Markup, a subclass, is made by templates
    return printable(value, lines=True) if type(value) is str else value


def _count(number: int, noun: str) -> str:
    """A number with its noun, e.g. `2 clusters`."""
    return f"{number} {noun}{'s' * (number != 1)}"


_FILTERS: Mapping[str, Callable[..., object]] = {"count": _count, "needs_user": needs_user}
