"""Loggers of short commands."""

import subprocess
import sys

from tests.e2e.operators import ROOT


def test_a_command_logs_on_stderr() -> None:
    code = "from ports.lazy_log import get_logger; get_logger('x').info('signal received'); print('result')"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert ("result\n", True) == (done.stdout, "signal received" in done.stderr)
