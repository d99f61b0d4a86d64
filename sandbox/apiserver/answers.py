"""Complete answers of the server."""

import msgspec
import yaml

from kube.objects import Json
from ports.transport import Response
from sandbox.apiserver.refusals import Refusal

_JSON = "application/json"
_YAML = "application/yaml"


def json_answer(tree: Json, status: int = 200) -> Response:
    """An answer whose body is a tree."""
    return bytes_answer(msgspec.json.encode(tree), status)


def bytes_answer(body: bytes, status: int = 200, content_type: str = _JSON) -> Response:
    """An answer whose body is encoded already."""
    return Response(status, {"content-type": content_type}, body)


def text_answer(status: int, text: str) -> Response:
    """An answer in plain text."""
    return bytes_answer(text.encode(), status, "text/plain; charset=utf-8")


def refusal_answer(refusal: Refusal) -> Response:
    """The answer for a refusal: its Status."""
    answer = json_answer(refusal.status(), refusal.code)
    if not refusal.retry_after:
        return answer
    return Response(answer.status, dict(answer.headers) | {"retry-after": str(refusal.retry_after)}, answer.body)


def in_yaml(answer: Response) -> Response:
    """The answer with its JSON written as YAML."""
    if answer.headers.get("content-type") != _JSON:
        return answer
    text: str = yaml.safe_dump(msgspec.json.decode(answer.body), allow_unicode=True)
    return Response(answer.status, dict(answer.headers) | {"content-type": _YAML}, text.encode())


def with_warnings(answer: Response, warnings: list[str]) -> Response:
    """The answer with Warning headers, which kubectl shows to its user."""
    if not warnings:
        return answer
    quoted = (text.replace("\\", "\\\\").replace('"', '\\"') for text in warnings)
    header = ", ".join(f'299 - "{text}"' for text in quoted)
    return Response(answer.status, dict(answer.headers) | {"warning": header}, answer.body)
