"""Unsuccessful outcomes of a job."""


class JobFailed(Exception):
    """Raised if the work has failed for good: a condition with this reason and message is written."""

    def __init__(self, reason: str, message: str, condition: str = "Failed") -> None:
        super().__init__(f"{reason}: {message}")
        self.reason = reason
        self.message = message
        self.condition = condition


class Stopped(Exception):
    """Raised if a signal ended the work: no condition reports a failure, and another pod continues."""


class NotBuilt(Exception):
    """Raised for a feature of v1.6 that this version does not have yet."""

    def __init__(self, what: str) -> None:
        super().__init__(f"{what} is not built yet; use the backup-manager of TiDB Operator v1.6 for it")


class Undecrypted(Exception):
    """Raised if a value of `spec.useKMS` cannot be decrypted; the message names the variable."""


class Unusable(Exception):
    """Raised if the command's arguments cannot be used and there is no object for a condition."""
