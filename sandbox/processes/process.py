"""A container as a real process, behind the interface of a simulated one."""

import http.client
import os
import signal
import socket
import ssl
import threading
from collections.abc import Mapping
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from ports.clock import Clock
from ports.transport import ConnectionLost, ConnectionRefused, Request, RequestTimeout, Response, TlsError
from sandbox.dataplane.output import Output
from sandbox.dataplane.processes import Answer, Exit, Launch
from sandbox.dataplane.tls import NOBODY, Certificate, client_context
from sandbox.processes.agent_client import Agent, AgentError

_LOOK = 0.2
"""Seconds between two looks at a process."""
_CONNECTS_WITHIN = 5.0
_READ_WITHIN = 1.0
_KEPT_BYTES = 2048
_KEPT_LINES = 10
_HOP_BY_HOP = ("connection", "keep-alive", "transfer-encoding", "upgrade", "content-length")


@dataclass(frozen=True, slots=True)
class Started:
    """A container at the agent: its name there, and the reading end of its output. `files` are its texts by path."""

    container: str
    output: Output
    pipe: int
    files: Mapping[str, Path]


class RealProcess:
    """Started by `Machine`. Answers requests of the sandbox's network over a connection of its own for each."""

    concurrent = True
    prints = True
    """It writes its own output."""

    def __init__(self, agent: Agent, clock: Clock, launch: Launch, started: Started) -> None:
        self._agent = agent
        self._clock = clock
        self._launch = launch
        self._container = started.container
        self._output = started.output
        self._files = started.files
        self._renewed: dict[str, str] = {}
        self._ports: frozenset[int] = frozenset()
        self._looks_at = clock.now()
        self.exit: Exit | None = None
        self.woken = False
        self._reader = threading.Thread(
            target=self._read, args=(started.pipe,), name=f"output-{launch.pod}", daemon=True
        )
        self._reader.start()

    def step(self) -> float | None:
        """Look whether it runs, and where it listens."""
        if self.exit is not None:
            return None
        now = self._clock.now()
        if now >= self._looks_at:
            self._looks_at = now + _LOOK
            self._renew()
            self._ports, self.exit = self._seen()
        return self._looks_at

    def _seen(self) -> tuple[frozenset[int], Exit | None]:
        """The ports on which its pod listens, and its end."""
        try:
            seen = self._agent.ask("look", pod=self._launch.pod_uid, container=self._container)
        except AgentError as error:
            return frozenset(), Exit(137, str(error))
        code: int | None = seen["exit"]
        if code is None:
            return frozenset(seen["ports"]), None
        self._reader.join(_READ_WITHIN)
        return frozenset(), Exit(code, self._last_words() if code else "")

    def _renew(self) -> None:
        """Write Secrets that have changed into the files that are mounted."""
        for path, text in self._launch.renewed.copy().items():
            if self._renewed.get(path) != text and path in self._files:
                self._files[path].write_text(text, encoding="utf-8")
                self._renewed[path] = text

    def rests_until(self) -> float:
        return self._looks_at

    def question(self) -> Request | None:
        return None

    def answered(self, response: Response | None) -> None: ...

    def listens(self, port: int) -> bool:
        """True if its pod listens on the port, as of the last look."""
        return port in self._ports

    def connect(self, port: int, timeout: float = _CONNECTS_WITHIN, source: str = "") -> socket.socket:
        """A connection to one of its ports, from the pod whose address is `source`, if any. Raises OSError."""
        try:
            return self._agent.connect(self._launch.address, port, timeout, source)
        except AgentError as error:
            raise OSError(str(error)) from None

    def handle(self, port: int, request: Request) -> Answer:
        """The process's own answer to a client without a certificate. Raises TransportError."""
        return self.exchange(port, request, None)

    def exchange(self, port: int, request: Request, certificate: Certificate | None) -> Answer:
        """The process's own answer; `certificate` is the client's.

        Raises ConnectionRefused, ConnectionLost, RequestTimeout, TlsError.
        """
        parts = urlsplit(request.url)
        try:
            plain = self.connect(port, min(request.timeout, _CONNECTS_WITHIN))
        except TimeoutError as error:
            raise RequestTimeout(request.method, request.url, str(error)) from None
        except OSError as error:
            raise ConnectionRefused(request.method, request.url, str(error)) from None
        connection = http.client.HTTPConnection(parts.hostname or "", port, timeout=request.timeout)
        with closing(connection):
            try:
                plain.settimeout(request.timeout)
                connection.sock = plain
                if parts.scheme == "https":
                    host = parts.hostname or ""
                    context = client_context(certificate or NOBODY, host)
                    connection.sock = context.wrap_socket(plain, server_hostname=host)
                path = parts.path + (f"?{parts.query}" if parts.query else "")
                connection.request(request.method, path or "/", request.body, _end_to_end(request.headers))
                answer = connection.getresponse()
                body = answer.read()
            except TimeoutError as error:
                raise RequestTimeout(request.method, request.url, str(error)) from None
            except (ssl.SSLError, ValueError) as error:
                raise TlsError(request.method, request.url, str(error)) from None
            except (OSError, http.client.HTTPException) as error:
                raise ConnectionLost(request.method, request.url, str(error) or type(error).__name__) from None
        names = {name.lower(): value for name, value in answer.getheaders()}
        return Answer(Response(answer.status, _end_to_end(names), body))

    def stop(self) -> None:
        """SIGTERM to the first process of the container."""
        self._signal(signal.SIGTERM)

    def kill(self, code: int) -> None:
        """SIGKILL to all processes of the container."""
        self._signal(signal.SIGKILL)
        self.woken, self.exit = True, Exit(code)

    def suspend(self, hung: bool) -> None:
        """SIGSTOP, or SIGCONT."""
        self._signal(signal.SIGSTOP if hung else signal.SIGCONT)

    def _signal(self, number: signal.Signals) -> None:
        # an agent that has ended took all processes with it
        with suppress(AgentError):
            self._agent.ask("signal", container=self._container, number=int(number))

    def _read(self, pipe: int) -> None:
        while data := os.read(pipe, 65536):
            self._output.say(data.decode("utf-8", "replace"))
        os.close(pipe)

    def _last_words(self) -> str:
        """The end of its output, as with `terminationMessagePolicy: FallbackToLogsOnError`."""
        lines = [line.text for line in self._output.after(0)][-_KEPT_LINES:]
        return "\n".join(lines)[-_KEPT_BYTES:]


def _end_to_end(headers: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in headers.items() if name.lower() not in _HOP_BY_HOP}
