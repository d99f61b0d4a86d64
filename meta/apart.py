"""Actions on several objects, of which one that fails does not stop the others."""

from collections.abc import Iterable

from kube.actions import Decision
from kube.errors import ApiError


async def conclude_all(decisions: Iterable[Decision[None]]) -> None:
    """Conclude all decisions, then raise the first ApiError. Other exceptions are raised immediately.

    `decisions` are made one by one, so that none is left over when one raises.
    """
    refused: list[ApiError] = []
    for decision in decisions:
        try:
            await decision
        except ApiError as error:
            refused.append(error)
    if refused:
        raise refused[0]
