"""What can go wrong between the operator and a component of the data plane (dataplane-apis.md 2, 3.1).

    DataPlaneError
    ├── Unavailable            nobody answered, or the answer was 503 or "no leader": ask again later
    ├── AddressNotUnderstood   PD reports an address that looks like one of the cluster's pods, but is written otherwise
    ├── BadTlsMaterial         the certificates of the cluster cannot be used: nothing was sent
    └── ApiError               the component answered with something else than success
        ├── NotBootstrapped    PD waits for its first TiKV
        ├── NotFound           404
        ├── Conflict           the state of the component forbids it: 409, 410, 412, and what PD refuses by rule
        └── MalformedAnswer    a success whose body is not what the API promises

Messages name method, URL, status and body. A write that failed with Unavailable may have been carried out,
unless `sent` is False.
"""

from ports.transport import ConnectionRefused, RequestTimeout, Response, TlsError, TransportClosed, TransportError

_NOT_BOOTSTRAPPED = "TiKV cluster not bootstrapped"
_REFUSALS = ("ErrStoresNotEnough", "ErrEtcdMemberRemove", "ErrStoreDestroyed", "no valid secondary")
_MAX_TEXT = 2048


class DataPlaneError(Exception):
    """Raised when a call to a component did not succeed."""


class BadTlsMaterial(DataPlaneError):
    """Raised when a cluster's CA, certificate or key cannot be used."""


class AddressNotUnderstood(DataPlaneError):
    """Raised when an answer names what may or may not be a pod of the cluster: nothing can be concluded from it."""


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
    """Raised when a component answers with something else than success."""

    def __init__(self, method: str, url: str, status: int, body: str, reason: str = "") -> None:
        text = f"{method} {url}: {reason or f'error response {status}'}"
        super().__init__(f"{text}, body response: {body[:_MAX_TEXT].strip()}" if body.strip() else text)
        self.method = method
        self.url = url
        self.status = status
        self.body = body


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
    body = answer.body.decode("utf-8", "replace")
    if answer.status == 503:
        return Unavailable(method, url, f"error response 503, body response: {body[:_MAX_TEXT].strip()}")
    if _NOT_BOOTSTRAPPED in body:
        return NotBootstrapped(method, url, answer.status, body)
    if any(code in body for code in _REFUSALS):
        return Conflict(method, url, answer.status, body)
    return _BY_STATUS.get(answer.status, ApiError)(method, url, answer.status, body)
