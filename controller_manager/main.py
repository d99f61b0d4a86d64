"""The command `tidb-controller-manager`, also `python -m controller_manager` and `tidb-operator run`."""

import os
import sys
from collections.abc import Mapping, Sequence

import structlog

from controller_manager.flags import PROGRAM, flag_lines, parse
from controller_manager.logs import configure_logs, log_uncaught_exceptions
from controller_manager.manager import ControllerManager
from controller_manager.observing import DRY_RUN
from controller_manager.process import run_process
from controller_manager.tidb import tidb_controller_manager
from controller_manager.version import project_version
from kube.config import ClusterConfig
from ports.clock import SystemClock
from ports.randomness import SystemRandomness

log = structlog.get_logger(__name__)


def main(argv: Sequence[str] | None = None, environ: Mapping[str, str] | None = None) -> int:
    """Run the controller-manager until a signal ends it; return the exit code."""
    environ = os.environ if environ is None else environ
    clock = SystemClock()
    options = parse(sys.argv[1:] if argv is None else argv, environ, project_version())
    configure_logs(options.v, clock=clock, always=DRY_RUN if options.observe else None)
    log_uncaught_exceptions()
    log.info("starting tidb-controller-manager", version=project_version())
    for line in flag_lines(options):
        log.debug(line)
    for warning in options.warnings:
        log.warning("a flag has no effect", why=warning)

    def make(config: ClusterConfig) -> ControllerManager:
        return tidb_controller_manager(options, config, environ, clock, SystemRandomness())

    return run_process(PROGRAM, options.kubeconfig, environ, clock, make)
