"""The failures that a foreign function may raise: a handler, a sync, a transform, a callback."""

from asyncio import CancelledError
from typing import Final

ANY_FAILURE: Final = (Exception, SystemExit, GeneratorExit, CancelledError)
"""The exceptions that fail one call of a foreign function, after which its caller continues.

`sys.exit()` and task cancellation concern the function's own process or task; here they would end one of the operator's
threads without a log line. All other exceptions outside Exception, KeyboardInterrupt above all, pass and end the
process.
"""
