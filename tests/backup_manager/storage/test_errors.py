"""Errors name bucket, prefix, provider and what is missing, and never a credential (backup.md 2.3)."""

import json
import traceback
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from backup_manager.storage.checks import require_usable
from backup_manager.storage.errors import (
    AccessDenied,
    BadCredentials,
    BadLocation,
    BucketMissing,
    StorageError,
    Unreachable,
)
from backup_manager.storage.location import Kind, Location
from backup_manager.storage.objects import open_storage
from tests.backup_manager.storage.conftest import Place
from tests.backup_manager.storage.fakes import answering
from tests.backup_manager.storage.servers import CANARY, S3, Azure, Gcs

S3_KEYS = {"AWS_ACCESS_KEY_ID": f"AKIA{CANARY}", "AWS_SECRET_ACCESS_KEY": CANARY}
AZURE_KEY = {"AZURE_STORAGE_ACCOUNT": "acc", "AZURE_STORAGE_KEY": "Y2FuYXJ5N1F4"}
S3_PLACE = Location(Kind.S3, "bucket", "some/prefix", flavour="aws")
AZURE_PLACE = Location(Kind.AZURE, "bucket", "some/prefix")
GCS_PLACE = Location(Kind.GCS, "bucket", "some/prefix")


def error_of(location: Location, environ: Mapping[str, str]) -> StorageError:
    """The error of using the place; without credentials in any source."""
    with pytest.raises(StorageError) as raised:
        require_usable(open_storage(location, environ))
    shown = "".join(traceback.format_exception(raised.value)) + repr(raised.value) + repr(vars(raised.value))
    for name, value in environ.items():
        if "KEY" in name and value:
            assert value not in shown
    assert CANARY not in shown
    assert "Debug source" not in shown
    return raised.value


@pytest.mark.parametrize("missing", ["AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"])
def test_half_of_a_key_is_named(missing: str) -> None:
    error = error_of(S3_PLACE, S3_KEYS | {missing: ""})
    assert isinstance(error, BadCredentials)
    assert f"{missing} is empty" in str(error)
    assert "of the Secret that secretName names" in str(error)
    assert "s3://bucket/some/prefix (S3 (aws))" in str(error)


@pytest.mark.rule("backup-2.5")
def test_azure_needs_an_account() -> None:
    assert "no AZURE_STORAGE_ACCOUNT; set spec.azblob.storageAccount" in str(error_of(AZURE_PLACE, {}))


def test_half_of_azure_client_credentials_is_named() -> None:
    environ = {"AZURE_STORAGE_ACCOUNT": "acc", "AZURE_CLIENT_SECRET": CANARY}
    assert "lacks AZURE_CLIENT_ID, AZURE_TENANT_ID" in str(error_of(AZURE_PLACE, environ))


def test_names_an_unusable_key_without_its_value() -> None:
    azure = error_of(AZURE_PLACE, AZURE_KEY | {"AZURE_STORAGE_KEY": f"not base64 {CANARY}!"})
    gcs = error_of(GCS_PLACE, {"GCS_SERVICE_ACCOUNT_JSON_KEY": f'{{"private_key": "{CANARY}"'})
    assert [BadCredentials, BadCredentials] == [type(azure), type(gcs)]
    assert "AZURE_STORAGE_KEY" in str(azure)
    assert "a Secret with the key credentials" in str(gcs)


@pytest.mark.parametrize("endpoint", ["minio:9000", "ftp://minio", "http://", "http://h:0", "nonsense", "http://[::1"])
def test_rejects_an_endpoint_that_is_not_a_url_without_a_request(endpoint: str) -> None:
    error = error_of(replace(S3_PLACE, endpoint=endpoint), S3_KEYS)
    assert isinstance(error, BadLocation)
    assert "spec.s3.endpoint" in str(error)


def test_rejects_an_encryption_that_s3_does_not_know() -> None:
    for known in ("AES256", "aws:kms"):
        open_storage(replace(S3_PLACE, encryption=known, encryption_key="arn:aws:kms:key"), S3_KEYS)
    error = error_of(replace(S3_PLACE, encryption="aes"), S3_KEYS)
    assert isinstance(error, BadLocation)
    assert "spec.s3.sse: 'aes' must be one of AES256, aws:kms, aws:kms:dsse" in str(error)


def test_rejects_a_location_without_a_bucket() -> None:
    assert "spec.s3 names no bucket" in str(error_of(replace(S3_PLACE, bucket=""), S3_KEYS))
    assert "spec.azblob names no container" in str(error_of(replace(AZURE_PLACE, bucket=""), AZURE_KEY))
    assert "mountPath is not absolute" in str(error_of(Location(Kind.LOCAL, "relative", "p"), {}))


def test_a_location_shows_no_sas_token() -> None:
    location = replace(AZURE_PLACE, sas_token=f"sig={CANARY}")
    assert CANARY not in f"{location!r} {location}"


NO_BUCKET = "<Error><Code>NoSuchBucket</Code><Message>The specified bucket does not exist.</Message></Error>"
DENIED = "<Error><Code>AccessDenied</Code><Message>x does not have storage.objects.list access.</Message></Error>"


@contextmanager
def gcs_answering(status: int, body: str) -> Iterator[Gcs]:
    with answering(status, body) as url:
        yield Gcs(url)


@pytest.mark.slow
def test_gcs_distinguishes_missing_bucket_permission_and_credentials() -> None:
    with gcs_answering(404, NO_BUCKET) as gcs:
        assert isinstance(error := error_of(GCS_PLACE, gcs.environ), BucketMissing)
        assert "there is no bucket 'bucket' (NoSuchBucket" in str(error)
    with gcs_answering(403, DENIED) as gcs:
        assert isinstance(error := error_of(GCS_PLACE, gcs.environ), AccessDenied)
        assert "allow storage.objects.list there" in str(error)
    with gcs_answering(401, "<Error><Code>AuthenticationRequired</Code></Error>") as gcs:
        assert isinstance(error_of(GCS_PLACE, gcs.environ), BadCredentials)


@pytest.mark.slow
@pytest.mark.parametrize("status", [500, 503])
def test_a_service_that_fails_may_recover(status: int) -> None:
    with answering(status, "<Error><Code>SlowDown</Code><Message>Reduce your rate.</Message></Error>") as url:
        error = error_of(replace(S3_PLACE, endpoint=url), S3_KEYS)
    assert isinstance(error, Unreachable)
    assert error.may_pass
    assert "SlowDown: Reduce your rate." in str(error)


@pytest.mark.slow
def test_messages_do_not_contain_a_request_that_the_service_echoes() -> None:
    body = f"<Error><Code>SignatureDoesNotMatch</Code><StringToSign>{CANARY}</StringToSign></Error>{CANARY}"
    with answering(403, body) as url:
        error = error_of(replace(S3_PLACE, endpoint=url), S3_KEYS)
    assert isinstance(error, BadCredentials)
    assert "S3 refuses the credentials: SignatureDoesNotMatch; check access_key and secret_key in the Secret" in str(
        error
    )


@pytest.mark.slow
def test_names_the_permission_that_an_s3_user_lacks(s3: S3, s3_place: Place) -> None:
    lists_only = s3.user("lists", "s3:ListBucket")
    writes_too = s3.user("writes", "s3:ListBucket", "s3:PutObject")
    s3_place.put("there")
    s3.require_credentials()
    try:
        error = error_of(s3_place.location, lists_only)
        unknown = error_of(s3_place.location, {"AWS_ACCESS_KEY_ID": "AKIANOBODY", "AWS_SECRET_ACCESS_KEY": CANARY})
        require_usable(open_storage(s3_place.location, writes_too))
        with pytest.raises(AccessDenied, match="s3:DeleteObject"):
            open_storage(s3_place.location, writes_too, bulk=False).delete(["there"])
    finally:
        s3.require_credentials(False)
    assert isinstance(error, AccessDenied)
    assert "allow s3:PutObject there" in str(error)
    assert isinstance(unknown, BadCredentials)
    assert "InvalidAccessKeyId" in str(unknown)


@pytest.mark.slow
def test_azure_does_not_know_another_key_or_sas_token(servers: object) -> None:
    azure = servers("azure")  # type: ignore[operator]
    assert isinstance(azure, Azure)
    location = azure.make_bucket("with-another-key")
    error = error_of(location, azure.environ | {"AZURE_STORAGE_KEY": AZURE_KEY["AZURE_STORAGE_KEY"]})
    assert isinstance(error, BadCredentials)
    with_token = replace(location, sas_token=f"sv=2021-08-06&sp=rl&sig={CANARY}%3D")
    assert isinstance(error_of(with_token, azure.environ), BadCredentials)


CLIENT = {"AZURE_STORAGE_ACCOUNT": "acc", "AZURE_CLIENT_ID": "c", "AZURE_TENANT_ID": "t", "AZURE_CLIENT_SECRET": CANARY}
REFUSED = {
    "error": "invalid_client",
    "error_description": "AADSTS7000215: Invalid client secret provided.\r\nTrace ID: 1f\r\nTimestamp: 2026-11-27",
}


@pytest.mark.slow
@pytest.mark.parametrize("status", [400, 401])
def test_reports_the_answer_of_azure_to_client_credentials(status: int, monkeypatch: pytest.MonkeyPatch) -> None:
    with answering(status, json.dumps(REFUSED)) as url:
        monkeypatch.setenv("AZURE_AUTHORITY_HOST", url)
        monkeypatch.setenv("AZURE_ALLOW_HTTP", "true")
        error = error_of(AZURE_PLACE, CLIENT | {"AZURE_STORAGE_ENDPOINT": url})
    assert isinstance(error, BadCredentials)
    assert "Azure refuses the credentials: invalid_client: AADSTS7000215: Invalid client secret provided.;" in str(
        error
    )
    assert "check AZURE_CLIENT_ID, AZURE_CLIENT_SECRET and AZURE_TENANT_ID" in str(error)
    assert "Trace ID" not in str(error)


@pytest.mark.slow
def test_a_silent_token_service_is_not_a_credential_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AZURE_AUTHORITY_HOST", "http://127.0.0.1:1")
    error = error_of(AZURE_PLACE, CLIENT | {"AZURE_STORAGE_ENDPOINT": "http://127.0.0.1:1"})
    assert isinstance(error, Unreachable)
    assert "no answer from http://127.0.0.1:1, which exchanges the credentials for a token" in str(error)


@pytest.mark.slow
def test_a_missing_service_is_unreachable() -> None:
    error = error_of(replace(S3_PLACE, endpoint="http://127.0.0.1:1"), S3_KEYS)
    assert isinstance(error, Unreachable)
    assert "s3://bucket/some/prefix at http://127.0.0.1:1" in str(error)


def test_names_a_volume_that_is_missing_or_forbidden(tmp_path: Path) -> None:
    missing = error_of(Location(Kind.LOCAL, str(tmp_path / "not-mounted"), "p"), {})
    assert isinstance(missing, BucketMissing)
    assert "nothing is mounted at" in str(missing)
    file = tmp_path / "p"
    file.write_text("a file where the prefix should be a directory")
    assert "cannot write" in str(error_of(Location(Kind.LOCAL, str(tmp_path), "p"), {}))
