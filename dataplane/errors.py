"""What can go wrong between the operator and a component of the data plane (dataplane-apis.md 2, 3.1).

    DataPlaneError
    ├── Unavailable            nobody answered, or the answer was 503 or "no leader": ask again later
    ├── AddressNotUnderstood   PD reports an address that looks like one of the cluster's pods, but is written otherwise
    ├── NotInCluster           a server announces an address that does not belong to the cluster: nothing was sent
    ├── BadTlsMaterial         the certificates of the cluster cannot be used: nothing was sent
    └── ApiError               the component answered with something else than success
        ├── NotBootstrapped    PD waits for its first TiKV
        ├── NotFound           404
        ├── Conflict           the state of the component forbids it: 409, 410, 412, and what PD refuses by rule
        └── MalformedAnswer    a success whose body is not what the API promises

Messages name method, URL and status. They quote what the server said where that is an error in a documented form, in
at most 200 printable characters; of anything else they give the size (docs/security.md). A write that failed with
Unavailable may have been carried out, unless `sent` is False.
"""

import re

import msgspec

from ports.foreign_text import shortened
from ports.structs import UNREADABLE
from ports.transport import (
    ConnectionRefused,
    RemoteError,
    RequestTimeout,
    Response,
    TlsError,
    TransportClosed,
    TransportError,
)

_NOT_BOOTSTRAPPED = b"TiKV cluster not bootstrapped"
_REFUSALS = (b"ErrStoresNotEnough", b"ErrEtcdMemberRemove", b"ErrStoreDestroyed", b"no valid secondary")

_PLAIN_ERRORS = re.compile(
    rb"\s*(\[(PD|CDC|DM):\w+:\w+\][^\n]*|404 page not found|no leader|redirect finds no leader"
    rb"|not support microservice|TiKV cluster not bootstrapped[^\n]*)\s*"
)
"""The errors that PD, TiCDC and DM send as plain text; all others are JSON."""

_SAID_IN = ("msg", "message", "error_msg", "error", "reason")
"""The fields in which the components say what is wrong."""


class DataPlaneError(RemoteError):
    """Raised when a call to a component did not succeed."""


class BadTlsMaterial(DataPlaneError):
    """Raised when a cluster's CA, certificate or key cannot be used."""


class AddressNotUnderstood(DataPlaneError):
    """Raised when an answer names what may or may not be a pod of the cluster: nothing can be concluded from it."""


class NotInCluster(DataPlaneError):
    """Raised when an address that a server announces does not belong to the cluster: it is not dialled."""


class Unavailable(DataPlaneError):
    """Raised when a component gives no answer, or says that it cannot answer now.

    `cause` is the transport's error, if there was one. `sent` is False when the request surely did not arrive.
    """

    def __init__(self, method: str, url: str, reason: str, cause: TransportError | None = None) -> None:
        super().__init__(f"{method} {url}: {reason}")
        self.method = method
        self.url = url
        self.cause = cause
        self.sent = not isinstance(cause, ConnectionRefused | TlsError | TransportClosed)


class ApiError(DataPlaneError):
    """Raised when a component answers with something else than success; `body` is what it said."""

    def __init__(self, method: str, url: str, status: int, body: bytes = b"", reason: str = "") -> None:
        text = f"{method} {url}: {reason or f'error response {status}'}"
        super().__init__(f"{text}: {said(body)}" if body.strip() else text)
        self.method = method
        self.url = url
        self.status = status


class NotBootstrapped(ApiError):
    """Raised by PD's store, label and scheduler routes before the first TiKV has started."""


class NotFound(ApiError):
    """Raised when what was asked for does not exist."""


class Conflict(ApiError):
    """Raised when the state of the component forbids what was asked."""


class MalformedAnswer(ApiError):
    """Raised when an answer is not what the API promises; the message names the field."""


_BY_STATUS = {404: NotFound, 409: Conflict, 410: Conflict, 412: Conflict}


def unavailable(error: TransportError) -> Unavailable:
    """The error for a request that got no answer.

    How long it was waited for is left out: that differs from one time to the next, and the text ends up in a condition.
    """
    reason = "no answer in time" if isinstance(error, RequestTimeout) else error.cause
    return Unavailable(error.method, error.url, reason, error)


def error_from_answer(method: str, url: str, answer: Response) -> DataPlaneError:
    """The error for an answer that is no success."""
    if answer.status == 503:
        return Unavailable(method, url, f"error response 503: {said(answer.body)}")
    if _NOT_BOOTSTRAPPED in answer.body:
        return NotBootstrapped(method, url, answer.status, answer.body)
    if any(code in answer.body for code in _REFUSALS):
        return Conflict(method, url, answer.status, answer.body)
    return _BY_STATUS.get(answer.status, ApiError)(method, url, answer.status, answer.body)


def misread(body: bytes, error: Exception) -> str:
    """What is wrong with an answer that could not be decoded; it quotes nothing."""
    if isinstance(error, RecursionError):
        return f"answered with {len(body)} bytes that are nested too deeply"
    if not isinstance(error, msgspec.ValidationError):
        return f"answered with {len(body)} bytes that are not JSON"
    return f"malformed answer: {error}"


_ERROR = msgspec.json.Decoder(str | dict[str, msgspec.Raw])
_TEXT = msgspec.json.Decoder(str)


def said(body: bytes) -> str:
    """What a server said, if it is an error in a documented form, else what the answer looks like."""
    if _PLAIN_ERRORS.fullmatch(body):
        return shortened(body.decode("utf-8", "replace"))
    try:
        found = _ERROR.decode(body)
    except UNREADABLE as error:
        is_json = isinstance(error, msgspec.ValidationError)
        return f"answered with {len(body)} bytes that are {'no error message' if is_json else 'not JSON'}"
    text = found if isinstance(found, str) else next(filter(None, (_text(found.get(name)) for name in _SAID_IN)), "")
    return shortened(text) if text else f"answered with {len(body)} bytes that are no error message"


def _text(value: msgspec.Raw | None) -> str:
    """The string that is the value of a field; empty for anything else."""
    try:
        return _TEXT.decode(value) if value else ""
    except UNREADABLE:
        return ""
