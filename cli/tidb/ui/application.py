"""The addresses of the page.

Only two of them write: a plan that `--write` lets the page apply, and a sandbox's playground.
"""

from datetime import datetime
from http import HTTPStatus
from pathlib import Path

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from cli.failures import Failure
from cli.reasons.registry import REASONS, TOPICS
from cli.tidb.ages import ago
from cli.tidb.session import Session
from cli.tidb.ui.cluster import calendar_of, read_cluster_view, read_doctor_view
from cli.tidb.ui.overview import read_overview
from cli.tidb.ui.playground import FAULTS, play, read_playground
from cli.tidb.ui.rehearsals import IN_LOG, Rehearse
from cli.tidb.ui.templating import templates
from cli.tidb.ui.underway import Change, ChangeView, Outlooks, Place, change_view
from cli.tidb.ui.whatif import LASTING, drill_view, make_change, plan_view
from kube.errors import ApiError
from ports.transport import TransportError

_UNCHANGED = "Nothing is changed"


def application(session: Session, rehearse: Rehearse, *, writes: bool = False, playground: bool = False) -> Starlette:
    """The page about what the user of a session may read; it `writes` changes of clusters, or has a `playground`."""
    pages = Pages(session, rehearse, writes=writes, playground=playground)
    changes = [Route("/clusters/{short}/{namespace}/{name}/plan", pages.change, methods=["POST"])]
    in_sandbox = [
        Route("/playground", pages.playground, methods=["GET"]),
        Route("/playground", pages.play, methods=["POST"]),
    ]
    return Starlette(
        routes=[
            Route("/", pages.overview),
            Route("/clusters/{short}/{namespace}/{name}", pages.cluster),
            Route("/clusters/{short}/{namespace}/{name}/outlook", pages.retry, methods=["POST"]),
            Route("/clusters/{short}/{namespace}/{name}/doctor", pages.doctor),
            Route("/clusters/{short}/{namespace}/{name}/plan", pages.plan, methods=["GET"]),
            *(changes if writes else ()),
            Route("/clusters/{short}/{namespace}/{name}/drill", pages.drill),
            Route("/reasons", pages.reasons),
            Route("/reasons/{name}", pages.reason),
            *(in_sandbox if playground else ()),
            Mount("/static", StaticFiles(directory=Path(__file__).parent / "static")),
        ],
        exception_handlers={
            HTTPException: pages.no_page,
            Failure: pages.not_shown,
            ApiError: pages.failed,
            TransportError: pages.failed,
            Exception: pages.defect,
        },
    )


class Pages:
    """Each method answers requests for one address; Starlette runs it in a thread of its own."""

    def __init__(self, session: Session, rehearse: Rehearse, *, writes: bool, playground: bool) -> None:
        self._session = session
        self._rehearse = rehearse
        self._outlooks = Outlooks(rehearse, session.clock)
        self._templates = templates(writes=writes, playground=playground)

    def overview(self, _: Request) -> Response:
        """All clusters."""
        session = self._session
        return self._page("overview", view=read_overview(session.client, session.asked_namespace, session.namespace))

    def cluster(self, request: Request) -> Response:
        """One cluster."""
        place, now = _place(request), self._session.clock.wall()
        view = read_cluster_view(self._session.client, *place)
        change = self._change(place, view.change, now)
        return self._page("cluster", view=view, change=change, calendar=calendar_of(view, now.date()))

    def retry(self, request: Request) -> Response:
        """Rehearse again what is left of a change, after a rehearsal that failed."""
        self._outlooks.retry(_place(request))
        return RedirectResponse(request.url.path.removesuffix("/outlook"), HTTPStatus.SEE_OTHER)

    def doctor(self, request: Request) -> Response:
        """What is wrong with a cluster, and the ways out."""
        session = self._session
        view = read_doctor_view(session.client, *_place(request), session.clock.wall())
        return self._page("doctor", view=view)

    def plan(self, request: Request) -> Response:
        """What a change would do."""
        view = plan_view(self._session.client, self._rehearse, _place(request), request.query_params)
        return self._page("plan", view=view, asked=request.query_params)

    def change(self, request: Request) -> Response:
        """Make a change whose plan the user has seen."""
        make_change(self._session.client, _place(request), request.query_params)
        return RedirectResponse(request.url.path.removesuffix("/plan"), HTTPStatus.SEE_OTHER)

    def drill(self, request: Request) -> Response:
        """What a loss would do."""
        view = drill_view(self._session.client, self._rehearse, _place(request), request.query_params)
        return self._page("drill", view=view, lasting=LASTING)

    def playground(self, _: Request) -> Response:
        """What is broken in a sandbox, and what can be."""
        return self._page("playground", view=read_playground(self._session.client), faults=FAULTS)

    def play(self, request: Request) -> Response:
        """Break or heal something in a sandbox."""
        play(self._session.client, request.query_params)
        return RedirectResponse("/playground", HTTPStatus.SEE_OTHER)

    def reasons(self, _: Request) -> Response:
        """All reasons by topic."""
        return self._page("reasons", topics=TOPICS)

    def reason(self, request: Request) -> Response:
        """What a reason means."""
        name = request.path_params["name"]
        if name not in REASONS:
            raise HTTPException(HTTPStatus.NOT_FOUND)
        return self._page("reason", name=name, reason=REASONS[name])

    def not_shown(self, request: Request, error: Exception) -> Response:
        """A cluster does not exist or cannot be decoded, or a change has a reason not to be made."""
        if request.method == "POST":
            return self._error(HTTPStatus.CONFLICT, _UNCHANGED, str(error))
        return self._error(HTTPStatus.NOT_FOUND, "This cannot be shown", str(error))

    def no_page(self, _: Request, error: Exception) -> Response:
        """An address without a page."""
        assert isinstance(error, HTTPException)
        return self._error(HTTPStatus(error.status_code), error.detail)

    def failed(self, request: Request, error: Exception) -> Response:
        """The API server refused a request, or cannot be reached."""
        message = f"The API server refuses: {error.message}" if isinstance(error, ApiError) else str(error)
        title = "The clusters cannot be read"
        if request.method == "POST":
            # after a lost answer it is not known whether the API server has made the change
            title = _UNCHANGED if isinstance(error, ApiError) else "The API server does not answer"
        return self._error(HTTPStatus.BAD_GATEWAY, title, message)

    def defect(self, _: Request, error: Exception) -> Response:
        """Anything else, of which the server logs the stack."""
        message = f"{type(error).__name__}: {error}; {IN_LOG}"
        return self._error(HTTPStatus.INTERNAL_SERVER_ERROR, "This page has a defect", message, again=True)

    def _change(self, place: Place, change: Change | None, now: datetime) -> ChangeView | None:
        if change is None:
            self._outlooks.forget(place)
            return None
        return change_view(place, change, self._outlooks.of(place, change), now)

    def _error(self, status: HTTPStatus, title: str, message: str = "", *, again: bool = False) -> Response:
        return self._page("error", status, title=title, message=message, again=again)

    def _page(self, template: str, status: HTTPStatus = HTTPStatus.OK, **values: object) -> Response:
        now = self._session.clock.wall()
        text = self._templates.get_template(f"{template}.html").render(values, ago=lambda time: ago(time, now))
        return HTMLResponse(text, status)


def _place(request: Request) -> tuple[str, str]:
    """The namespace of a cluster, and its name such as `tc/basic`."""
    given = request.path_params
    return given["namespace"], f"{given['short']}/{given['name']}"
