"""The format of the log, and texts that it never contains."""

import io
import json
import logging
import sys
import threading
import warnings
from collections.abc import Iterator
from typing import Any

import pytest
import structlog

from controller_manager.logs import configure_logs, log_uncaught_exceptions
from ports.clock import FakeClock


@pytest.fixture(autouse=True)
def _restored() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level = root.handlers, root.level
    yield
    structlog.reset_defaults()
    root.handlers, root.level = handlers, level
    logging.captureWarnings(False)
    for name in ("urllib3", "requests", "kubernetes", "kubernetes.client.rest"):
        logging.getLogger(name).setLevel(logging.NOTSET)


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def entries(stream: io.StringIO) -> list[dict[str, Any]]:
    return [json.loads(line, parse_constant=_refuse) for line in stream.getvalue().splitlines()]


def _refuse(constant: str) -> None:
    raise AssertionError(f"{constant} is no JSON")


def test_an_event_is_one_line_of_json(clock: FakeClock) -> None:
    stream = io.StringIO()
    configure_logs(0, clock=clock, stream=stream)

    with structlog.contextvars.bound_contextvars(controller="tidbcluster", key="ns/basic"):
        structlog.get_logger("room.module").info("updated", replicas=3)

    assert [
        {
            "timestamp": "2026-01-01T00:00:00.000Z",
            "level": "info",
            "logger": "room.module",
            "event": "updated",
            "controller": "tidbcluster",
            "key": "ns/basic",
            "replicas": 3,
        }
    ] == entries(stream)


def test_a_line_begins_with_when_and_what_and_hides_no_letters(clock: FakeClock) -> None:
    stream = io.StringIO()
    configure_logs(0, clock=clock, stream=stream)

    structlog.get_logger("room").info("patched", change="3 → 4", odd="\udc80", kind="StatefulSet")

    line = stream.getvalue()
    assert line.startswith('{"timestamp": "2026-01-01T00:00:00.000Z", "level": "info", "event": "patched", "kind": "St')
    assert '"3 → 4"' in line
    assert {"odd": "\N{REPLACEMENT CHARACTER}"}.items() <= json.loads(line).items()
    line.encode()


def test_a_terminal_gets_text_for_people(clock: FakeClock) -> None:
    stream = Terminal()
    configure_logs(0, clock=clock, stream=stream)

    try:
        raise ValueError("bad password=hunter2")
    except ValueError:
        structlog.get_logger("room").exception("sync failed")

    assert "sync failed" in stream.getvalue()
    assert "Traceback" in stream.getvalue()
    assert "hunter2" not in stream.getvalue()
    assert not stream.getvalue().startswith("{")


@pytest.mark.parametrize(("verbosity", "levels"), [(0, ["info"]), (3, ["info"]), (4, ["debug", "info"])])
@pytest.mark.rule("3.1")
def test_v_4_is_debug(clock: FakeClock, verbosity: int, levels: list[str]) -> None:
    stream = io.StringIO()
    configure_logs(verbosity, clock=clock, stream=stream)

    log = structlog.get_logger("room")
    log.debug("fine")
    log.info("coarse")

    assert levels == [entry["level"] for entry in entries(stream)]


def test_warnings_of_libraries_are_logged_without_their_secrets(clock: FakeClock) -> None:
    stream = io.StringIO()
    configure_logs(4, clock=clock, stream=stream)

    logging.getLogger("urllib3.connectionpool").debug("GET /")
    logging.getLogger("urllib3.connectionpool").warning("Retrying %s", "https://root:hunter2@pd")

    assert [("warning", "urllib3.connectionpool", "Retrying https://root:[redacted]@pd")] == [
        (entry["level"], entry["logger"], entry["event"]) for entry in entries(stream)
    ]


def test_exceptions_are_rendered_without_their_secrets(clock: FakeClock) -> None:
    stream = io.StringIO()
    configure_logs(0, clock=clock, stream=stream)

    try:
        raise ValueError("Authorization: Bearer abcdef123456")
    except ValueError:
        logging.getLogger("kubernetes").exception("request failed")
        structlog.get_logger("room").exception("sync failed")

    texts = [entry["exception"] for entry in entries(stream)]
    assert [True, True] == ["ValueError" in text and "Traceback" in text for text in texts]
    assert "abcdef123456" not in stream.getvalue()


@pytest.mark.parametrize("error", [RuntimeError("boom"), SystemExit("boom")])
@pytest.mark.rule("TH-19")
def test_the_end_of_a_thread_is_logged_and_reported(
    clock: FakeClock, monkeypatch: pytest.MonkeyPatch, error: BaseException
) -> None:
    monkeypatch.setattr(threading, "excepthook", threading.excepthook)
    monkeypatch.setattr(sys, "excepthook", sys.excepthook)
    stream = io.StringIO()
    configure_logs(0, clock=clock, stream=stream)
    dead: list[str] = []
    log_uncaught_exceptions(dead.append)

    def fail() -> None:
        raise error

    thread = threading.Thread(target=fail, name="dispatcher-pods")
    thread.start()
    thread.join()

    assert ["dispatcher-pods"] == dead
    assert [("critical", "dispatcher-pods")] == [(entry["level"], entry["thread"]) for entry in entries(stream)]
    assert f"{type(error).__name__}: boom" in entries(stream)[0]["exception"]


def test_the_end_of_the_process_is_logged(clock: FakeClock, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threading, "excepthook", threading.excepthook)
    monkeypatch.setattr(sys, "excepthook", sys.excepthook)
    stream = io.StringIO()
    configure_logs(0, clock=clock, stream=stream)
    log_uncaught_exceptions()

    sys.excepthook(KeyboardInterrupt, KeyboardInterrupt(), None)
    sys.excepthook(RuntimeError, RuntimeError("boom"), None)

    assert ["uncaught exception"] == [entry["event"] for entry in entries(stream)]


def test_output_of_print_goes_to_the_log_as_well(clock: FakeClock, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threading, "excepthook", threading.excepthook)
    monkeypatch.setattr(sys, "excepthook", sys.excepthook)
    monkeypatch.setattr(sys, "unraisablehook", sys.unraisablehook)
    stream = io.StringIO()
    with warnings.catch_warnings(action="always"):
        configure_logs(0, clock=clock, stream=stream)
        log_uncaught_exceptions()
        warnings.warn("the token=hunter2 is old", DeprecationWarning, stacklevel=1)
        spoilt = Spoilt()
        del spoilt

    warned, ignored = entries(stream)
    assert ("warning", "py.warnings") == (warned["level"], warned["logger"])
    assert "DeprecationWarning: the token=[redacted] is old" in warned["event"]
    assert ("error", "exception ignored") == (ignored["level"], ignored["event"])
    assert "RuntimeError: in the end" in ignored["exception"]


class Spoilt:
    def __del__(self) -> None:
        raise RuntimeError("in the end")


def test_a_line_that_cannot_be_rendered_is_replaced_by_one_that_names_it(clock: FakeClock) -> None:
    stream = io.StringIO()
    configure_logs(0, clock=clock, stream=stream)

    logging.getLogger("library").warning("%s and %s", "one")  # noqa: PLE1206  (what is tried)
    structlog.get_logger("room").info("odd", seconds=float("inf"), pairs={("ns", "basic"): float("nan")})

    broken, odd = entries(stream)
    assert ("error", "library", "%s and %s") == (broken["level"], broken["of"], broken["line"])
    assert ("inf", {"('ns', 'basic')": "nan"}) == (odd["seconds"], odd["pairs"])


def test_a_line_that_a_stream_cannot_encode_is_logged_in_ascii(clock: FakeClock) -> None:
    written = io.BytesIO()
    configure_logs(0, clock=clock, stream=io.TextIOWrapper(written, encoding="ascii"))

    structlog.get_logger("room").info("patched", change="3 → 4", password="hunter2")

    (line,) = map(json.loads, written.getvalue().decode("ascii").splitlines())
    assert ("error", "room") == (line["level"], line["of"])
    assert "UnicodeEncodeError" in line["error"]
    assert "3 → 4" in line["line"]
    assert "hunter2" not in line["line"]
