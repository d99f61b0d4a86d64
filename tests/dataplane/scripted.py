"""A transport that answers from a script."""

from collections.abc import Callable
from dataclasses import dataclass, field

from ports.transport import ByteStream, Request, Response, TransportError

Answer = tuple[int, str] | type[TransportError]


@dataclass
class ScriptedTransport:
    """Answers each `METHOD path` with its answers in turn, repeating the last; records the requests."""

    answers: dict[str, list[Answer]] = field(default_factory=dict)
    requests: list[Request] = field(default_factory=list)
    before: Callable[[Request], None] = lambda _: None

    def on(self, call: str, *answers: Answer) -> "ScriptedTransport":
        """Answer `call`, e.g. `GET /status`, with `answers` in turn."""
        self.answers[call] = list(answers)
        return self

    def request(self, request: Request) -> Response:
        """Return the next answer, or raise it if it is an exception."""
        self.before(request)
        self.requests.append(request)
        queue = self.answers[_call(request)]
        answer = queue.pop(0) if len(queue) > 1 else queue[0]
        if isinstance(answer, tuple):
            return Response(answer[0], {}, answer[1].encode())
        raise answer(request.method, request.url, "as scripted")

    def stream(self, request: Request, idle_timeout: float) -> ByteStream:
        """Fail: the operator streams from no component."""
        raise AssertionError(f"{request.method} {request.url} was streamed")

    @property
    def calls(self) -> list[str]:
        """The recorded requests as `METHOD path`."""
        return [_call(request) for request in self.requests]


def _call(request: Request) -> str:
    return f"{request.method} /{request.url.split('/', 3)[3]}"
