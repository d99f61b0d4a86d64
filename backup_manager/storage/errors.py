"""What may go wrong with object storage, named by provider, bucket, prefix and what is missing.

StorageError          what no class below names; trying again may help
├── ObjectMissing     the object is not there
├── BucketMissing     the bucket, the container or the volume is not there
├── AccessDenied      the credentials lack a permission
├── BadCredentials    there are none, or they are not known to the service
├── BadLocation       what the spec says can't be the place of a backup
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
