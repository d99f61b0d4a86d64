"""What may go wrong in a function that somebody else has written: a handler, a sync, a transform, a callback."""

from asyncio import CancelledError
from typing import Final

ANY_FAILURE: Final = (Exception, SystemExit, GeneratorExit, CancelledError)
"""What costs the one call that raised it, where the caller goes on by itself.

`sys.exit()` and the cancellation of a task mean a process or a task of their own; in a thread of ours they would end
that thread without a word. All else that is no Exception, KeyboardInterrupt foremost, passes and ends the process.
"""
