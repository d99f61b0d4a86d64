"""Loggers for modules that short commands import: the first line loads structlog, and rich and asyncio with it.

`kubectl tidb status` logs nothing, and would spend a third of its CPU on that import. A command that logs after all,
such as one that a signal ends, does so on stderr: stdout is for its result.
"""

import sys
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from structlog.typing import FilteringBoundLogger


class _Logger:
    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, method: str) -> Any:
        import structlog  # noqa: PLC0415

        if not structlog.is_configured():
            structlog.configure(logger_factory=lambda *_: structlog.PrintLogger(sys.stderr))
        return getattr(structlog.get_logger(self._name), method)


def get_logger(name: str) -> "FilteringBoundLogger":
    """Like `structlog.get_logger`."""
    return cast("FilteringBoundLogger", _Logger(name))
