"""The changefeeds of TiCDC's OpenAPI v2, which the owner answers. They replicate no tables of the sandbox.

Strict as documented: an unknown field is an error, an update needs a changefeed that is stopped or failed, and answers
mask keys.
"""

import json
import re
from datetime import datetime
from typing import Any
from urllib.parse import urlsplit

from apis import tso
from ports.transport import Response
from sandbox.dataplane.ticdc.book import Book

_ID = re.compile(r"[a-zA-Z0-9]+(-[a-zA-Z0-9]+)*")
_MASKED = re.compile(r"((?:secret-)?access-key=)[^&]*")
_SCHEMES = ("s3", "gcs", "gs", "azblob", "file", "mysql", "tidb", "kafka", "blackhole")
_OF_CREATION = {"changefeed_id": str, "sink_uri": str, "replica_config": dict, "start_ts": int, "target_ts": int}
_OF_UPDATE = {"sink_uri": str, "replica_config": dict, "target_ts": int}
_RESTING = ("stopped", "failed")
_INVALID = "CDC:ErrAPIInvalidParam"


def answer(method: str, path: str, body: bytes, book: Book, now: datetime) -> Response | None:
    """The answer to a request below `/api/v2/changefeeds`; None if there is no such route."""
    name, _, verb = path.strip("/").partition("/")
    match method, name, verb:
        case "POST", "", "":
            return _create(body, book, now)
        case ("GET" | "PUT", _, "") | ("POST", _, "pause" | "resume") if name:
            feed = book.feed(name)
            if feed is None:
                return error(400, "CDC:ErrChangeFeedNotExists", f"changefeed not exists, {name}")
            if method == "POST":
                return _switched(name, feed, book, now, runs=verb == "resume")
            return _json(_shown(name, feed, now)) if method == "GET" else _updated(name, feed, body, book)
    return None


def _create(body: bytes, book: Book, now: datetime) -> Response:
    given = _read(body, _OF_CREATION)
    name = (given or {}).get("changefeed_id", "")
    if given is None or not _ID.fullmatch(name):
        return error(400, _INVALID, "invalid api parameter")
    if book.feed(name) is not None:
        return error(400, "CDC:ErrChangeFeedAlreadyExists", f"changefeed already exists, {name}")
    if refusal := _refusal(given):
        return refusal
    begin = given.get("start_ts") or tso.of_time(now)
    separator = ((given.get("replica_config") or {}).get("sink") or {}).get("date_separator", "day")
    feed = {"tables": 0, "sink": given["sink_uri"], "state": "normal", "checkpoint": begin, "separator": separator}
    book.record_feed(name, feed | {"begin": begin})
    return _json(_shown(name, feed, now))


def _updated(name: str, feed: dict[str, Any], body: bytes, book: Book) -> Response:
    given = _read(body, _OF_UPDATE)
    if given is None:
        return error(400, _INVALID, "invalid api parameter")
    if feed["state"] not in _RESTING:
        return error(
            400, "CDC:ErrChangefeedUpdateRefused", "can only update changefeed config when it is stopped or failed"
        )
    if refusal := _refusal({"sink_uri": feed["sink"]} | given):
        return refusal
    book.record_feed(name, feed | {"sink": given.get("sink_uri", feed["sink"])})
    return _json({})


def _switched(name: str, feed: dict[str, Any], book: Book, now: datetime, *, runs: bool) -> Response:
    state = {"state": "normal", "error": None} if runs else {"state": "stopped", "checkpoint": tso.of_time(now)}
    book.record_feed(name, feed | state)
    return _json({})


def _refusal(given: dict[str, Any]) -> Response | None:
    uri = given.get("sink_uri", "")
    if urlsplit(uri).scheme in _SCHEMES:
        return None
    return error(400, "CDC:ErrSinkURIInvalid", f"sink uri invalid '{uri}'")


def _read(body: bytes, fields: dict[str, type]) -> dict[str, Any] | None:
    """The fields of a body; None if it is no object of these fields."""
    try:
        given = json.loads(body)
    except ValueError:
        return None
    if not isinstance(given, dict) or any(not isinstance(value, fields.get(key, ())) for key, value in given.items()):
        return None
    return given


def _shown(name: str, feed: dict[str, Any], now: datetime) -> dict[str, Any]:
    state = feed.get("state", "normal")
    checkpoint = tso.of_time(now) if state == "normal" else feed.get("checkpoint", 0)
    sink = _MASKED.sub(r"\1xxxxx", feed.get("sink", ""))
    shown = {"id": name, "namespace": "default", "state": state, "sink_uri": sink, "checkpoint_ts": checkpoint}
    return shown | {"checkpoint_time": f"{tso.time_of(checkpoint):%Y-%m-%d %H:%M:%S}", "error": feed.get("error")}


def _json(body: object) -> Response:
    return Response(200, {"content-type": "application/json; charset=utf-8"}, json.dumps(body).encode())


def error(status: int, code: str, message: str) -> Response:
    """An error in TiCDC's form."""
    body = json.dumps({"error_msg": f"[{code}]{message}", "error_code": code}).encode()
    return Response(status, {"content-type": "application/json; charset=utf-8"}, body)
