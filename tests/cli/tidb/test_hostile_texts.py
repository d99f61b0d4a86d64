"""No command prints what a terminal would obey, whatever objects say."""

import io
import re
from collections.abc import Callable, Mapping
from typing import Any

import msgspec
import pytest
import yaml
from rich.console import Console

from cli.failures import Failure, plainly
from cli.progress import LiveView, PlainView, Row
from cli.tidb.main import parse
from cli.tidb.output import Output
from cli.tidb.session import Session
from kube.client import Client
from ports.transport import ByteStream, Request, Response, Transport
from tests.cli.tidb.typing_commands import ThisServer
from tests.operator_world import OperatorWorld
from tests.security.parsed_objects import texts

_HOSTILE = "\x1b[2J\x1b]8;;http://evil.example\x07x\x9b31m\u202e\r[red][link=http://evil.example]:warning:\x7f"
_STYLES = re.compile(r"\x1b\[[0-9;]*m")
_FREE = frozenset({"message", "reason", "note", "image", "imageID", "podIP", "clientURL", "version"})
"""Fields of any object in which a user, a kubelet or a server may write any text."""

_COMMANDS = (
    *(("status",), ("status", "-A"), ("status", "basic"), ("doctor",), ("doctor", "basic"), ("certs", "basic")),
    ("drain", "node-1"),
)


_READERS: Mapping[str, Callable[[str], object]] = {"json": msgspec.json.decode, "yaml": yaml.safe_load}


class Hostile:
    """A transport whose server has hostile texts wherever users or servers may write."""

    def __init__(self, transport: Transport, text: str = _HOSTILE) -> None:
        self._transport = transport
        self._text = text
        self.texts = 0

    def request(self, request: Request) -> Response:
        """See `Transport`."""
        answer = self._transport.request(request)
        if answer.status >= 300 or not answer.body.startswith(b"{"):
            return answer
        body = self._spoilt(msgspec.json.decode(answer.body), free=False)
        return Response(answer.status, answer.headers, msgspec.json.encode(body))

    def stream(self, request: Request, idle_timeout: float) -> ByteStream:
        """See `Transport`."""
        return self._transport.stream(request, idle_timeout)

    def _spoilt(self, node: Any, *, free: bool) -> Any:
        if isinstance(node, str) and free:
            self.texts += 1
            return node + self._text
        if isinstance(node, dict):
            return {
                key: self._spoilt(value, free=key in _FREE or key == "annotations" or (free and key != "labels"))
                for key, value in node.items()
            }
        return [self._spoilt(each, free=free) for each in node] if isinstance(node, list) else node


@pytest.mark.parametrize("form", ["table", "table in colours", "json", "yaml"])
@pytest.mark.parametrize("arguments", _COMMANDS, ids=" ".join)
def test_a_command_prints_printable_text(
    arguments: tuple[str, ...], form: str, running: OperatorWorld, capsys: pytest.CaptureFixture[str]
) -> None:
    hostile = Hostile(running.world.transport())
    command, given, handed_on = parse(arguments)
    output = Output(form.partition(" ")[0], 100, form.endswith("colours"))
    command.run(Session(ThisServer(Client(hostile)), running.clock, output, given.namespace), given, handed_on)
    assert hostile.texts
    printed = capsys.readouterr()
    assert "" == _obeyed(printed.out) + _obeyed(printed.err)
    if form in _READERS and "evil.example" in printed.out:
        assert any(_HOSTILE in text for text in texts(_READERS[form](printed.out)))


def test_a_view_of_progress_shows_printable_text() -> None:
    row = Row("tikv", 0, 1, f"PodsNotReady: {_HOSTILE}")
    for on_terminal in (True, False):
        screen = io.StringIO()
        console = Console(file=screen, force_terminal=on_terminal, width=200)
        with LiveView(console) if on_terminal else PlainView(console) as view:
            view.show(_HOSTILE, [row])
        # what rich itself writes: styles, and where the cursor goes
        shown = re.sub(r"\x1b\[[?0-9;]*[a-zA-Z]|\r", "", screen.getvalue())
        assert "" == _obeyed(shown)
        assert "[red][link=http://evil.example]:warning:" in shown


def test_a_failure_is_reported_in_printable_text(capsys: pytest.CaptureFixture[str]) -> None:
    def fail() -> int:
        raise Failure(_HOSTILE)

    assert 1 == plainly(fail)
    assert "" == _obeyed(capsys.readouterr().err)


def _obeyed(text: str) -> str:
    """Control sequences that a terminal would obey, except styles; returns the reason for a failure."""
    return "".join(each for each in _STYLES.sub("", text) if each != "\n" and not each.isprintable())
