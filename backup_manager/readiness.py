"""Preparation of a job's environment; an unusable one is reported in the object, not only in the log."""

from collections.abc import Mapping
from dataclasses import replace

from backup_manager.environment import prepared
from backup_manager.flags import Arguments
from backup_manager.jobs import job_for
from backup_manager.outcomes import NotBuilt
from backup_manager.outside import Outside
from kube.resources import BACKUPS, RESTORES, Resource

_OBJECTS: Mapping[str, Resource] = {"backupName": BACKUPS, "restoreName": RESTORES}
"""The objects with conditions, by the flag with their name."""

REASON = "KMSNotOffered"


def ready(arguments: Arguments, outside: Outside) -> Outside:
    """The job's outside with a prepared environment. Raises NotBuilt; RecordGone, ApiError, TransportError."""
    try:
        return replace(outside, environ=prepared(outside.environ))
    except NotBuilt as error:
        for flag, resource in _OBJECTS.items():
            if flag in arguments.values:
                job = job_for(outside, resource, arguments.text("namespace"), arguments.text(flag))
                job.condition("CleanFailed" if arguments.command == "clean" else "Failed", REASON, str(error))
        raise
