"""The distribution of the tests among the processes of `make test` (`--dist loadfile`). Some tests compute, others wait
for their own processes. Every other process of pytest begins with one kind, the rest with the other kind, so that the
cores are busy throughout; and the longest come first, so that nothing long is left at the end."""

import pytest
from xdist.remote import Producer
from xdist.scheduler import LoadFileScheduling, Scheduling
from xdist.workermanage import WorkerController

_TOGETHER = ("tests/contract/", "tests/informer_contract/", "tests/examples/")
"""Packages whose files share worlds, which are booted once for all of them."""

_WAITS = ("tests/e2e/", *_TOGETHER)

LONGEST = (
    "tests/e2e/test_operating.py",
    "tests/contract/",
    "tests/e2e/test_operations_guide.py",
    "tests/e2e/test_split_brain.py",
    "tests/monitoring/test_recorded.py",
    "tests/informer_contract/",
    "tests/e2e/test_command.py",
    "tests/packaging/test_dockerfile.py",
    "tests/packaging/test_release.py",
    "tests/e2e/test_upstream.py",
    "tests/controllers/tidbcluster/test_across.py",
    "tests/simulate/test_campaigns.py",
    "tests/security/test_hostile_servers.py",
    "tests/e2e/test_tls.py",
    "tests/e2e/test_volumes.py",
    "tests/e2e/test_kills.py",
    "tests/e2e/test_causes.py",
    "tests/silence/test_cells.py",
    "tests/controllers/tidbcluster/test_upgrade.py",
    "tests/controllers/tidbcluster/test_scaling_in.py",
    "tests/e2e/test_secrets.py",
)
"""The longest tests, the longest first."""


def unit_of(test: str) -> str:
    """The unit that one process runs: a file, or a package."""
    return next((package for package in _TOGETHER if test.startswith(package)), test.partition("::")[0])


def order_of(unit: str, *, waiting_first: bool) -> tuple[bool, int]:
    """The place of a unit among those that are left, for a process that begins with what waits, or with the rest."""
    place = LONGEST.index(unit) if unit in LONGEST else len(LONGEST)
    return unit.startswith(_WAITS) != waiting_first, place


class _Shares(LoadFileScheduling):  # type: ignore[misc]  # xdist has no types
    """Hands out units in an order that depends on the process."""

    def _split_scope(self, nodeid: str) -> str:
        return unit_of(nodeid)

    def _assign_work_unit(self, node: WorkerController) -> None:
        waiting_first = self.nodes.index(node) % 2 == 0
        first = min(self.workqueue, key=lambda unit: order_of(unit, waiting_first=waiting_first))
        self.workqueue.move_to_end(first, last=False)
        super()._assign_work_unit(node)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> Scheduling | None:
    """The order of units where files are shared out; xdist's own scheduling elsewhere."""
    return _Shares(config, log) if config.getvalue("dist") == "loadfile" else None
