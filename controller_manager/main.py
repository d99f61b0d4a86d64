"""The command `tidb-controller-manager`, also `python -m controller_manager` and `tidb-operator run`."""

import os
import sys
from collections.abc import Mapping, Sequence
from importlib.metadata import version

import structlog

from controller_manager.flags import flag_lines, parse
from controller_manager.health import ListenError
from controller_manager.logs import configure_logs, log_uncaught_exceptions
from controller_manager.manager import Manager
from controller_manager.redaction import redact_text
from controller_manager.shutdown import stopping_on_signals
from kube.config import ConfigError, load
from ports.clock import SystemClock
from ports.randomness import SystemRandomness
from ports.stopping import Stop

log = structlog.get_logger(__name__)


def main(argv: Sequence[str] | None = None, environ: Mapping[str, str] | None = None) -> int:
    """Run the controller-manager until a signal ends it; the exit code."""
    environ = os.environ if environ is None else environ
    clock = SystemClock()
    program = version("tidb-operator-py")
    options = parse(sys.argv[1:] if argv is None else argv, environ, program)
    configure_logs(options.v, clock=clock)
    log_uncaught_exceptions()
    log.info("starting tidb-controller-manager", version=program)
    for line in flag_lines(options):
        log.debug(line)
    try:
        config = load(options.kubeconfig, environ, clock)
        log.info("using cluster", server=config.server, source=config.source)
        manager = Manager(options, config, environ, clock, SystemRandomness())
        with stopping_on_signals(stop := Stop()):
            return manager.run(stop)
    except (ConfigError, ListenError) as error:
        # beside the log, which redacts by itself
        print(f"tidb-controller-manager: {redact_text(str(error))}", file=sys.stderr)  # noqa: T201
        return 1
