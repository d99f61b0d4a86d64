"""Errors between the operator and a component of the data plane (dataplane-apis.md 2, 3.1).

    DataPlaneError
    ├── Unavailable            no answer, or the answer was 503 or "no leader": try again later
    │   └── SchedulersUnknown  PD's leader runs no schedulers, as for a while after its election
    ├── AddressNotUnderstood   PD reports an address that resembles a pod of the cluster but has an unknown form
    ├── NotInCluster           a server announces an address outside the cluster: nothing was sent
    ├── BadTlsMaterial         the certificates of the cluster cannot be used: nothing was sent
    └── ApiError               the component answered with an error
        ├── NotBootstrapped    PD waits for its first TiKV
        ├── NotFound           404
        ├── Conflict           the state of the component forbids the request: 409, 410, 412, and refusals by PD's rules
        └── MalformedAnswer    a success whose body violates the API

Messages name method, URL and status. They quote at most 200 printable characters of an error in a documented form; of
any other answer they give only the size (docs/security.md). A write that failed with Unavailable may have been applied,
unless `sent` is False.
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
"""The JSON fields in which components report an error."""


class DataPlaneError(RemoteError):
    """Raised when a call to a component fails."""


class BadTlsMaterial(DataPlaneError):
    """Raised when the CA, the certificate or the key of a cluster cannot be used."""


class AddressNotUnderstood(DataPlaneError):
    """Raised when an address in an answer may or may not be a pod of the cluster, so that the answer proves nothing."""


class NotInCluster(DataPlaneError):
    """Raised when a server announces an address outside the cluster. The operator does not dial it."""


class Unavailable(DataPlaneError):
    """Raised when a component does not answer, or answers that it cannot serve now.

    `cause` is the transport's error, if any. `sent` is False if the request certainly did not arrive.
    """

    def __init__(self, method: str, url: str, reason: str, cause: TransportError | None = None) -> None:
        super().__init__(f"{method} {url}: {reason}")
        self.method = method
        self.url = url
        self.cause = cause
        self.sent = not isinstance(cause, ConnectionRefused | TlsError | TransportClosed)


class SchedulersUnknown(Unavailable):
    """Raised while PD runs no schedulers: its leader may not have loaded those that evict leaders."""


class ApiError(DataPlaneError):
    """Raised when a component answers with an error; `body` is its answer."""

    def __init__(self, method: str, url: str, status: int, body: bytes = b"", reason: str = "") -> None:
        text = f"{method} {url}: {reason or f'error response {status}'}"
        super().__init__(f"{text}: {error_text(body)}" if body.strip() else text)
        self.method = method
        self.url = url
        self.status = status


class NotBootstrapped(ApiError):
    """Raised for PD's store, label and scheduler routes before the first TiKV has started."""


class NotFound(ApiError):
    """Raised when the requested object does not exist."""


class Conflict(ApiError):
    """Raised when the state of the component forbids the request."""


class MalformedAnswer(ApiError):
    """Raised when an answer violates the API; the message names the field."""


_BY_STATUS = {404: NotFound, 409: Conflict, 410: Conflict, 412: Conflict}


def unavailable(error: TransportError) -> Unavailable:
    """The error for a request without an answer.

    The message omits the elapsed time, because it becomes the text of a condition and must not differ each time.
    """
    reason = "no answer in time" if isinstance(error, RequestTimeout) else error.cause
    return Unavailable(error.method, error.url, reason, error)


def error_from_answer(method: str, url: str, answer: Response) -> DataPlaneError:
    """The error for an unsuccessful answer."""
    if answer.status == 503:
        return Unavailable(method, url, f"error response 503: {error_text(answer.body)}")
    if _NOT_BOOTSTRAPPED in answer.body:
        return NotBootstrapped(method, url, answer.status, answer.body)
    if any(code in answer.body for code in _REFUSALS):
        return Conflict(method, url, answer.status, answer.body)
    return _BY_STATUS.get(answer.status, ApiError)(method, url, answer.status, answer.body)


def misread(body: bytes, error: Exception) -> str:
    """Why an answer could not be decoded, without a quotation of it."""
    if isinstance(error, RecursionError):
        return f"answered with {len(body)} bytes that are nested too deeply"
    if not isinstance(error, msgspec.ValidationError):
        return f"answered with {len(body)} bytes that are not JSON"
    # the pattern itself means nothing to a reader
    return f"malformed answer: {_MISMATCH.sub('Expected a text without control characters', str(error))}"


_MISMATCH = re.compile(r"^Expected `str` matching regex '.*?'(?= - at |$)")
"""The error of msgspec for a text that does not have the form of `dataplane.answers.Name`."""

_ERROR = msgspec.json.Decoder(str | dict[str, msgspec.Raw])
_TEXT = msgspec.json.Decoder(str)


def error_text(body: bytes) -> str:
    """The server's error text if it has a documented form, else a description of the answer's size and type."""
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
    """The string value of a field; empty for any other value."""
    try:
        return _TEXT.decode(value) if value else ""
    except UNREADABLE:
        return ""
