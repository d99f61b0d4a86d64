"""The preparation of the environment, as in v1.6's entrypoint (backup.md 7.1)."""

import os
from collections.abc import Mapping
from pathlib import Path

from backup_manager.key_management import decrypted

GOOGLE_CREDENTIALS = Path("/tmp/google-credentials.json")  # noqa: S108  (where v1.6 has it)
TERMINATED = Path("/tmp/pod/main-terminated")  # noqa: S108  (where sidecars look for it)


def prepared(environ: Mapping[str, str], credentials: Path = GOOGLE_CREDENTIALS) -> dict[str, str]:
    """The environment of the job and its child processes, decrypted; a Google key goes into a private file.

    Raises Undecrypted for values that KMS does not decrypt.
    """
    found = decrypted(environ)
    if key := found.get("GCS_SERVICE_ACCOUNT_JSON_KEY"):
        write_for_us_alone(credentials, key)
        found["GOOGLE_APPLICATION_CREDENTIALS"] = str(credentials)
    elif not _is_there(found.get("GOOGLE_APPLICATION_CREDENTIALS", "")):
        found.pop("GOOGLE_APPLICATION_CREDENTIALS", None)
    return found


def write_for_us_alone(path: Path, content: str) -> None:
    """Write a file with a secret, readable only by this user, replacing an existing one."""
    path.unlink(missing_ok=True)
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
        file.write(content)


def notify_sidecars(marker: Path = TERMINATED) -> None:
    """Let sidecars of a service mesh end, which wait for this file if the pod has a place for it."""
    if marker.parent.is_dir():
        marker.touch()


def _is_there(path: str) -> bool:
    try:
        return bool(path) and Path(path).stat().st_size > 0
    except OSError:
        return False
