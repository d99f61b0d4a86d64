"""Refusals of the server: Status bodies in the words of Kubernetes.

`Refusal` is the only exception of this package. Verbs raise it, and the server turns it into an answer.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from kube.objects import Json
from kube.resources import Resource


@dataclass(frozen=True, slots=True)
class FieldError:
    """A rejected field: `reason` is the machine-readable cause, `message` the text without the field's path."""

    reason: str
    field: str
    message: str

    def __str__(self) -> str:
        """`spec.replicas: Invalid value: -1: must be ...`, as the Status message lists it."""
        return f"{self.field}: {self.message}"


def invalid_value(field: str, value: Any, detail: str) -> FieldError:
    """`field: Invalid value: value: detail`."""
    return FieldError("FieldValueInvalid", field, f"Invalid value: {shown(value)}: {detail}")


def type_invalid(field: str, found: str, expected: str) -> FieldError:
    """The field holds a value of another JSON type."""
    message = f'Invalid value: "{found}": {field} in body must be of type {expected}: "{found}"'
    return FieldError("FieldValueTypeInvalid", field, message)


def required(field: str, detail: str = "") -> FieldError:
    """`field: Required value`, with a detail where Kubernetes gives one."""
    return FieldError("FieldValueRequired", field, f"Required value: {detail}" if detail else "Required value")


def unsupported(field: str, value: Any, supported: Sequence[Any]) -> FieldError:
    """`field: Unsupported value: value: supported values: ...`."""
    listed = ", ".join(shown(item) for item in supported)
    return FieldError("FieldValueNotSupported", field, f"Unsupported value: {shown(value)}: supported values: {listed}")


def forbidden_field(field: str, detail: str) -> FieldError:
    """`field: Forbidden: detail`."""
    return FieldError("FieldValueForbidden", field, f"Forbidden: {detail}")


def duplicate(field: str, value: Any) -> FieldError:
    """`field: Duplicate value: value`."""
    return FieldError("FieldValueDuplicate", field, f"Duplicate value: {shown(value)}")


def shown(value: Any) -> str:
    """A value as messages show it: strings quoted, trees as JSON."""
    return msgspec.json.encode(value).decode()


class Refusal(Exception):
    """Raised for a refused request. `status()` is the body of the answer, `code` its HTTP status, `metadata` the list
    metadata of the Status.
    """

    def __init__(self, code: int, reason: str, message: str, details: Json | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.reason = reason
        self.message = message
        self.details = details
        self.metadata: Json = {}

    @property
    def retry_after(self) -> int:
        """Seconds before the client should retry; 0 if it need not wait."""
        return int((self.details or {}).get("retryAfterSeconds", 0))

    def status(self) -> Json:
        """The Status object."""
        body: Json = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": self.metadata,
            "status": "Failure",
            "message": self.message,
        }
        if self.reason:
            body["reason"] = self.reason
        if self.details is not None:
            body["details"] = self.details
        return body | {"code": self.code}


def not_found(resource: Resource, name: str) -> Refusal:
    """404: no such object."""
    return Refusal(404, "NotFound", f'{resource} "{name}" not found', _details(resource, name))


def already_exists(resource: Resource, name: str) -> Refusal:
    """409: an object of that name exists."""
    return Refusal(409, "AlreadyExists", f'{resource} "{name}" already exists', _details(resource, name))


def modified(resource: Resource, name: str) -> Refusal:
    """409: the resourceVersion is not the current one."""
    return conflict(
        resource, name, "the object has been modified; please apply your changes to the latest version and try again"
    )


def conflict(resource: Resource, name: str, why: str) -> Refusal:
    """409: the change contradicts the current state."""
    message = f'Operation cannot be fulfilled on {resource} "{name}": {why}'
    return Refusal(409, "Conflict", message, _details(resource, name))


def invalid(resource: Resource, name: str, errors: Iterable[FieldError]) -> Refusal:
    """422: fields that validation rejects."""
    listed = list(dict.fromkeys(errors))
    kind = f"{resource.kind}.{resource.group}" if resource.group else resource.kind
    texts = [str(error) for error in listed]
    text = texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"
    details = _details(resource, name)
    details.pop("kind")
    if resource.kind:
        details["kind"] = resource.kind
    details["causes"] = [{"reason": e.reason, "message": e.message, "field": e.field} for e in listed]
    return Refusal(422, "Invalid", f'{kind} "{name}" is invalid: {text}', details)


def forbidden(resource: Resource, name: str, why: str, causes: Sequence[Json] = ()) -> Refusal:
    """403: admission rejects the object."""
    details = _details(resource, name)
    if causes:
        details["causes"] = list(causes)
    return Refusal(403, "Forbidden", f'{resource} "{name}" is forbidden: {why}', details)


def bad_request(message: str) -> Refusal:
    """400: the request itself is malformed."""
    return Refusal(400, "BadRequest", message)


def method_not_allowed() -> Refusal:
    """405: the resource does not know the verb."""
    message = "the server does not allow this method on the requested resource"
    return Refusal(405, "MethodNotAllowed", message, {})


def no_such_resource() -> Refusal:
    """404: the group is served, the resource is not."""
    return Refusal(404, "NotFound", "the server could not find the requested resource", {})


def not_acceptable(offered: Sequence[str]) -> Refusal:
    """406: the client accepts none of the available formats."""
    message = f"406: Not Acceptable\n\nAvailable representations: {', '.join(offered)}"
    return Refusal(406, "NotAcceptable", message, {})


def unsupported_media_type(offered: Sequence[str]) -> Refusal:
    """415: the server does not read the body's format."""
    message = f"the body of the request was in an unknown format - accepted media types include: {', '.join(offered)}"
    return Refusal(415, "UnsupportedMediaType", message)


def expired(message: str) -> Refusal:
    """410: the requested version is no longer kept."""
    return Refusal(410, "Expired", message)


def too_large_version(asked: int, current: int) -> Refusal:
    """504: the requested version is in the future."""
    details = {
        "causes": [{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}],
        "retryAfterSeconds": 1,
    }
    return Refusal(504, "Timeout", f"Timeout: Too large resource version: {asked}, current: {current}", details)


def _details(resource: Resource, name: str) -> Json:
    details: Json = {"name": name} if name else {}
    if resource.group:
        details["group"] = resource.group
    details["kind"] = resource.plural
    return details
