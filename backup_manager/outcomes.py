"""How a job ends other than well."""


class JobFailed(Exception):
    """Raised when the work is over for good: a condition with this reason and message is written."""

    def __init__(self, reason: str, message: str, condition: str = "Failed") -> None:
        super().__init__(f"{reason}: {message}")
        self.reason = reason
        self.message = message
        self.condition = condition


class Stopped(Exception):
    """Raised when a signal ended the work: no condition says that it failed, and another pod goes on with it."""


class NotBuilt(Exception):
    """Raised for what v1.6 does and this version does not do yet."""

    def __init__(self, what: str) -> None:
        super().__init__(f"{what} is not built yet; use the backup-manager of TiDB Operator v1.6 for it")


class Unusable(Exception):
    """Raised when what the command was told cannot be worked on; there is nothing to write a condition to."""
