"""Randomness as an argument, so that a seed determines a run."""

import random  # noqa: TID251  (this is the port)
import uuid
from typing import Protocol


class Randomness(Protocol):
    """Draws for jitter, identities and simulated ids."""

    def uniform(self, low: float, high: float) -> float:
        """A float in [low, high]."""

    def integer(self, low: int, high: int) -> int:
        """An integer in [low, high]."""

    def uuid(self) -> str:
        """A random UUID in its canonical text form."""


class SeededRandomness:
    """Reproducible draws from a seed."""

    def __init__(self, seed: int | str) -> None:
        self._random = random.Random(seed)

    def uniform(self, low: float, high: float) -> float:
        return self._random.uniform(low, high)

    def integer(self, low: int, high: int) -> int:
        return self._random.randint(low, high)

    def uuid(self) -> str:
        """A version-4 UUID from the seeded draws."""
        return str(uuid.UUID(int=self._random.getrandbits(128), version=4))


class SystemRandomness(SeededRandomness):
    """Draws seeded by the operating system."""

    def __init__(self) -> None:
        super().__init__(random.SystemRandom().getrandbits(128))


class SecretRandomness(SeededRandomness):
    """Unpredictable draws from the operating system, for passwords."""

    def __init__(self) -> None:
        self._random = random.SystemRandom()
