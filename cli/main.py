"""`tidb-operator`: run the controller-manager, or a sandbox to try it in."""

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from cli import demo, sandbox
from controller_manager import main as controller_manager

_DESCRIPTION = """\
run       the controller-manager; all flags of tidb-controller-manager (see `tidb-operator run -help`), and
          --sandbox          in a sandbox of its own instead of a cluster
          --cluster FILE     with --sandbox: apply the manifest and show its clusters while they come up
          --exit-when-ready  with --cluster: end as soon as they are Ready
sandbox   a Kubernetes and TiDB world in one process
          --dir DIR          where to write `kubeconfig` and `env` (default .sandbox)
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command; its exit code."""
    parser = argparse.ArgumentParser(
        "tidb-operator", description=_DESCRIPTION, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("command", choices=("run", "sandbox"))
    arguments = list(sys.argv[1:] if argv is None else argv)
    command = parser.parse_args(arguments[:1]).command
    return _run(arguments[1:]) if command == "run" else _sandbox(arguments[1:])


def _run(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser("tidb-operator run", add_help=False, allow_abbrev=False)
    parser.add_argument("--sandbox", action="store_true")
    parser.add_argument("--cluster", type=Path)
    parser.add_argument("--exit-when-ready", action="store_true")
    own, flags = parser.parse_known_args(arguments)
    if own.sandbox:
        return demo.run(demo.Demo(own.cluster, own.exit_when_ready), flags, os.environ)
    if own.cluster or own.exit_when_ready:
        parser.error("--cluster and --exit-when-ready need --sandbox; in a cluster, use kubectl apply")
    return controller_manager.main(flags)


def _sandbox(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser("tidb-operator sandbox")
    parser.add_argument("--dir", type=Path, default=Path(".sandbox"))
    return sandbox.serve(parser.parse_args(arguments).dir)


if __name__ == "__main__":
    sys.exit(main())
