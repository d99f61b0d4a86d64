"""Values that KMS has encrypted, decrypted by moto (KMS-5, KMS-6, KMS-8)."""

import base64
import sys

import pytest

from backup_manager.key_management import decrypted
from backup_manager.outcomes import Undecrypted
from tests.backup_manager.storage.servers import CANARY, S3

NAME = "KMS_ENCRYPTED_BACKUP_MANAGER_PASSWORD"
REGION = {"AWS_DEFAULT_REGION": "us-east-1"}


@pytest.fixture
def kms(s3: S3, monkeypatch: pytest.MonkeyPatch) -> S3:
    """KMS, where botocore looks for it."""
    for name, value in (s3.environ | {"AWS_ENDPOINT_URL_KMS": s3.url}).items():
        monkeypatch.setenv(name, value)
    return s3


def encrypted(kms: S3, text: str) -> str:
    client = kms.client("kms")
    key = client.create_key()["KeyMetadata"]["KeyId"]
    return base64.b64encode(client.encrypt(KeyId=key, Plaintext=text.encode())["CiphertextBlob"]).decode()


@pytest.mark.slow
@pytest.mark.parametrize("region", ["AWS_DEFAULT_REGION", "AWS_REGION"])
@pytest.mark.rule("KMS-5", "KMS-6")
def test_each_encrypted_value_is_decrypted_as_it_is(kms: S3, region: str) -> None:
    given = {
        NAME: f"{encrypted(kms, f' {CANARY}é ')}\n",
        "KMS_ENCRYPTED_OWN": encrypted(kms, "own"),
        region: "us-east-1",
    }
    assert given | {"BACKUP_MANAGER_PASSWORD": f" {CANARY}é ", "OWN": "own"} == decrypted(given)


@pytest.mark.slow
@pytest.mark.rule("KMS-5")
def test_a_foreign_ciphertext_is_reported_by_variable_and_code(kms: S3) -> None:
    foreign = base64.b64encode(b"key" + CANARY.encode() * 3).decode()
    with pytest.raises(Undecrypted, match=rf"^{NAME}: KMS in us-east-1 answers \w+$") as raised:
        decrypted({NAME: foreign, **REGION})
    assert CANARY not in str(raised.value)
    assert foreign not in str(raised.value)


@pytest.mark.rule("KMS-8")
def test_nothing_asks_kms_without_an_encrypted_value_or_beside_a_plain_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "botocore.session", None)
    for environ in ({"A": "b"}, {NAME: "cipher", "BACKUP_MANAGER_PASSWORD": "plain"}):
        assert environ == decrypted(environ)


def test_an_image_without_botocore_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "botocore.session", None)
    with pytest.raises(Undecrypted, match="this image lacks botocore, which asks KMS: install it there"):
        decrypted({NAME: "cipher", **REGION})


def test_a_value_that_is_no_ciphertext_is_reported_without_it() -> None:
    with pytest.raises(Undecrypted, match=f"{NAME} is not base64") as raised:
        decrypted({NAME: CANARY + "!"}, lambda _environ: bytes)
    assert CANARY not in str(raised.value)
    with pytest.raises(Undecrypted, match="is not UTF-8"):
        decrypted({NAME: "/w=="}, lambda _environ: bytes)


def test_a_kms_that_cannot_be_reached_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL_KMS", "http://127.0.0.1:1")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "a")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", CANARY)
    with pytest.raises(Undecrypted, match=f"{NAME}: KMS in us-east-1 could not be asked: Could not connect"):
        decrypted({NAME: "/w==", **REGION})
