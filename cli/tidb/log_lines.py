"""Lines of several logs, one log after another, or as they arrive."""

import queue
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass
from threading import Thread

import msgspec

from cli.tidb.output import Output
from kube.client import Client
from kube.errors import ApiError, Forbidden, Unauthorized
from kube.objects import Object
from ports.foreign_text import printable
from ports.transport import ByteStream, TransportError

Say = Callable[["Source", str], None]
"""Prints a line of a source."""


@dataclass(frozen=True, slots=True)
class Source:
    """A container of a pod."""

    pod: Object
    container: str

    @property
    def name(self) -> str:
        """The prefix of its lines."""
        return f"{self.pod.metadata.name} {self.container}"


def printer(output: Output, *, with_names: bool) -> Say:
    """Prints lines, prefixed with their sources if there are several, or as objects."""

    def say(source: Source, line: str) -> None:
        if not output.is_for_people:
            shown = {"pod": source.pod.metadata.name, "container": source.container, "line": line}
            line = msgspec.json.encode(shown).decode()
        elif with_names:
            line = f"[{source.name}] {line}"
        print(line)

    return say


def one_after_another(client: Client, sources: Sequence[Source], options: Mapping[str, str], say: Say) -> int:
    """Print the existing lines; exit code 1 if no log can be read. Raises Forbidden, Unauthorized."""
    opened = 0
    for source in sources:
        stream = _open(client, source, options)
        if stream is None:
            continue
        opened += 1
        try:
            with closing(stream):
                for line in lines(stream):
                    say(source, line)
        except TransportError as error:
            _complain(source, f"the log breaks off: {error}")
    return 0 if opened else 1


def follow(client: Client, sources: Sequence[Source], options: Mapping[str, str], say: Say) -> int:
    """Print lines as they arrive until all logs have ended; return the exit code as above. Raises like it."""
    coming: queue.Queue[tuple[Source, str | None]] = queue.Queue()
    with ExitStack() as open_ones:
        streams = {source: stream for source in sources if (stream := _open(client, source, options)) is not None}
        threads = [
            Thread(target=_read, args=(source, stream, coming), name=f"log {source.name}")
            for source, stream in streams.items()
        ]
        for stream, thread in zip(streams.values(), threads, strict=True):
            thread.start()
            open_ones.callback(thread.join)
            open_ones.callback(stream.abort)
        left = len(threads)
        while left:
            source, line = coming.get()
            if line is None:
                left -= 1
                continue
            say(source, line)
            if coming.empty():
                sys.stdout.flush()
    return 0 if streams else 1


def _open(client: Client, source: Source, options: Mapping[str, str]) -> ByteStream | None:
    """A log; None, with a message, if it cannot be read, e.g. because the pod has not started or its node is lost.

    Raises Forbidden and Unauthorized, which concern all logs.
    """
    meta = source.pod.metadata
    try:
        return client.log(meta.name, meta.namespace, container=source.container, **options)
    except (Forbidden, Unauthorized):
        raise
    except ApiError as error:
        _complain(source, error.message)
    except TransportError as error:
        _complain(source, str(error))
    return None


def _complain(source: Source, why: str) -> None:
    """Report on stderr which log is not read, or not read to its end."""
    print(f"{source.name}: {printable(why)}", file=sys.stderr)


def _read(source: Source, stream: ByteStream, into: "queue.Queue[tuple[Source, str | None]]") -> None:
    try:
        with closing(stream):
            for line in lines(stream):
                into.put((source, line))
    except TransportError as error:
        into.put((source, f"({error})"))
    finally:
        into.put((source, None))


def lines(stream: ByteStream) -> Iterator[str]:
    """The lines of a text, without their ends. Raises TransportError."""
    pending = b""
    for chunk in stream:
        *whole, pending = (pending + chunk).split(b"\n")
        for line in whole:
            yield line.decode(errors="replace")
    if pending:
        yield pending.decode(errors="replace")
