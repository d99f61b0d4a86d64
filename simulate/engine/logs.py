"""Logs of simulated runs, which are suppressed."""

import logging

import structlog


def silence() -> None:
    """Suppress everything below critical."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
