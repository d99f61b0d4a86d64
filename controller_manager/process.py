"""A program with controllers, from its command line to its exit code."""

import gc
import os
import sys
from collections.abc import Callable, Mapping, Sequence

import structlog

from controller_manager.health import ListenError
from controller_manager.logs import configure_logs, log_uncaught_exceptions
from controller_manager.manager import Build, ControllerManager
from controller_manager.observing import DRY_RUN
from controller_manager.process_options import parse_process_options
from controller_manager.redaction import redact_text
from controller_manager.shutdown import stopping_on_signals
from controller_manager.version import project_version
from kube.config import ClusterConfig, ConfigError
from kube.user_config import load
from ports.clock import Clock, SystemClock
from ports.randomness import SystemRandomness
from ports.stopping import Stop

log = structlog.get_logger(__name__)

_ALLOCATIONS = 50_000
"""The number of new containers before the next garbage collection: JSON trees have no cycles (informers-workqueue.md
TH-7).
"""

Make = Callable[[ClusterConfig], ControllerManager]
"""Assembles the process for one cluster. Raises ConfigError."""


def run_controllers(
    name: str,
    build: Build,
    argv: Sequence[str] | None = None,
    environ: Mapping[str, str] | None = None,
    *,
    version: str = "",
) -> int:
    """Run controllers until a signal ends the process; return its exit code.

    `build` creates them. `name` is the name of the program, of its Lease, and of the source of its events; `version` is
    the output of `-version`, by default this distribution's. Flags set everything else (`-help`), e.g. the cluster, the
    number of workers, and the address of metrics and health. Call it in the main thread.
    """
    environ = os.environ if environ is None else environ
    clock = SystemClock()
    options = parse_process_options(name, sys.argv[1:] if argv is None else argv, environ, version or project_version())
    configure_logs(options.v, clock=clock, always=DRY_RUN if options.observe else None)
    log_uncaught_exceptions()
    log.info("starting", program=name)

    def make(config: ClusterConfig) -> ControllerManager:
        return ControllerManager(options, config, environ, clock, SystemRandomness(), build=build)

    return run_process(name, options.kubeconfig, environ, clock, make)


def run_process(name: str, kubeconfig: str, environ: Mapping[str, str], clock: Clock, make: Make) -> int:
    """Connect, assemble the process and run it until a signal ends it; return its exit code."""
    gc.set_threshold(_ALLOCATIONS)
    try:
        config = load(kubeconfig, environ, clock)
        log.info("using cluster", server=config.server, source=config.source)
        manager = make(config)
        log_uncaught_exceptions(lambda _thread: manager.fail())
        with stopping_on_signals(stop := Stop()):
            return manager.run(stop)
    except (ConfigError, ListenError) as error:
        _report_failed_start(name, str(error))
        return 1


def _report_failed_start(name: str, problem: str) -> None:
    """Report why the process cannot start: as a sentence on a terminal, and as a log line."""
    if sys.stderr.isatty():
        # printed beside the log, which has its own redaction
        print(f"{name}: {redact_text(problem)}", file=sys.stderr)  # noqa: T201
    else:
        log.critical("cannot start", problem=problem)
