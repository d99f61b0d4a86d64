"""`logs`: of one pod, of a component, of a whole cluster."""

from collections.abc import Callable, Iterator, Mapping

import msgspec
import pytest

from cli.failures import Failure
from cli.tidb.log_lines import Source, follow, lines, one_after_another, printer
from cli.tidb.output import Output
from kube.client import Client
from kube.errors import Forbidden, error_from_answer
from ports.transport import ByteStream, ConnectionLost, Request, RequestTimeout, Response
from tests.cli.tidb.objects import pod
from tests.cli.tidb.typing_commands import Terminal

Read = Callable[..., int]


class Chunks:
    """A stream that arrives in pieces."""

    @property
    def status(self) -> int:
        """See `ByteStream`."""
        return 200

    @property
    def headers(self) -> Mapping[str, str]:
        """See `ByteStream`."""
        return {}

    def __init__(self, *chunks: bytes, fails: bool = False) -> None:
        self._chunks, self._fails = chunks, fails

    def __iter__(self) -> Iterator[bytes]:
        yield from self._chunks
        if self._fails:
            raise ConnectionLost("GET", "log", "gone")

    def abort(self) -> None:
        """See `ByteStream`."""

    close = abort


def test_lines_do_not_depend_on_the_chunks_of_the_stream() -> None:
    stream = Chunks(b"one\ntw", b"o\n\n", b"th\xff", b"ree")
    assert ["one", "two", "", "th\N{REPLACEMENT CHARACTER}ree"] == list(lines(stream))


@pytest.mark.slow
def test_the_log_of_one_pod_has_no_prefix(terminal: Terminal) -> None:
    shown = terminal.type("logs", "basic", "basic-pd-0")
    assert shown
    assert not shown.startswith("[")


def test_lines_of_several_pods_begin_with_pod_and_container(terminal: Terminal) -> None:
    shown = terminal.type("logs", "basic").splitlines()
    assert {"basic-discovery", "basic-pd", "basic-tidb", "basic-tikv"} >= {
        line[1:].split()[0].rpartition("-")[0].removesuffix("-btkgxmjxdm") for line in shown
    }
    assert any(line.startswith("[basic-tikv-0 tikv] ") for line in shown)


def test_flags_select_the_container_the_lines_and_the_format(terminal: Terminal) -> None:
    whole = terminal.type("logs", "basic", "tikv").splitlines()
    assert whole[-1:] == terminal.type("logs", "basic", "tikv", "--tail", "1").splitlines()
    assert whole[-1] in terminal.type("logs", "basic", "tikv", "--since", "1h")
    line = msgspec.json.decode(terminal.type("logs", "basic", "tikv", "--tail", "1", "-o", "json"))
    assert {"pod": "basic-tikv-0", "container": "tikv", "line": whole[-1]} == line
    assert whole[-1] in terminal.type("logs", "basic", "tikv", "-c", "tikv", "--timestamps", "--all-containers")


@pytest.mark.parametrize(
    "mistake",
    [
        (("basic", "tiflash"), "has no pods tiflash; it has discovery, pd, tikv, tidb"),
        (("basic", "tikv", "-c", "sidecar"), "pod basic-tikv-0 has no container sidecar; it has tikv"),
        (("basic", "--since", "soon"), "--since soon: "),
        (("basic", "-o", "yaml"), "logs are lines"),
    ],
)
def test_an_unknown_name_is_reported_with_the_existing_ones(
    terminal: Terminal, mistake: tuple[tuple[str, ...], str]
) -> None:
    arguments, told = mistake
    with pytest.raises(Failure) as failure:
        terminal.type("logs", *arguments)
    assert told in str(failure.value)


def test_reports_a_container_without_a_log_and_fails_if_no_container_has_one(terminal: Terminal) -> None:
    assert "" == terminal.type("logs", "basic", "basic-tikv-0", "--previous", code=1)
    assert "basic-tikv-0 tikv: previous terminated container" in terminal.complaints


NO_KUBELET = b'{"kind": "Status", "message": "dial tcp 10.0.0.7:10250: i/o timeout", "code": 500}'


class Answer(Chunks):
    """The answer of an API server that cannot reach the kubelet."""

    @property
    def status(self) -> int:
        """See `ByteStream`."""
        return 500


class Talking:
    """A transport of a server whose pods have printed a line; `b` breaks then, and nodes of `lost...` are lost."""

    def request(self, request: Request) -> Response:
        """See `Transport`."""
        raise NotImplementedError

    def stream(self, request: Request, idle_timeout: float) -> ByteStream:
        """See `Transport`."""
        pod = request.url.split("/")[6]
        if pod == "lost-and-told":
            return Answer(NO_KUBELET)
        if pod == "lost":
            raise RequestTimeout("GET", "log", "no answer")
        if pod == "hidden":
            raise error_from_answer(403, b"{}", "GET log")
        return Chunks(f"{pod} began\n".encode(), fails=pod == "b")


def test_follows_logs_concurrently_and_a_broken_stream_does_not_end_the_others(
    capsys: pytest.CaptureFixture[str],
) -> None:
    sources = [Source(pod("tikv", name).object, "tikv") for name in ("a", "b")]
    assert 0 == follow(Client(Talking()), sources, {"follow": "true"}, printer(Output(), with_names=True))
    shown = set(capsys.readouterr().out.splitlines())
    assert {"[a tikv] a began", "[b tikv] b began", "[b tikv] (GET log: gone)"} == shown


@pytest.mark.parametrize("read", [one_after_another, follow])
def test_an_unreadable_log_is_named_and_the_others_are_read(read: Read, capsys: pytest.CaptureFixture[str]) -> None:
    sources = [Source(pod("tikv", name).object, "tikv") for name in ("lost", "lost-and-told", "b", "a")]
    assert 0 == read(Client(Talking()), sources, {}, printer(Output(), with_names=True))
    shown = capsys.readouterr()
    assert {"[a tikv] a began", "[b tikv] b began"} <= set(shown.out.splitlines())
    assert "lost tikv: GET log: no answer" in shown.err
    assert "lost-and-told tikv: dial tcp 10.0.0.7:10250: i/o timeout" in shown.err
    assert "GET log: gone" in shown.out + shown.err


@pytest.mark.parametrize("read", [one_after_another, follow])
def test_logs_fail_if_none_can_be_read_or_the_user_may_read_none(read: Read) -> None:
    lost, hidden = ([Source(pod("tikv", name).object, "tikv")] for name in ("lost", "hidden"))
    assert 1 == read(Client(Talking()), lost, {}, printer(Output(), with_names=True))
    with pytest.raises(Forbidden):
        read(Client(Talking()), hidden, {}, printer(Output(), with_names=True))
