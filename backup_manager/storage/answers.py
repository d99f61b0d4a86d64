"""The meaning of the library's errors (obstore, and the Rust crate object_store below it).

Errors are distinguished by the service's code if it sends one, else by the HTTP status. Messages contain only these,
the service's message and the system's error, because the rest of the library's text quotes requests.
"""

import re

from obstore.exceptions import BaseError, PermissionDeniedError, UnauthenticatedError

from backup_manager.storage.errors import (
    AccessDenied,
    BadCredentials,
    BucketMissing,
    ObjectMissing,
    StorageError,
    Unreachable,
)
from backup_manager.storage.location import Kind, Location

LIBRARY_ERRORS = (BaseError, OSError, ValueError)
"""The library's exceptions; a missing object is a FileNotFoundError, an impossible key a ValueError."""

_STATUS = re.compile(r"status code: (\d{3})")
_CODE = re.compile(r"<Code>\s*([\w.]+)\s*</Code>|\(code: (\w+)\)")
_MESSAGE = re.compile(r"<Message>\s*([^<\n]*)")
_OF_SYSTEM = re.compile(r"([\w ]+) \(os error \d+\)")
_TOKEN = re.compile(
    r"token request|169\.254\.169\.254|metadata\.google|credential error|Invalid Access Key", re.IGNORECASE
)

_NO_BUCKET = frozenset({"NoSuchBucket", "ContainerNotFound", "InvalidBucketName"})
_NOT_KNOWN = frozenset(
    {
        "InvalidAccessKeyId",
        "SignatureDoesNotMatch",
        "AuthorizationFailure",
        "AuthenticationFailed",
        "InvalidToken",
        "ExpiredToken",
        "TokenRefreshRequired",
        "NoAuthenticationInformation",
    }
)
_DENIED = frozenset({"AccessDenied", "AuthorizationPermissionMismatch", "InsufficientAccountPermissions"})
_LONGEST = 200

_OAUTH_CODE = re.compile(r'"error"\s*:\s*"(\w+)"')
_OAUTH_MESSAGE = re.compile(r'"error_description"\s*:\s*"((?:[^"\\]|\\.)*)"')
_OAUTH_IDS = re.compile(r"\s*(?:Trace ID|Correlation ID|Timestamp):.*", re.DOTALL)
"""Error codes of a token service (RFC 6749, 5.2); Azure appends ids of the request."""
_METADATA = ("169.254.169.254", "metadata.google")
"""The address of the credentials of the machine, used if the spec names none."""
_ASKED = re.compile(r"performing \w+ (https?://[^/\s?]+)")

_CHECK = {
    Kind.S3: "check access_key and secret_key in the Secret that {field}.secretName names, or the role of the pod's "
    "service account",
    Kind.GCS: "check the key credentials in the Secret that {field}.secretName names, or the pod's workload identity",
    Kind.AZURE: "check AZURE_CLIENT_ID, AZURE_CLIENT_SECRET and AZURE_TENANT_ID, or AZURE_STORAGE_KEY, in the Secret "
    "that {field}.secretName names, or {field}.sasToken",
}
"""The way out if a service has refused credentials."""
_SERVICES = {Kind.S3: "S3", Kind.GCS: "Google Cloud", Kind.AZURE: "Azure"}

_CREDENTIALS = {
    Kind.S3: "secretName must name a Secret with the keys access_key and secret_key, "
    "or the service account of the pod must have a role",
    Kind.GCS: "secretName must name a Secret with the key credentials, "
    "or the service account of the pod must have a workload identity",
    Kind.AZURE: "secretName must name a Secret with AZURE_STORAGE_KEY, or with AZURE_CLIENT_ID, "
    "AZURE_CLIENT_SECRET and AZURE_TENANT_ID",
    Kind.LOCAL: "the pod must be allowed to read and write the volume (spec.podSecurityContext)",
}


def error_from(error: Exception, doing: str, permission: str, location: Location) -> StorageError:
    """The StorageError for an error of the library. `permission` is what the operation needs, in the
    provider's words.
    """
    text = str(error).partition("\n\nDebug source")[0]
    code, status = _code(text), _status(text)
    reported = _error_text(text, code, status)
    meaning = _refusal(error, text, code, status, location) or _failure(error, reported, status, location)
    if meaning is BucketMissing:
        cause = _no_bucket(location, reported)
    elif meaning is BadCredentials:
        cause = _bad_credentials(location, text, reported)
    elif meaning is AccessDenied:
        cause = f"the permission is missing: {reported}; allow {permission} there"
    elif _is_unanswered(text, status):
        asked = match[1] if (match := _ASKED.search(text)) else "the service that issues tokens"
        cause = f"no answer from {asked}, which exchanges the credentials for a token; does a network policy allow it?"
    elif location.kind is Kind.LOCAL:
        # a file system's errors cannot contain credentials
        cause = reported or text
    else:
        cause = reported or "no answer; is the address right, and does a network policy allow it?"
    return meaning(doing, location, cause)


def _bad_credentials(location: Location, text: str, reported: str) -> str:
    """What is wrong with the credentials: the service has refused them, or there are none."""
    if reported and location.kind in _CHECK and not any(each in text for each in _METADATA):
        refused = f"{_SERVICES[location.kind]} refuses the credentials: {reported}"
        return f"{refused}; {_CHECK[location.kind].format(field=location.field)}"
    why = (
        f"there are no credentials, or none that are accepted: {reported}"
        if reported
        else "the credentials cannot be used"
    )
    return f"{why}; {location.field}.{_CREDENTIALS[location.kind]}"


def _is_unanswered(text: str, status: int | None) -> bool:
    """True if the token service did not answer."""
    return "token request" in text and status is None and not any(each in text for each in _METADATA)


def _refusal(
    error: Exception, text: str, code: str, status: int | None, location: Location
) -> type[StorageError] | None:
    """The class of a permanent error; None for one that may pass."""
    if code in _NO_BUCKET or (location.kind is Kind.LOCAL and "canonicalize filesystem root" in text):
        return BucketMissing
    if _is_unanswered(text, status):
        return None
    if _TOKEN.search(text) or isinstance(error, UnauthenticatedError) or code in _NOT_KNOWN or status == 401:
        return BadCredentials
    denied = isinstance(error, PermissionDeniedError | PermissionError) or code in _DENIED
    if denied or status == 403 or "os error 13" in text:
        return AccessDenied
    return None


def _failure(error: Exception, reported: str, status: int | None, location: Location) -> type[StorageError]:
    if isinstance(error, FileNotFoundError):
        return ObjectMissing
    if status == 404:
        return BucketMissing
    is_service = location.kind is not Kind.LOCAL
    failed = not reported or status == 429 or (status or 0) >= 500
    return Unreachable if is_service and failed else StorageError


def _no_bucket(location: Location, reported: str) -> str:
    match location.kind:
        case Kind.AZURE:
            what = f"there is no container {location.bucket!r} in the account {location.account!r}"
        case Kind.LOCAL:
            return f"nothing is mounted at {location.bucket}; look at spec.local.volumeMount"
        case _:
            what = f"there is no bucket {location.bucket!r}"
    return f"{what}{f' ({reported})' if reported else ''}; create it, or correct {location.field}"


def _code(text: str) -> str:
    if match := _CODE.search(text):
        return match[1] or match[2] or ""
    return match[1] if (match := _OAUTH_CODE.search(text)) else ""


def _message(text: str) -> str:
    """The service's message about its error."""
    if match := _MESSAGE.search(text):
        return match[1].strip()
    if match := _OAUTH_MESSAGE.search(text):
        message = match[1].replace('\\"', '"').replace("\\r", " ").replace("\\n", " ")
        return _OAUTH_IDS.sub("", message).strip()
    return ""


def _status(text: str) -> int | None:
    match = _STATUS.search(text)
    return int(match[1]) if match else None


def _error_text(text: str, code: str, status: int | None) -> str:
    """The answer of the service or the system, without the request."""
    message = _message(text)[:_LONGEST]
    system = match[1].strip() if (match := _OF_SYSTEM.search(text)) else ""
    answered = code or (f"status {status}" if status else "")
    return ": ".join(part for part in (answered, message, system) if part)
