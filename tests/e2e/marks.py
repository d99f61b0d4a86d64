"""The worlds in which a test runs that does not need both."""

import os

import pytest

from tests.controlplane.processes import missing_binaries

_REAL = pytest.param("real", marks=pytest.mark.controlplane)
_IS_BUILT = not missing_binaries() or os.environ.get("REQUIRE_EVERYTHING")

ON_THE_REAL_ONE = pytest.mark.parametrize("place", [_REAL], indirect=True)

IN_ONE_WORLD = pytest.mark.parametrize("place", [_REAL if _IS_BUILT else "sandbox"], indirect=True)
"""The real one where it was built: in the sandbox the same is tested in one process, and for much more."""
