import json

import pytest

from kube.errors import (
    AlreadyExists,
    ApiError,
    Conflict,
    Expired,
    Forbidden,
    InternalError,
    NotFound,
    Status,
    TooManyRequests,
    error_from_answer,
    error_from_status,
)


@pytest.mark.parametrize(
    ("reason", "code", "expected"),
    [
        ("Expired", 410, Expired),
        ("Gone", 410, Expired),
        ("SomethingNew", 410, Expired),
        ("AlreadyExists", 409, AlreadyExists),
        ("Conflict", 409, Conflict),
        ("SomethingNew", 500, InternalError),
        ("InternalError", 503, InternalError),
        ("", 429, TooManyRequests),
        ("NotFound", 200, NotFound),
        ("StorageReadError", 418, ApiError),
    ],
)
@pytest.mark.rule("REST-10")
def test_the_reason_decides_and_the_code_when_it_is_unknown(reason: str, code: int, expected: type[ApiError]) -> None:
    assert expected is type(error_from_status(Status(reason=reason, code=code)))


@pytest.mark.rule("REST-9")
def test_a_status_gives_its_causes_and_its_pause() -> None:
    body = (
        b'{"kind":"Status","code":429,"reason":"TooManyRequests","message":"busy","details":'
        b'{"name":"x","retryAfterSeconds":3,"causes":[{"reason":"FieldValueInvalid","field":"spec.a","message":"m"}]}}'
    )

    error = error_from_answer(429, body, "GET /x")

    assert ("GET /x: busy", 3, "spec.a") == (
        str(error),
        error.details.retry_after_seconds,
        error.details.causes[0].field,
    )


@pytest.mark.parametrize("body", [b"<html>denied</html>", b'{"error":"denied"}', b'"denied"'])
@pytest.mark.rule("REST-9")
def test_a_body_that_is_not_a_status_becomes_the_message(body: bytes) -> None:
    error = error_from_answer(403, body, "GET /x")

    assert isinstance(error, Forbidden)
    assert "denied" in str(error)


def test_omits_an_object_that_the_server_quotes() -> None:
    text = r'"" is invalid: patch: Invalid value: "{\"env\":[{\"value\":\"hush\"}]}": json: cannot unmarshal string'
    body = json.dumps({"kind": "Status", "code": 422, "reason": "Invalid", "message": text}).encode()
    error = error_from_answer(422, body, "PATCH /x")

    assert 'PATCH /x: "" is invalid: patch: Invalid value: json: cannot unmarshal string' == str(error)


@pytest.mark.rule("REST-9")
def test_a_long_page_is_cut_and_an_empty_one_named() -> None:
    assert 2048 == len(error_from_answer(502, b"x" * 5000).message)
    assert "the server answered 502 without a body" == error_from_answer(502, b"").message


def test_cuts_a_long_value_that_the_server_quotes() -> None:
    said = f'spec.serviceAccountName: Invalid value: "{"x" * 70000}": must be no more than 253 characters'
    assert said.replace("x" * 70000, "x" * 120 + "…") == ApiError(Status(message=said)).message
