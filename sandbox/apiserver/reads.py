"""Get, list and watch: the objects at a version."""

import base64
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import msgspec

from kube.resources import Resource
from ports.structs import decoder
from sandbox.apiserver import selectors
from sandbox.apiserver.refusals import (
    FieldError,
    Refusal,
    bad_request,
    expired,
    forbidden_field,
    invalid,
    not_found,
    too_large_version,
    unsupported,
)
from sandbox.apiserver.routes import Target, number
from sandbox.apiserver.storage import Storage, Stored, TooOld

_LIST_OPTIONS = Resource("meta.k8s.io", "v1", "", "ListOptions")
_MATCHES = ("Exact", "NotOlderThan")
_EXPIRED_CONTINUE = (
    "The provided continue parameter is too old to display a consistent list result. You can start a new list without "
    "the continue parameter, or use the continue token in this response to retrieve the remainder of the results. "
    "Continuing with the provided token results in an inconsistent list - objects that were created, modified, or "
    "deleted between the time the first chunk was returned and now may show up in the list."
)


@dataclass(frozen=True, slots=True)
class Page:
    """The answer to a list."""

    items: Sequence[Stored]
    version: int
    continue_token: str = ""
    remaining: int | None = None


@dataclass(frozen=True, slots=True)
class WatchStart:
    """The start of a watch: after `version`, once the `initial` objects are sent."""

    version: int
    initial: tuple[Stored, ...]
    announce: bool


class _Token(msgspec.Struct):
    v: str
    rv: int
    start: str


def get(storage: Storage, target: Target, query: Mapping[str, str]) -> Stored:
    """One object. Raises Refusal (404)."""
    _not_from_the_future(storage, _version(query))
    stored = storage.get(target.kind.key, target.key)
    if stored is None:
        raise not_found(target.kind.resource, target.name)
    return stored


def list_page(storage: Storage, target: Target, query: Mapping[str, str]) -> Page:
    """One page of a collection. Raises Refusal: 400, 410 for an outdated version or token, 504 for a future version."""
    selects = selection(target, query)
    limit = number(query, "limit", 0)
    if token := query.get("continue"):
        return _continued(storage, target, selects, token, limit)
    version = _version(query)
    _check_match(query)
    _not_from_the_future(storage, version)
    with storage.lock:
        exact = query.get("resourceVersionMatch") == "Exact"
        at = version if exact and version else storage.version
        try:
            items = storage.list_at(target.kind.key, target.namespace, at)
        except TooOld as error:
            raise expired(f"The resourceVersion for the provided list is too old: {at} ({error.oldest})") from error
    return _page([stored for stored in items if selects(stored)], at, limit, counted=selects is selectors.everything)


def watch_start(storage: Storage, target: Target, query: Mapping[str, str]) -> WatchStart:
    """The start of a watch. Raises Refusal (400, 422, 504)."""
    selects = selection(target, query)
    _watchable_version(query)
    initial_events, bookmarks = query.get("sendInitialEvents"), wants_bookmarks(query)
    _check_initial_events(query)
    version = _version(query)
    synthetic = initial_events == "true" or (initial_events is None and not version)
    with storage.lock:
        if not synthetic:
            return WatchStart(version or storage.version, (), announce=False)
        items = storage.objects(target.kind.key, target.namespace)
        chosen = tuple(stored for stored in items if selects(stored))
        return WatchStart(storage.version, chosen, announce=initial_events == "true" and bookmarks)


def wants_bookmarks(query: Mapping[str, str]) -> bool:
    """True if a watch requests bookmarks."""
    return query.get("allowWatchBookmarks") in ("true", "1")


def selection(target: Target, query: Mapping[str, str]) -> selectors.Predicate:
    """The selectors of a list or watch; a watch of one name is a field selector. Raises Refusal (400)."""
    fields = query.get("fieldSelector", "")
    return selectors.parse(query.get("labelSelector", ""), fields, target.kind.fields)


def _page(items: list[Stored], version: int, limit: int, *, counted: bool) -> Page:
    if not limit or len(items) <= limit:
        return Page(items, version)
    token = _Token("meta.k8s.io/v1", version, items[limit - 1].key + "\0")
    return Page(items[:limit], version, _encode(token), len(items) - limit if counted else None)


def _continued(storage: Storage, target: Target, selects: Callable[[Stored], bool], text: str, limit: int) -> Page:
    token = _decode(text)
    with storage.lock:
        version = storage.version if token.rv < 0 else token.rv
        try:
            items = storage.list_at(target.kind.key, target.namespace, version)
        except TooOld as error:
            raise _expired_token(token) from error
    rest = [stored for stored in items if stored.key >= token.start and selects(stored)]
    return _page(rest, version, limit, counted=selects is selectors.everything)


def _expired_token(token: _Token) -> Refusal:
    """410, with a token in its metadata that continues inconsistently."""
    refusal = expired(_EXPIRED_CONTINUE)
    refusal.metadata = {"continue": _encode(_Token(token.v, -1, token.start))}
    return refusal


def _encode(token: _Token) -> str:
    return base64.urlsafe_b64encode(msgspec.json.encode(token)).decode().rstrip("=")


def _decode(text: str) -> _Token:
    try:
        raw = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
        return decoder(_Token).decode(raw)
    except (ValueError, msgspec.DecodeError) as error:
        raise bad_request(f"invalid continue token: continue key is not valid: {error}") from error


def _version(query: Mapping[str, str]) -> int:
    text = query.get("resourceVersion") or "0"
    if not text.isdecimal():
        raise bad_request(f"invalid resource version: {_no_version(text)}")
    return int(text)


def _watchable_version(query: Mapping[str, str]) -> None:
    """Check the version; a watch answers 500 where a list answers 400. Raises Refusal."""
    text = query.get("resourceVersion") or "0"
    if not text.isdecimal():
        raise Refusal(500, "", _no_version(text))


def _no_version(text: str) -> str:
    return f'resourceVersion: Invalid value: "{text}": strconv.ParseUint: parsing "{text}": invalid syntax'


def _not_from_the_future(storage: Storage, version: int) -> None:
    if version > (current := storage.version):
        raise too_large_version(version, current)


def _check_match(query: Mapping[str, str]) -> None:
    match, version = query.get("resourceVersionMatch", ""), query.get("resourceVersion", "")
    errors: list[FieldError] = []
    if match and not version:
        errors.append(
            forbidden_field(
                "resourceVersionMatch", "resourceVersionMatch is forbidden unless resourceVersion is provided"
            )
        )
    if match and match not in _MATCHES:
        errors.append(unsupported("resourceVersionMatch", match, ("Exact", "NotOlderThan", "")))
    if match == "Exact" and version == "0":
        errors.append(
            forbidden_field(
                "resourceVersionMatch",
                'resourceVersionMatch "exact" is forbidden for resourceVersion "0"',
            )
        )
    if errors:
        raise _invalid_options(errors)


def _check_initial_events(query: Mapping[str, str]) -> None:
    match = query.get("resourceVersionMatch", "")
    errors: list[FieldError] = []
    if "sendInitialEvents" not in query:
        if match:
            why = "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided"
            errors.append(forbidden_field("resourceVersionMatch", why))
    elif match != "NotOlderThan":
        why = "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"
        errors.append(forbidden_field("resourceVersionMatch", why))
    if errors:
        raise _invalid_options(errors)


def _invalid_options(errors: list[FieldError]) -> Refusal:
    return invalid(_LIST_OPTIONS, "", errors)
