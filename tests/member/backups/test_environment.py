"""The container's variables for the storage; credentials are references (backup.md 2.3)."""

import pytest

from apis.shared import Json
from member.backups.environment import BadJob, Secrets, password_env, secret_names, storage_env, with_users
from tests.apis.backups import ACCESS, S3, backup, by_br

CANARY = "canary-7f3a"
AZURE: Json = {"container": "lab", "secretName": "az"}


def env(storage: Json, secrets: Secrets, *, use_kms: bool = False) -> dict[str, object]:
    """The variables by name: their values, or the keys of Secrets that they refer to."""
    found = storage_env(backup({"br": {"cluster": "basic"}, **storage}).spec, secrets, use_kms=use_kms)
    return {
        each["name"]: each.get("value", "")
        if "valueFrom" not in each
        else tuple(each["valueFrom"]["secretKeyRef"].values())
        for each in found
    }


@pytest.mark.rule("backup-2.3")
def test_a_password_may_be_empty_and_keys_of_a_storage_may_not() -> None:
    access = backup(by_br(**{"from": ACCESS})).spec.from_
    (found,) = password_env(access, {"password": {"password": ""}}, use_kms=False)
    assert {"name": "password", "key": "password"} == found["valueFrom"]["secretKeyRef"]
    with pytest.raises(BadJob, match="Secret keys lacks the key secret_key"):
        env({"s3": S3}, {"keys": {"access_key": CANARY, "secret_key": ""}})


@pytest.mark.parametrize(
    ("storage", "secrets", "reason", "message"),
    [
        ({"s3": S3}, {"keys": None}, "GetS3SecretFailed", "Secret keys does not exist; create it with the credentials"),
        (
            {"s3": S3},
            {"keys": {"access_key": CANARY}},
            "s3KeyNotExist",
            "Secret keys lacks the key secret_key; add it",
        ),
        (
            {"s3": S3 | {"provider": "ceph", "endpoint": "https://a"}},
            {},
            "InvalidS3Endpoint",
            "spec.s3.endpoint: https://a: must begin with http:// for provider ceph; or set another provider",
        ),
        (
            {"gcs": {"projectId": "p", "bucket": "b", "secretName": "g"}},
            {},
            "GetGcsSecretFailed",
            "Secret g does not exist; create it with the credentials",
        ),
        (
            {"gcs": {"projectId": "p", "bucket": "b", "secretName": "g"}},
            {"g": {"other": CANARY}},
            "gcsKeyNotExist",
            "Secret g lacks the key credentials; add it",
        ),
        (
            {"azblob": AZURE},
            {},
            "GetAzblobSecretFailed",
            "Secret az does not exist; create it with the credentials",
        ),
        (
            {"azblob": AZURE},
            {"az": {"AZURE_STORAGE_KEY": CANARY}},
            "azblobAccountNotExist",
            "spec.azblob.storageAccount is empty and Secret az has no key AZURE_STORAGE_ACCOUNT; "
            "name the storage account in one of them",
        ),
        (
            {"azblob": {"container": "lab"}},
            {},
            "azblobAccountNotExist",
            "spec.azblob.storageAccount is empty and there is no Secret; name the storage account in one of them",
        ),
        (
            {"azblob": AZURE},
            {"az": {"AZURE_STORAGE_ACCOUNT": "acct", "AZURE_CLIENT_SECRET": CANARY}},
            "azblobKeyOrAADMissing",
            "Secret az has neither AZURE_STORAGE_KEY nor all of AZURE_CLIENT_ID, AZURE_CLIENT_SECRET, "
            "AZURE_TENANT_ID; add one or the other",
        ),
        ({}, {}, "UnsupportedStorageType", "the spec names no storage; set s3, gcs, azblob or local"),
    ],
)
def test_a_missing_value_has_v1_6s_reason_and_no_secret_in_it(
    storage: Json, secrets: Secrets, reason: str, message: str
) -> None:
    with pytest.raises(BadJob) as refused:
        env(storage, secrets)
    assert (reason, message) == (refused.value.reason, str(refused.value))
    assert CANARY not in message


def test_azure_prefers_an_application_to_a_key_and_needs_neither_with_a_signature() -> None:
    both = {"AZURE_STORAGE_ACCOUNT": "acct", "AZURE_STORAGE_KEY": CANARY}
    both |= {"AZURE_CLIENT_ID": CANARY, "AZURE_CLIENT_SECRET": CANARY, "AZURE_TENANT_ID": CANARY}
    found = env({"azblob": AZURE}, {"az": both})
    assert {
        "AZURE_ACCESS_TIER": "Cool",
        "AZURE_STORAGE_ACCOUNT": "acct",
        "AZURE_CLIENT_ID": ("az", "AZURE_CLIENT_ID"),
        "AZURE_CLIENT_SECRET": ("az", "AZURE_CLIENT_SECRET"),
        "AZURE_TENANT_ID": ("az", "AZURE_TENANT_ID"),
    } == found
    signed = env({"azblob": {"container": "lab", "storageAccount": "mine", "sasToken": "t", "accessTier": "Hot"}}, {})
    assert {"AZURE_ACCESS_TIER": "Hot", "AZURE_STORAGE_ACCOUNT": "mine"} == signed


def test_ceph_speaks_http_where_no_scheme_is_named() -> None:
    assert "http://a:1" == env({"s3": {"provider": "ceph", "bucket": "b", "endpoint": "a:1"}}, {})["S3_ENDPOINT"]


def test_passwords_come_from_secrets_and_may_be_encrypted() -> None:
    access = backup(by_br(**{"from": ACCESS})).spec.from_
    plain = password_env(access, {"password": {"password": CANARY}}, use_kms=False)
    encrypted = password_env(access, {"password": {"password": CANARY}}, use_kms=True)
    assert (["BACKUP_MANAGER_PASSWORD"], ["KMS_ENCRYPTED_BACKUP_MANAGER_PASSWORD"]) == (
        [each["name"] for each in plain],
        [each["name"] for each in encrypted],
    )
    assert CANARY not in str(plain)
    cases: list[tuple[Secrets, str]] = [({}, "GetTidbSecretFailed"), ({"password": {}}, "KeyNotExist")]
    for secrets, reason in cases:
        with pytest.raises(BadJob) as refused:
            password_env(access, secrets, use_kms=False)
        assert reason == refused.value.reason


def test_the_users_variables_win_and_the_time_zone_comes_last() -> None:
    own: list[Json] = [{"name": "A", "value": "1"}, {"name": "B", "value": "1"}]
    merged = with_users(own, [{"name": "B", "value": "2"}, {"name": "C", "value": "2"}], "Asia/Tokyo")
    assert [("A", "1"), ("B", "2"), ("C", "2"), ("TZ", "Asia/Tokyo")] == [
        (each["name"], each["value"]) for each in merged
    ]
    zoned = with_users(own, [{"name": "TZ", "value": "UTC"}], "Asia/Tokyo")
    assert ["UTC"] == [each["value"] for each in zoned if each["name"] == "TZ"]


def test_only_secrets_that_are_named_are_read() -> None:
    assert ["keys", "password"] == secret_names(backup(by_br()).spec, backup(by_br(**{"from": ACCESS})).spec.from_)
    assert [] == secret_names(backup({"br": {"cluster": "a"}, "gcs": {"projectId": "p"}}).spec, None)
