"""Errors for refusals of the API server (informers-workqueue.md REST-9, REST-10).

ApiError                 any status >= 400 that no class below names
├── BadRequest           400 BadRequest
├── Unauthorized         401 Unauthorized
├── Forbidden            403 Forbidden
├── NotFound             404 NotFound
├── MethodNotAllowed     405 MethodNotAllowed
├── AlreadyExists        409 AlreadyExists
├── Conflict             409 Conflict
├── Expired              410 Expired or Gone
├── Invalid              422 Invalid
├── TooManyRequests      429 TooManyRequests
├── InternalError        500 InternalError
└── ServerTimeout        504 Timeout, ServerTimeout
"""

from __future__ import annotations

import re

import msgspec

from ports.structs import UNREADABLE


class StatusCause(msgspec.Struct, frozen=True, rename="camel"):
    """One wrong field of a rejected object."""

    reason: str = ""
    message: str = ""
    field: str = ""


class StatusDetails(msgspec.Struct, frozen=True, rename="camel"):
    """The details of a Status."""

    name: str = ""
    group: str = ""
    kind: str = ""
    causes: tuple[StatusCause, ...] = ()
    retry_after_seconds: int = 0


class Status(msgspec.Struct, frozen=True, rename="camel"):
    """The body of a refusal; also the object of an ERROR watch event."""

    kind: str = ""
    message: str = ""
    reason: str = ""
    code: int = 0
    details: StatusDetails | None = None


STATUS = msgspec.json.Decoder(Status)


_WHOLE_OBJECT = re.compile(r'Invalid value: "\{(?:[^"\\]|\\.)*"')
"""Matches the message of a server that cannot decode the result of a patch and quotes the object, secrets included."""


_LONG_VALUE = re.compile(r'"((?:[^"\\]|\\.){120})(?:[^"\\]|\\.){80,}"')
"""Matches a value that is too long for a message, e.g. for a condition."""


class ApiError(Exception):
    """Raised when the API server refuses a request. The message is the server's, prefixed with verb and path.

    A quoted object is removed from it, and long values are cut.
    """

    code: int
    reason: str

    def __init__(self, status: Status, request: str = "") -> None:
        message = _LONG_VALUE.sub(r'"\1…"', _WHOLE_OBJECT.sub("Invalid value", status.message))
        super().__init__(f"{request}: {message}" if request else message)
        self.status = status
        self.request = request
        self.code = status.code
        self.reason = status.reason
        self.message = message
        self.details = status.details or StatusDetails()


class BadRequest(ApiError):
    """Raised when the request itself is malformed."""


class Unauthorized(ApiError):
    """Raised when the credential is missing, wrong or expired."""


class Forbidden(ApiError):
    """Raised when RBAC refuses the verb on the resource; the message names both."""


class NotFound(ApiError):
    """Raised when the object, or its resource, does not exist."""


class MethodNotAllowed(ApiError):
    """Raised when the resource does not support the verb."""


class AlreadyExists(ApiError):
    """Raised on create when an object of that name exists."""


class Conflict(ApiError):
    """Raised when a precondition (resourceVersion, uid) does not hold."""


class Expired(ApiError):
    """Raised when the requested resourceVersion or continue token is too old (REST-10)."""


class Invalid(ApiError):
    """Raised when validation rejects the object; `details.causes` name the fields."""


class TooManyRequests(ApiError):
    """Raised when the server sheds load; `details.retry_after_seconds` is the time to wait."""


class InternalError(ApiError):
    """Raised when the server failed."""


class ServerTimeout(ApiError):
    """Raised when the server timed out. It may have applied the write."""


_BY_REASON: dict[str, type[ApiError]] = {
    "BadRequest": BadRequest,
    "Unauthorized": Unauthorized,
    "Forbidden": Forbidden,
    "NotFound": NotFound,
    "MethodNotAllowed": MethodNotAllowed,
    "AlreadyExists": AlreadyExists,
    "Conflict": Conflict,
    "Expired": Expired,
    "Gone": Expired,
    "Invalid": Invalid,
    "TooManyRequests": TooManyRequests,
    "InternalError": InternalError,
    "Timeout": ServerTimeout,
    "ServerTimeout": ServerTimeout,
}

_BY_CODE: dict[int, type[ApiError]] = {
    400: BadRequest,
    401: Unauthorized,
    403: Forbidden,
    404: NotFound,
    405: MethodNotAllowed,
    409: Conflict,
    410: Expired,
    422: Invalid,
    429: TooManyRequests,
    500: InternalError,
    504: ServerTimeout,
}

_MAX_TEXT = 2048


def error_from_status(status: Status, request: str = "") -> ApiError:
    """The error class for a Status, chosen by reason, or by code if the reason is unknown (REST-10)."""
    cls = _BY_REASON.get(status.reason) or _BY_CODE.get(status.code, ApiError)
    return cls(status, request)


def error_from_answer(code: int, body: bytes, request: str = "") -> ApiError:
    """The error for an HTTP answer; a body that is not a Status contributes at most 2048 characters (REST-9)."""
    try:
        status = STATUS.decode(body)
    except UNREADABLE:
        status = Status()
    if status.kind != "Status":
        text = body.decode("utf-8", "replace")[:_MAX_TEXT].strip()
        status = Status(kind="Status", code=code, message=text or f"the server answered {code} without a body")
    return error_from_status(msgspec.structs.replace(status, code=status.code or code), request)
