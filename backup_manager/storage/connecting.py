"""From a location and the environment to the library's store (backup.md 2.3, 2.5).

Credentials come only from the environment of the Job, never from arguments or the operator's own files.
"""

from collections.abc import Mapping
from datetime import timedelta

from obstore.store import AzureStore, GCSStore, LocalStore, S3Store
from obstore.store import ObjectStore as Library

from backup_manager.storage.answers import LIBRARY_ERRORS, error_from
from backup_manager.storage.errors import BadCredentials, BadLocation
from backup_manager.storage.location import Kind, Location, endpoint_problem

_DEFAULT_REGION = "us-east-1"
_RETRIES = 3
_RETRY_FOR = timedelta(seconds=60)
_TIMEOUT = timedelta(seconds=60)

_DOING = "use"


def connect(location: Location, environ: Mapping[str, str], *, bulk: bool = True) -> Library:
    """The library's store for a whole bucket; sends nothing yet.

    Without `bulk` it deletes objects in S3 one by one. Raises BadLocation, BadCredentials, BucketMissing.
    """
    if not location.bucket:
        raise BadLocation(_DOING, location, f"{location.field} names no {_BUCKET_FIELD[location.kind]}")
    if location.endpoint and (problem := endpoint_problem(location.endpoint)):
        raise BadLocation(_DOING, location, f"{location.field}.endpoint: {problem}")
    try:
        return _CONNECT[location.kind](location, environ, bulk)
    except LIBRARY_ERRORS as error:
        raise error_from(error, _DOING, "", location) from None


_BUCKET_FIELD = {Kind.S3: "bucket", Kind.GCS: "bucket", Kind.AZURE: "container", Kind.LOCAL: "volumeMount.mountPath"}


def _s3(location: Location, environ: Mapping[str, str], bulk: bool) -> Library:
    key, secret = environ.get("AWS_ACCESS_KEY_ID", ""), environ.get("AWS_SECRET_ACCESS_KEY", "")
    if bool(key) != bool(secret):
        missing = "AWS_SECRET_ACCESS_KEY" if key else "AWS_ACCESS_KEY_ID"
        there = "AWS_ACCESS_KEY_ID" if key else "AWS_SECRET_ACCESS_KEY"
        in_secret = "secret_key" if key else "access_key"
        why = f"{missing} is empty, though {there} is not; set the key {in_secret} of the Secret that secretName names"
        raise BadCredentials(_DOING, location, why)
    config: dict[str, str | bool] = {
        "region": location.region or environ.get("AWS_REGION") or _DEFAULT_REGION,
        "virtual_hosted_style_request": not location.path_style,
        "disable_tagging": True,
        "disable_bulk_delete": not bulk,
    }
    if key:
        config |= {"access_key_id": key, "secret_access_key": secret}
        if token := environ.get("AWS_SESSION_TOKEN"):
            config["token"] = token
    if location.endpoint:
        config["endpoint"] = _endpoint(location)
    if location.encryption:
        config["server_side_encryption"] = _encryption(location)
    if location.encryption_key and location.encryption.startswith("aws:kms"):
        config["sse_kms_key_id"] = location.encryption_key
    return S3Store(
        location.bucket,
        config=config,  # type: ignore[arg-type]  # the keys of a TypedDict
        client_options={"allow_http": location.endpoint.startswith("http:"), "timeout": _TIMEOUT},
        retry_config={"max_retries": _RETRIES, "retry_timeout": _RETRY_FOR},
    )


def _encryption(location: Location) -> str:
    """S3's encryption setting. Raises BadLocation for an unknown one."""
    if location.encryption not in _ENCRYPTIONS:
        why = f"{location.field}.sse: {location.encryption!r} must be one of {', '.join(_ENCRYPTIONS)}"
        raise BadLocation(_DOING, location, why)
    return location.encryption


_ENCRYPTIONS = ("AES256", "aws:kms", "aws:kms:dsse")


def _endpoint(location: Location) -> str:
    """The service's URL; unless the bucket is in the path, the library expects it in the host name."""
    if location.path_style:
        return location.endpoint.rstrip("/")
    scheme, _, rest = location.endpoint.rstrip("/").partition("://")
    return f"{scheme}://{location.bucket}.{rest}"


def _gcs(location: Location, environ: Mapping[str, str], _bulk: bool) -> Library:
    config: dict[str, str] = {}
    if key := environ.get("GCS_SERVICE_ACCOUNT_JSON_KEY"):
        config["service_account_key"] = key
    elif path := environ.get("GOOGLE_APPLICATION_CREDENTIALS"):
        config["application_credentials"] = path
    return GCSStore(
        location.bucket,
        config=config,  # type: ignore[arg-type]  # the keys of a TypedDict
        # the key decides on HTTPS, or Google's own address without one
        client_options={"allow_http": True, "timeout": _TIMEOUT},
        retry_config={"max_retries": _RETRIES, "retry_timeout": _RETRY_FOR},
    )


def _azure(location: Location, environ: Mapping[str, str], _bulk: bool) -> Library:
    account = location.account or environ.get("AZURE_STORAGE_ACCOUNT", "")
    if not account:
        why = "no AZURE_STORAGE_ACCOUNT; set spec.azblob.storageAccount, or that key of the Secret"
        raise BadCredentials(_DOING, location, why)
    config: dict[str, str] = {"account_name": account, **_azure_credentials(location, environ)}
    endpoint = environ.get("AZURE_STORAGE_ENDPOINT", "")
    if endpoint:
        config["endpoint"] = endpoint
    return AzureStore(
        location.bucket,
        config=config,  # type: ignore[arg-type]  # the keys of a TypedDict
        client_options={"allow_http": endpoint.startswith("http:"), "timeout": _TIMEOUT},
        retry_config={"max_retries": _RETRIES, "retry_timeout": _RETRY_FOR},
    )


_OF_CLIENT = {
    "client_id": "AZURE_CLIENT_ID",
    "client_secret": "AZURE_CLIENT_SECRET",
    "tenant_id": "AZURE_TENANT_ID",
}


def _azure_credentials(location: Location, environ: Mapping[str, str]) -> dict[str, str]:
    """SAS token, client credentials or account key, in this order; else the library's default."""
    if location.sas_token:
        return {"sas_key": location.sas_token}
    of_client = {key: value for key, name in _OF_CLIENT.items() if (value := environ.get(name))}
    if len(of_client) == len(_OF_CLIENT):
        return of_client
    if shared := environ.get("AZURE_STORAGE_KEY"):
        return {"account_key": shared}
    if "client_secret" in of_client:
        missing = ", ".join(name for key, name in _OF_CLIENT.items() if key not in of_client)
        raise BadCredentials(_DOING, location, f"the Secret that secretName names lacks {missing}")
    return {}


def _local(location: Location, _environ: Mapping[str, str], _bulk: bool) -> Library:
    if not location.bucket.startswith("/"):
        raise BadLocation(_DOING, location, "spec.local.volumeMount.mountPath is not absolute")
    return LocalStore(location.bucket, automatic_cleanup=True)


_CONNECT = {Kind.S3: _s3, Kind.GCS: _gcs, Kind.AZURE: _azure, Kind.LOCAL: _local}
