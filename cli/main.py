"""`tidb-operator`: runs the controller-manager, or a sandbox to try it in.

Each command imports only what it needs: otherwise `--version` and `--help` would wait a second for the sandbox and the
controllers.
"""
# ruff: noqa: PLC0415

import argparse
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from cli.failures import plainly
from controller_manager.version import project_version

BINARIES = "run containers whose program is in this directory, e.g. pd-server, as real processes (Linux)"

KEEP = "with --binaries: keep objects and volumes in this directory, and continue with its content"

_HELP = ("-h", "-help", "--help")


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command; exit code 1 after a failure, 2 for an unknown command."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    return plainly(lambda: _main(arguments))


def _main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(
        "tidb-operator", description=_description(), formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--version", "-V", action="version", version=project_version(), help="print the version")
    parser.add_argument("command", choices=tuple(_COMMANDS), help="`tidb-operator COMMAND --help` lists its flags")
    command = parser.parse_args(arguments[:1]).command
    return _COMMANDS[command](arguments[1:])


def _run(arguments: Sequence[str]) -> int:
    from cli import demo
    from controller_manager import main as controller_manager
    from controller_manager.flags import parse

    parser = _parser_of_run()
    own, flags = parser.parse_known_args(arguments)
    if set(flags) & set(_HELP):
        parser.print_help()
        print()
        parse(_HELP[-1:], os.environ, project_version())
    if own.sandbox:
        if own.exit_when_ready and not own.cluster:
            parser.error("--exit-when-ready needs --cluster FILE: without a cluster nothing gets Ready")
        return demo.run(demo.Demo(tuple(own.cluster), own.exit_when_ready, own.binaries), flags, os.environ)
    if own.cluster or own.exit_when_ready:
        parser.error("--cluster and --exit-when-ready need --sandbox; in a cluster, use kubectl apply")
    if own.binaries:
        parser.error("--binaries needs --sandbox; a cluster runs what is in the images")
    return controller_manager.main(flags)


def _parser_of_run() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        "tidb-operator run",
        usage="tidb-operator run [--sandbox [--cluster FILE... [--exit-when-ready]] [--binaries DIR]] "
        "[flags of the controller-manager]",
        add_help=False,
        allow_abbrev=False,
    )
    parser.add_argument("--sandbox", action="store_true", help="run in a sandbox of its own instead of a cluster")
    parser.add_argument(
        "--cluster",
        type=Path,
        nargs="+",
        action="extend",
        default=[],
        metavar="FILE",
        help="apply manifests (- is standard input), show their clusters come up",
    )
    parser.add_argument("--exit-when-ready", action="store_true", help="end when they are Ready, or with code 1")
    parser.add_argument("--binaries", type=Path, metavar="DIR", help=BINARIES)
    return parser


def _sandbox(arguments: Sequence[str]) -> int:
    from cli import sandbox

    if arguments[:1] and arguments[0] in (sandbox.FAULT, sandbox.HEAL):
        return sandbox.change_faults(arguments, os.environ)
    parser = argparse.ArgumentParser(
        "tidb-operator sandbox",
        description="A Kubernetes and TiDB world on loopback, for an operator in another terminal.",
        epilog="`tidb-operator sandbox fault --help` lists what you can break while it runs; `sandbox heal` mends it.",
    )
    parser.add_argument(
        "--dir", type=Path, default=Path(".sandbox"), help="where to write `kubeconfig` and `env` (default .sandbox)"
    )
    parser.add_argument("--binaries", type=Path, metavar="DIR", help=BINARIES)
    parser.add_argument("--keep", type=Path, metavar="DIR", help=KEEP)
    given = parser.parse_args(arguments)
    if given.keep is not None and given.binaries is None:
        parser.error("--keep needs --binaries: simulated servers keep nothing")
    return sandbox.serve(given.dir, given.binaries, given.keep)


def _manifests(arguments: Sequence[str]) -> int:
    import manifests

    parser = argparse.ArgumentParser(
        "tidb-operator manifests", description="Print the directory with CRDs, samples, RBAC, Deployment, monitoring."
    )
    parser.parse_args(arguments)
    print(manifests.DIRECTORY)
    return 0


def _certs(arguments: Sequence[str]) -> int:
    from cli import certs
    from cli.manifests import read

    parser = argparse.ArgumentParser(
        "tidb-operator certs", description="Print the Secrets with certificates that the clusters of a manifest need."
    )
    parser.add_argument("cluster", type=Path, metavar="FILE", help="the manifest")
    certs.add_arguments(parser)
    given = parser.parse_args(arguments)
    return certs.run(read(given.cluster), given.ca, given.days)


def _diff(arguments: Sequence[str]) -> int:
    from cli import diff

    return diff.run(arguments)


def _plan(arguments: Sequence[str]) -> int:
    from cli import plan

    return plan.run(arguments)


def _drill(arguments: Sequence[str]) -> int:
    from cli import drill

    return drill.run(arguments)


def _uninstall(arguments: Sequence[str]) -> int:
    from cli import uninstall

    return uninstall.run(arguments)


def _tidb(arguments: Sequence[str]) -> int:
    from cli.tidb import main as tidb

    return tidb.run(arguments, os.environ)


_COMMANDS: Mapping[str, Callable[[Sequence[str]], int]] = {
    "run": _run,
    "sandbox": _sandbox,
    "manifests": _manifests,
    "certs": _certs,
    "diff": _diff,
    "plan": _plan,
    "drill": _drill,
    "doctor": lambda arguments: _tidb(["doctor", *arguments]),
    "tidb": _tidb,
    "uninstall": _uninstall,
}


def _description() -> str:
    return """\
run        the controller-manager; all flags of tidb-controller-manager, and
           --sandbox          in a sandbox of its own instead of a cluster
           --cluster FILE...  with --sandbox: apply the manifests and show their clusters while they come up
           --exit-when-ready  with --cluster: end as soon as they are Ready, or with code 1 and the reason
           --binaries DIR     with --sandbox: as for `sandbox`
sandbox    a Kubernetes and TiDB world in one process
           --dir DIR          where to write `kubeconfig` and `env` (default .sandbox)
           --binaries DIR     run the containers whose program is in DIR, such as pd-server, as real processes (Linux)
           --keep DIR         with --binaries: keep objects and volumes in DIR, and continue with them at the next start
           fault, heal        break something in a sandbox that runs, such as `fault node-lost node-1`, and mend it
manifests  print the directory with CRDs, samples, RBAC, Deployment and monitoring
certs      FILE: print the Secrets with certificates that its clusters need, for spec.tlsCluster and spec.tidb.tlsClient
           --ca DIR           where the CA is, or is created (default ca)
           --days DAYS        how many days the certificates are valid (default 365)
diff       what the controller-manager would write now; nothing is written, and all of its flags are taken
           -n NAMESPACE       look at this namespace only
plan       --from OLD --to NEW: what a change of manifests would do to their clusters, by a rehearsal in a sandbox
drill      --from FILE --fail node/NAME: what the loss of a node, zone, pod or the operator would do to them
           --to NEW           ... in the middle of this change, with --during STEP, --at TIME or --every-moment
doctor     CLUSTER: say why a cluster is not as it should be, and the way out
uninstall  --check: say which objects would hang without the operator, and in which order to delete them
tidb       the plugin of kubectl, as `kubectl tidb`: see, restart, pause, drain, ... clusters (docs/kubectl-tidb.md)
"""
