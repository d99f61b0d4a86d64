"""Errors of the API server that a reflector treats specially (informers-workqueue.md REF-13, REF-21)."""

from kube.errors import ApiError, ServerTimeout, TooManyRequests

_TOO_LARGE = "Too large resource version"


def is_too_many_requests(error: Exception) -> bool:
    """True if the server sheds load."""
    return isinstance(error, TooManyRequests) or (isinstance(error, ApiError) and error.code == 429)


def is_too_large(error: Exception) -> bool:
    """True if the server has not reached the requested version yet (REF-13)."""
    if not isinstance(error, ApiError):
        return False
    causes = error.details.causes
    if any(cause.reason == "ResourceVersionTooLarge" for cause in causes):
        return True
    return isinstance(error, ServerTimeout) and (
        _TOO_LARGE in error.message or any(_TOO_LARGE in cause.message for cause in causes)
    )
