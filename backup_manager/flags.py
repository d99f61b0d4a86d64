"""The command line of `backup-manager`, with v1.6's flags (backup.md 7.2)."""

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

PROGRAM: Final = "backup-manager"

_BOOL = {"true": True, "t": True, "1": True, "false": False, "f": False, "0": False}

Default = str | bool

_TLS: Mapping[str, Default] = {"client-tls": False, "cluster-tls": False, "skipClientCA": False}

FLAGS: Mapping[str, Mapping[str, Default]] = {
    "backup": {
        "namespace": "",
        "backupName": "",
        "tikvVersion": "4.0",
        **_TLS,
        "mode": "snapshot",
        "subcommand": "log-start",
        "commit-ts": "0",
        "truncate-until": "0",
        "initialize": False,
    },
    "export": {
        "namespace": "",
        "backupName": "",
        "bucket": "",
        "client-tls": False,
        "skipClientCA": False,
        "storageType": "",
    },
    "restore": {
        "namespace": "",
        "restoreName": "",
        "tikvVersion": "4.0",
        **_TLS,
        "mode": "snapshot",
        "pitrRestoredTs": "0",
        "prepare": False,
        "target-az": "",
        "use-fsr": False,
        "abort": False,
        "replicationPhase": "0",
    },
    "import": {
        "namespace": "",
        "restoreName": "",
        "client-tls": False,
        "skipClientCA": False,
        "backupPath": "",
    },
    "clean": {"namespace": "", "backupName": ""},
    "verify": {"namespace": "", "backupName": "", "checksums": False},
    "compact": {"namespace": "", "resourceName": ""},
}
"""The flags of each command and their defaults; v1.6 has no `verify`."""

CHOICES: Mapping[tuple[str, str], Sequence[str]] = {
    ("backup", "mode"): ("snapshot", "log", "volume-snapshot"),
    ("backup", "subcommand"): ("log-start", "log-stop", "log-truncate", "log-pause", "log-resume"),
    ("restore", "replicationPhase"): ("0", "1", "2"),
    ("restore", "mode"): ("snapshot", "pitr", "volume-snapshot"),
}
"""The allowed values of flags with few values; an empty one counts as missing."""

MAY_BE_EMPTY = frozenset({"target-az", "use-fsr"})


@dataclass(frozen=True, slots=True)
class Tls:
    """The servers to talk to over TLS, with certificates that the Job mounts, and whether TiDB's is verified."""

    client: bool = False
    cluster: bool = False
    skip_client_ca: bool = False


NO_TLS: Final = Tls()


@dataclass(frozen=True, slots=True)
class Arguments:
    """A parsed command line: the command, the kubeconfig (empty: the pod's own account), and the flags."""

    command: str
    kubeconfig: str
    values: Mapping[str, Default]

    def text(self, name: str) -> str:
        """The value of a text flag."""
        return str(self.values[name])

    def is_set(self, name: str) -> bool:
        """The value of a boolean flag."""
        return bool(self.values[name])

    @property
    def tls(self) -> Tls:
        """The TLS flags; a command without one of them does not use that TLS."""
        client, cluster, skip_client_ca = (bool(self.values.get(name, False)) for name in _TLS)
        return Tls(client=client, cluster=cluster, skip_client_ca=skip_client_ca)


class MissingFlags(Exception):
    """Raised for required flags that are empty."""

    def __init__(self, names: Sequence[str]) -> None:
        super().__init__(f"error: some flags [{' '.join(f'--{name}' for name in names)}] are missing.")


def parse(argv: Sequence[str]) -> Arguments:
    """Parse the command line. Raises MissingFlags; SystemExit with a message for an unreadable one."""
    found = vars(_parser().parse_args(argv))
    command = str(found.pop("command"))
    kubeconfig = str(found.pop("kubeconfig"))
    if empty := [name for name in FLAGS[command] if found[name] == "" and name not in MAY_BE_EMPTY]:
        raise MissingFlags(empty)
    return Arguments(command, kubeconfig, {name: found[name] for name in FLAGS[command]})


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(PROGRAM, description="Work for a Backup or Restore, in the pod of its Job.")
    help_of_kubeconfig = "path of a kubeconfig; empty: the service account of the pod"
    parser.add_argument("-k", "--kubeconfig", default="", help=help_of_kubeconfig)
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for command, flags in FLAGS.items():
        inner = commands.add_parser(command, allow_abbrev=False)
        # a flag of the program may also follow the command
        inner.add_argument("-k", "--kubeconfig", default=argparse.SUPPRESS, help=help_of_kubeconfig)
        for name, default in flags.items():
            if isinstance(default, bool):
                inner.add_argument(f"--{name}", dest=name, type=_bool, nargs="?", const=True, default=default)
            else:
                choices = CHOICES.get((command, name))
                inner.add_argument(f"--{name}", dest=name, default=default, choices=choices and (*choices, ""))
    return parser


def _bool(text: str) -> bool:
    """Parse a boolean like Go."""
    try:
        return _BOOL[text.lower()]
    except KeyError:
        raise argparse.ArgumentTypeError(f"{text!r} is neither true nor false") from None
