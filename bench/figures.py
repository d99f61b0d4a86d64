"""Figures of this operator and a peer."""

import json
import sys

import structlog


def show(name: str, ours: float, peer: float | None, unit: str, peer_source: str = "") -> None:
    """Print one line: `name`, `ours`, `peer`, `ratio` (ours to peer), `unit`, and the source of the peer's figure."""
    figure: dict[str, object] = {"name": name, "ours": round(ours, 3), "unit": unit}
    if peer is not None:
        figure |= {"peer": peer, "ratio": round(ours / peer, 3) if peer else None, "peer_source": peer_source}
    print(json.dumps(figure), flush=True)  # noqa: T201  (this is the output)


def logs_to_stderr() -> None:
    """Keep stdout for figures; log only failures."""
    structlog.configure(
        wrapper_class=structlog.make_filtering_bound_logger("warning"),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
    )


def note(text: str) -> None:
    """Inform the reader of the progress, apart from the figures."""
    print(text, file=sys.stderr, flush=True)  # noqa: T201
