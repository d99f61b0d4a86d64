"""What is done for one object after another: what the API server refuses of one keeps no other waiting."""

from collections.abc import Callable, Iterable

from kube.errors import ApiError


def each_apart(acts: Iterable[Callable[[], None]]) -> None:
    """Do all of them. Raises the first ApiError when each has had its turn, and what else they raise at once."""
    refused: list[ApiError] = []
    for act in acts:
        try:
            act()
        except ApiError as error:
            refused.append(error)
    if refused:
        raise refused[0]
