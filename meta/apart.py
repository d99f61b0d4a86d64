"""Actions on several objects, of which one that fails does not stop the others."""

from collections.abc import Callable, Iterable

from kube.errors import ApiError


def each_apart(acts: Iterable[Callable[[], None]]) -> None:
    """Run all actions, then raise the first ApiError. Other exceptions are raised immediately."""
    refused: list[ApiError] = []
    for act in acts:
        try:
            act()
        except ApiError as error:
            refused.append(error)
    if refused:
        raise refused[0]
