import threading
from collections.abc import MutableMapping
from typing import Any

from informers.threads import join_all, start_thread
from tests.informers.support import DEADLINE, eventually


def test_25_1_threads_keep_the_process_and_who_is_late_is_named(logs: list[MutableMapping[str, Any]]) -> None:
    release = threading.Event()
    late = start_thread("late", lambda: release.wait(DEADLINE))
    joiner = start_thread("joiner", lambda: join_all([late], patience=0.01))
    eventually(lambda: bool(logs))
    release.set()
    joiner.join(DEADLINE)
    assert (False, False, False) == (late.daemon, late.is_alive(), joiner.is_alive())
    assert {"late"} == {entry["thread"] for entry in logs}
