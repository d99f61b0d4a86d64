"""Programs that report their cost, measured alternately."""

import json
import subprocess
from collections.abc import Mapping
from statistics import median
from typing import TypeAlias

from bench.figures import note

ROUNDS = 5
_PATIENCE = 300.0

Reader: TypeAlias = list[str]
"""A command whose last line is JSON with numbers."""


def medians(readers: Mapping[str, Reader], rounds: int = ROUNDS) -> dict[str, dict[str, float]]:
    """The medians of each reader's numbers. Readers alternate, so that a slow minute of the machine affects all.

    A first round warms the server and is discarded.
    """
    results: dict[str, list[dict[str, float]]] = {name: [] for name in readers}
    for number in range(rounds + 1):
        for name, command in readers.items():
            result = _run(command)
            note(f"round {number or 'discarded'}: {name} {json.dumps(result)}")
            if number:
                results[name].append(result)
    return {name: {key: median(run[key] for run in runs) for key in runs[0]} for name, runs in results.items()}


def _run(command: Reader) -> dict[str, float]:
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, timeout=_PATIENCE)  # noqa: S603
    numbers: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return numbers
