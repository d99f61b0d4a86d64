"""The part of a Backup for a place in one of the servers: storage, keys and environment."""

from dataclasses import dataclass

from backup_manager.storage.location import Kind
from kube.objects import Json
from tests.backup_manager.storage.conftest import Place

SECRET = "keys"


@dataclass(frozen=True, slots=True)
class StorageOfSpec:
    """`storage` and `env` are parts of a spec; `keys` is the content of the Secret SECRET in `storage`."""

    storage: Json
    keys: dict[str, str]
    env: list[Json]


def storage_of_spec(place: Place) -> StorageOfSpec:
    """The storage for a bucket in S3, Google Cloud Storage or Azure Blob Storage."""
    location, environ = place.location, place.server.environ
    common = {"prefix": location.prefix, "secretName": SECRET}
    match location.kind:
        case Kind.S3:
            storage = {"provider": "ceph", "bucket": location.bucket, "endpoint": location.endpoint}
            names = {"access_key": "AWS_ACCESS_KEY_ID", "secret_key": "AWS_SECRET_ACCESS_KEY"}
            keys = {key: environ[name] for key, name in names.items()}
            return StorageOfSpec({"s3": storage | common}, keys, [])
        case Kind.GCS:
            storage = {"projectId": "test", "bucket": location.bucket}
            return StorageOfSpec(
                {"gcs": storage | common}, {"credentials": environ["GCS_SERVICE_ACCOUNT_JSON_KEY"]}, []
            )
        case Kind.AZURE:
            keys = {name: environ[name] for name in ("AZURE_STORAGE_ACCOUNT", "AZURE_STORAGE_KEY")}
            env = [{"name": name, "value": environ[name]} for name in ("AZURE_STORAGE_ENDPOINT",)]
            return StorageOfSpec({"azblob": {"container": location.bucket} | common}, keys, env)
        case _:
            raise ValueError(f"{location}: a volume is told otherwise")
