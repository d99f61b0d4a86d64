"""Whose the files of a backup are, besides (backup.md 3.9)."""

from apis.storage_providers import StorageProvider


def overlap(one: str, other: str) -> bool:
    """Whether what is below one path is below the other as well: then removing one takes from the other."""
    if not one or not other:
        return False
    first, second = f"{one.rstrip('/')}/", f"{other.rstrip('/')}/"
    return first.startswith(second) or second.startswith(first)


def same_store(one: StorageProvider, other: StorageProvider) -> bool:
    """Whether two objects may mean the same bucket or volume; when in doubt they do."""
    if one.s3 is not None and other.s3 is not None:
        return one.s3.endpoint.rstrip("/") == other.s3.endpoint.rstrip("/")
    if one.local is not None and other.local is not None:
        source, compared = (
            {key: value for key, value in each.volume.items() if key != "name"} for each in (one.local, other.local)
        )
        return source == compared
    return True
