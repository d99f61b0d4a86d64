"""Doubles of the transport: a scripted one, and a minimal API server with optimistic locking."""

import itertools
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any
from urllib.parse import urlsplit

import msgspec

from kube.objects import Json
from ports.clock import FakeClock
from ports.transport import ByteStream, Request, Response, TransportError

Answer = Response | TransportError


def answer(status: int, body: Any = None, **headers: str) -> Response:
    """An answer with a JSON body; write `_` for `-` in header names."""
    raw = b"" if body is None else msgspec.json.encode(body)
    return Response(status, {name.replace("_", "-"): value for name, value in headers.items()}, raw)


def status(code: int, reason: str, **details: Any) -> Response:
    """A refusal in the API server's format."""
    return answer(code, {"kind": "Status", "code": code, "reason": reason, "message": reason, "details": details})


class ScriptedTransport:
    """Answers from a script and records the requests."""

    def __init__(self, script: Iterable[Answer] | Callable[[Request], Answer]) -> None:
        answers = iter(()) if callable(script) else iter(script)
        self._script = script if callable(script) else lambda _: next(answers)
        self.requests: list[Request] = []

    def request(self, request: Request) -> Response:
        self.requests.append(request)
        result = self._script(request)
        if isinstance(result, TransportError):
            raise result
        return result

    def stream(self, request: Request, idle_timeout: float) -> ByteStream:
        return FakeStream(self.request(request))


class FakeStream:
    """An answer whose body is one chunk."""

    def __init__(self, response: Response) -> None:
        self.status = response.status
        self.headers: Mapping[str, str] = response.headers
        self._body = response.body
        self.closed = False

    def __iter__(self) -> Iterator[bytes]:
        yield self._body

    def abort(self) -> None:
        self._body = b""

    def close(self) -> None:
        self.closed = True


class FakeApi(ScriptedTransport):
    """Objects by path, with versions, UIDs and preconditions. Supports merge patches; ignores kinds."""

    def __init__(self) -> None:
        super().__init__(self._serve)
        self.objects: dict[str, Json] = {}
        self.failures: list[Answer | None] = []
        self._versions = itertools.count(1)

    @property
    def calls(self) -> list[str]:
        """The requests as `METHOD last-part-of-the-path`."""
        return [f"{request.method} {urlsplit(request.url).path.rsplit('/', 1)[1]}" for request in self.requests]

    def put(self, path: str, body: Json) -> Json:
        """Write an object as another client."""
        uid = body["metadata"].get("uid") or self.objects.get(path, body)["metadata"].get("uid") or f"uid-{path}"
        meta = body["metadata"] | {"uid": uid, "resourceVersion": str(next(self._versions))}
        self.objects[path] = body | {"metadata": meta}
        return self.objects[path]

    def _serve(self, request: Request) -> Answer:
        if self.failures and (failure := self.failures.pop(0)) is not None:
            return failure
        path = urlsplit(request.url).path
        body = msgspec.json.decode(request.body) if request.body else {}
        if request.method == "POST":
            path = f"{path}/{body['metadata']['name']}"
            return status(409, "AlreadyExists") if path in self.objects else answer(201, self.put(path, body))
        path = path.removesuffix("/status")
        if path not in self.objects:
            return status(404, "NotFound", name=path.rsplit("/", 1)[1])
        return self._change(request.method, path, body)

    def _change(self, method: str, path: str, body: Json) -> Answer:
        there = self.objects[path]
        wanted = body.get("preconditions") if method == "DELETE" else body.get("metadata")
        for name in ("uid", "resourceVersion"):
            if (wanted or {}).get(name, there["metadata"][name]) != there["metadata"][name]:
                return status(409, "Conflict")
        if method == "DELETE":
            return answer(200, self.objects.pop(path))
        if method == "PATCH":
            return answer(200, self.put(path, merged(there, body)))
        return answer(200, self.put(path, body) if method == "PUT" else there)


def merged(target: Any, patch: Any) -> Any:
    """The result of a merge patch (RFC 7386)."""
    if not isinstance(patch, dict):
        return patch
    result = dict(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = merged(result.get(key), value)
    return result


def step_until(clock: FakeClock, done: Callable[[], bool], by: float, waiters: int = 1) -> None:
    """Step the clock whenever `waiters` threads wait on it, until `done`. Raises TimeoutError."""
    pause = threading.Event()
    for _ in range(5000):
        if done():
            return
        if clock.has_waiters(waiters):
            clock.step(by)
        pause.wait(0.001)
    raise TimeoutError("it did not happen in 5 seconds")
