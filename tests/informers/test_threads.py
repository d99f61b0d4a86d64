import subprocess
import sys
import threading
from collections.abc import MutableMapping
from typing import Any

import pytest

from informers.threads import join_all, start_thread
from tests.informers.support import DEADLINE, eventually


@pytest.mark.rule("25.1")
def test_a_thread_that_is_late_is_named_and_does_not_keep_the_process(
    logs: list[MutableMapping[str, Any]],
) -> None:
    release = threading.Event()
    late = start_thread("late", lambda: release.wait(DEADLINE))
    joiner = start_thread("joiner", lambda: join_all([late], patience=0.01))
    eventually(lambda: bool(logs))
    release.set()
    joiner.join(DEADLINE)
    assert (True, False, False) == (late.daemon, late.is_alive(), joiner.is_alive())
    assert {"late"} == {entry["thread"] for entry in logs}


_PROGRAM = """
import threading
from informers.factory import SharedInformerFactory
from informers.handlers import ResourceEventHandlerFuncs
from kube.resources import PODS
from ports.clock import SystemClock
from ports.randomness import SystemRandomness
from ports.stopping import Stop
from tests.informers.fake_source import FakeSource, pod

source, stop, called = FakeSource(), Stop(), threading.Event()
source.add(pod("a"))
factory = SharedInformerFactory(source.client(), SystemClock(), SystemRandomness())
block = lambda _: (called.set(), threading.Event().wait())
factory.informer_for(PODS).add_event_handler(ResourceEventHandlerFuncs(on_add=block))
factory.start(stop)
factory.wait_for_cache_sync(stop)
called.wait(5)
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("last_line", "code"), [("raise RuntimeError('a defect')", 1), ("raise SystemExit(3)", 3), ("", 0)]
)
@pytest.mark.rule("25.1")
def test_a_program_ends_with_its_main_thread_though_a_handler_blocks(last_line: str, code: int) -> None:
    ended = subprocess.run([sys.executable, "-c", _PROGRAM + last_line], timeout=30, capture_output=True, check=False)

    assert code == ended.returncode
