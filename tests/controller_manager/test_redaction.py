"""No secret reaches the log."""

import signal
from itertools import product

import pytest

from controller_manager import redaction
from controller_manager.redaction import REDACTED, redact, redact_text

TOKEN = "eyJhbGciOiJSUzI1NiJ9.eyJpc3MiOiJrdWJlIn0.c2lnbmF0dXJl"


@pytest.mark.parametrize(
    "name",
    [
        "token",
        "password",
        "rootPassword",
        "MYSQL_PWD",
        "Authorization",
        "set-cookie",
        "private_key",
        "AWS_SECRET_ACCESS_KEY",
    ],
)
def test_a_field_with_the_name_of_a_secret_is_left_out(name: str) -> None:
    assert {"event": "x", name: REDACTED} == redact(None, "info", {"event": "x", name: "hunter2"})


def test_fields_are_looked_into() -> None:
    event = {"headers": {"authorization": "Bearer abc", "accept": "json"}, "tried": [{"token": "abc"}], "count": 3}

    assert {
        "headers": {"authorization": REDACTED, "accept": "json"},
        "tried": [{"token": REDACTED}],
        "count": 3,
    } == redact(None, "info", event)


def test_objects_are_cleaned_as_they_print() -> None:
    event = {"error": ValueError("password=hunter2")}
    assert {"error": f"ValueError('password={REDACTED}')"} == redact(None, "info", event)


def test_an_absent_secret_shows_as_absent() -> None:
    assert {"token": None} == redact(None, "info", {"token": None})


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        (f"sent {TOKEN} to", f"sent {REDACTED} to"),
        ("Authorization: Basic cm9vdA==", f"Authorization: Basic {REDACTED}"),
        ("sent bearer abcdef.0123456789abcdef", f"sent bearer {REDACTED}"),
        ("https://root:hunter2@tidb:4000/x", f"https://root:{REDACTED}@tidb:4000/x"),
        ("user=root&password=hunter2&x=1", f"user=root&password={REDACTED}&x=1"),
        ("MYSQL_PWD=hunter2 mysql", f"MYSQL_PWD={REDACTED} mysql"),
        ("root:hunter2@tcp(tidb:4000)/", f"root:{REDACTED}@tcp(tidb:4000)/"),
        ("dsn=root:hunter:2@unix(/s) of a:b", f"dsn=root:{REDACTED}@unix(/s) of a:b"),
        ("s3://bucket?secret-access-key=hunter2&x=1", f"s3://bucket?secret-access-key={REDACTED}&x=1"),
        ("https://account/blob?sv=1&sig=hunter2", f"https://account/blob?sv=1&sig={REDACTED}"),
        ('{"token": "hunter2", "a": 1}', f'{{"token": "{REDACTED}", "a": 1}}'),
        (
            "-----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY-----",
            f"-----BEGIN RSA PRIVATE KEY-----{REDACTED}-----END RSA PRIVATE KEY-----",
        ),
    ],
)
def test_texts_that_look_like_secrets_are_cut(text: str, clean: str) -> None:
    assert clean == redact_text(text)


@pytest.mark.parametrize(
    "text",
    [
        "http://basic-pd.ns:2379/pd/api/v1/members",
        "basic TiDB cluster",
        "Secret ns/basic-tls is missing",
        "12:30 at noon",
    ],
)
def test_ordinary_texts_stay_as_they_are(text: str) -> None:
    assert text == redact_text(text)


def test_a_long_text_is_cut() -> None:
    text = redact_text("x" * 40_000 + "password=hunter2")
    assert (True, "… (7248 more characters)") == (text.startswith("x" * 32_768), text[32_768:])


_PARTS = (
    "a",
    ".",
    ":",
    "-",
    "@",
    "eyJ",
    "eyJa",
    "://",
    " ",
    "=",
    "token",
    "authorization",
    "bearer ",
    "-----BEGIN ",
    "&sig",
)


@pytest.mark.slow
def test_the_time_for_a_text_does_not_grow_with_the_square_of_its_length(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(redaction, "_LONGEST", 1 << 20)

    def fail(*_: object) -> None:
        raise AssertionError("a text took 5 s of CPU; linear patterns take 0.1 s")

    signal.signal(signal.SIGPROF, fail)
    try:
        for unit in map("".join, product(_PARTS, repeat=2)):
            signal.setitimer(signal.ITIMER_PROF, 5.0)
            redact_text(unit * (200_000 // len(unit)))
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, signal.SIG_DFL)
