"""The environment of the containers of Jobs: the storage, and the access to it (backup.md 2.3).

Credentials are references to Secrets, never values. Of a Secret the operator reads only the keys, and the name of an
Azure account, which is not secret. No message contains a Secret's values.
"""

from collections.abc import Mapping, Sequence

from apis.backup_shared import JobSpec, TiDBAccessConfig
from apis.shared import Json
from apis.storage_providers import (
    AzblobStorageProvider,
    GcsStorageProvider,
    LocalStorageProvider,
    Provider,
    S3StorageProvider,
    StorageProvider,
)

Secrets = Mapping[str, Mapping[str, str] | None]
"""The Secrets of a Job by name, with their decoded keys and values; None for a Secret that does not exist."""

_AAD = ("AZURE_CLIENT_ID", "AZURE_CLIENT_SECRET", "AZURE_TENANT_ID")
_ACCOUNT = "AZURE_STORAGE_ACCOUNT"
_KEY = "AZURE_STORAGE_KEY"


class BadJob(Exception):
    """Raised if no Job can be created yet; `reason` is v1.6's."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


def secret_names(storage: StorageProvider, access: TiDBAccessConfig | None) -> list[str]:
    """The Secrets that the environment refers to."""
    provider = storage.provider
    names = [] if provider is None or isinstance(provider, LocalStorageProvider) else [provider.secret_name]
    return [name for name in [*names, access.secret_name if access else ""] if name]


def job_env(spec: JobSpec, access: TiDBAccessConfig | None, secrets: Secrets) -> list[Json]:
    """The variables for access to TiDB (with `access`) and to the storage. Raises BadJob."""
    password = password_env(access, secrets, use_kms=spec.use_kms)
    return password + storage_env(spec, secrets, use_kms=spec.use_kms)


def password_env(access: TiDBAccessConfig | None, secrets: Secrets, *, use_kms: bool) -> list[Json]:
    """The variable with the SQL user's password. Raises BadJob."""
    if access is None:
        return []
    _require(secrets, access.secret_name, ("password",), "GetTidbSecretFailed", "KeyNotExist", may_be_empty=True)
    prefix = "KMS_ENCRYPTED_" if use_kms else ""
    return [_reference(f"{prefix}BACKUP_MANAGER_PASSWORD", access.secret_name, "password")]


def storage_env(storage: StorageProvider, secrets: Secrets, *, use_kms: bool) -> list[Json]:
    """The variables for the storage. Raises BadJob."""
    provider: Provider | None = storage.provider
    match provider:
        case S3StorageProvider():
            return _s3(provider, secrets, use_kms=use_kms)
        case GcsStorageProvider():
            return _gcs(provider, secrets)
        case AzblobStorageProvider():
            return _azblob(provider, secrets)
        case LocalStorageProvider():
            return []
    raise BadJob("UnsupportedStorageType", "the spec names no storage; set s3, gcs, azblob or local")


def with_users(own: Sequence[Json], users: Sequence[Json], time_zone: str) -> list[Json]:
    """The environment with the user's variables, which replace those with the same name, and the time zone last."""
    named = {user["name"]: user for user in users}
    merged = [named.pop(each["name"], each) for each in own] + list(named.values())
    if time_zone and not any(each["name"] == "TZ" for each in merged):
        merged.append({"name": "TZ", "value": time_zone})
    return merged


def _s3(s3: S3StorageProvider, secrets: Secrets, *, use_kms: bool) -> list[Json]:
    aws = s3.provider == "aws"
    env = [
        _value("S3_PROVIDER", s3.provider),
        _value("S3_ENDPOINT", _endpoint(s3)),
        _value("AWS_REGION", s3.region),
        _value("AWS_ACL", s3.acl or ("private" if aws else "")),
        _value("AWS_STORAGE_CLASS", s3.storage_class or ("STANDARD_IA" if aws else "")),
    ]
    if use_kms:
        env.append(_value("AWS_DEFAULT_REGION", s3.region))
    if s3.secret_name:
        _require(secrets, s3.secret_name, ("access_key", "secret_key"), "GetS3SecretFailed", "s3KeyNotExist")
        env.append(_reference("AWS_ACCESS_KEY_ID", s3.secret_name, "access_key"))
        env.append(_reference("AWS_SECRET_ACCESS_KEY", s3.secret_name, "secret_key"))
    return env


def _endpoint(s3: S3StorageProvider) -> str:
    if s3.provider != "ceph" or not s3.endpoint:
        return s3.endpoint
    if "://" not in s3.endpoint:
        return f"http://{s3.endpoint}"
    if not s3.endpoint.startswith("http://"):
        message = f"spec.s3.endpoint: {s3.endpoint}: must begin with http:// for provider ceph; or set another provider"
        raise BadJob("InvalidS3Endpoint", message)
    return s3.endpoint


def _gcs(gcs: GcsStorageProvider, secrets: Secrets) -> list[Json]:
    env = [
        _value("GCS_PROJECT_ID", gcs.project_id),
        _value("GCS_OBJECT_ACL", gcs.object_acl),
        _value("GCS_BUCKET_ACL", gcs.bucket_acl),
        _value("GCS_LOCATION", gcs.location),
        _value("GCS_STORAGE_CLASS", gcs.storage_class),
    ]
    if gcs.secret_name:
        _require(secrets, gcs.secret_name, ("credentials",), "GetGcsSecretFailed", "gcsKeyNotExist")
        env.append(_reference("GCS_SERVICE_ACCOUNT_JSON_KEY", gcs.secret_name, "credentials"))
    return env


def _azblob(azblob: AzblobStorageProvider, secrets: Secrets) -> list[Json]:
    name = azblob.secret_name
    held = _require(secrets, name, (), "GetAzblobSecretFailed", "azblobKeyOrAADMissing") if name else {}
    account = azblob.storage_account or held.get(_ACCOUNT, "")
    if not account:
        where = f"Secret {name} has no key {_ACCOUNT}" if name else "there is no Secret"
        message = f"spec.azblob.storageAccount is empty and {where}; name the storage account in one of them"
        raise BadJob("azblobAccountNotExist", message)
    env = [_value("AZURE_ACCESS_TIER", azblob.access_tier or "Cool"), _value(_ACCOUNT, account)]
    if azblob.sas_token:
        return env
    if all(key in held for key in _AAD):
        return env + [_reference(key, name, key) for key in _AAD]
    if _KEY in held:
        return [*env, _reference(_KEY, name, _KEY)]
    message = f"Secret {name} has neither {_KEY} nor all of {', '.join(_AAD)}; add one or the other"
    raise BadJob("azblobKeyOrAADMissing", message)


def _require(
    secrets: Secrets, name: str, keys: Sequence[str], missing: str, incomplete: str, *, may_be_empty: bool = False
) -> Mapping[str, str]:
    """The non-empty values of a Secret, by key. Raises BadJob if the Secret or one of `keys` is missing or empty."""
    held = secrets.get(name)
    if held is None:
        raise BadJob(missing, f"Secret {name} does not exist; create it with the credentials")
    lacks = [key for key in keys if not held.get(key) and not (may_be_empty and key in held)]
    if lacks:
        raise BadJob(incomplete, f"Secret {name} lacks the key {' and '.join(lacks)}; add it")
    return {key: value for key, value in held.items() if value}


def _value(name: str, value: str) -> Json:
    return {"name": name, "value": value} if value else {"name": name}


def _reference(name: str, secret: str, key: str) -> Json:
    return {"name": name, "valueFrom": {"secretKeyRef": {"name": secret, "key": key}}}
