"""Errors of object storage. Each names provider, bucket, prefix and the missing object or permission.

StorageError          an error without a class of its own; a retry may help
├── ObjectMissing     the object does not exist
├── BucketMissing     the bucket, the container or the volume does not exist
├── AccessDenied      the credentials lack a permission
├── BadCredentials    credentials are missing, or the service does not know them
├── BadLocation       the location in the spec cannot hold a backup
└── Unreachable       the service does not answer, or fails
"""

from backup_manager.storage.location import Location


class StorageError(Exception):
    """Raised if storage fails. `may_pass` is True if a retry may help.

    The message never contains a credential: `cause` has passed `backup_manager.storage.answers`.
    """

    may_pass = True

    def __init__(self, doing: str, location: Location, cause: str) -> None:
        super().__init__(f"cannot {doing} {location} ({location.provider}): {cause}")
        self.location = location
        self.cause = cause


class ObjectMissing(StorageError):
    """Raised when an object is not there."""

    may_pass = False


class BucketMissing(StorageError):
    """Raised when the bucket, the container or the volume is not there."""

    may_pass = False


class AccessDenied(StorageError):
    """Raised when the credentials lack a permission."""

    may_pass = False


class BadCredentials(StorageError):
    """Raised if there are no credentials, or the service does not know them."""

    may_pass = False


class BadLocation(StorageError):
    """Raised if a backup cannot be at the location in the spec."""

    may_pass = False


class Unreachable(StorageError):
    """Raised if the service does not answer, or fails."""
