"""The command lines of Dumpling and TiDB Lightning, as in v1.6 except for the password (backup.md 7.9). Pure."""

from pathlib import Path

from apis.backups import BackupSpec, DumplingConfig
from apis.restores import RestoreSpec
from backup_manager.database import Login

_SYSTEM = "mysql|test|INFORMATION_SCHEMA|PERFORMANCE_SCHEMA|METRICS_SCHEMA|INSPECTION_SCHEMA"
_USUAL_FILTER = ["*.*", f"!/^({_SYSTEM})$/.*"]
_USUAL_OPTIONS = ["--threads=16", "--rows=10000"]


def dumpling(spec: BackupSpec) -> str:
    """The path of Dumpling, in this image or as installed by an init container."""
    return "/var/lib/dumpling-bin/dumpling" if spec.tool_image else "/dumpling"


def lightning(spec: RestoreSpec) -> str:
    """The path of TiDB Lightning."""
    return "/var/lib/lightning-bin/tidb-lightning" if spec.tool_image else "/tidb-lightning"


def dumpling_arguments(spec: BackupSpec, login: Login, output: Path) -> list[str]:
    """The arguments of an export."""
    config = spec.dumpling or DumplingConfig()
    return [
        f"--output={output}",
        f"--host={login.host}",
        f"--port={login.port}",
        f"--user={login.user}",
        *_each("--filter", spec.table_filter or config.table_filter or _USUAL_FILTER),
        *(config.options or _USUAL_OPTIONS),
        *_tls(login),
    ]


def lightning_arguments(spec: RestoreSpec, login: Login, source: Path, config: Path) -> list[str]:
    """The arguments of an import; `config` has what arguments must not show."""
    return [
        f"--config={config}",
        "--status-addr=0.0.0.0:8289",
        "--backend=tidb",
        "--server-mode=false",
        "--log-file=-",
        f"--tidb-user={login.user}",
        f"--tidb-host={login.host}",
        f"--d={source}",
        f"--tidb-port={login.port}",
        *_each("-f", spec.table_filter),
        *_tls(login),
    ]


def _each(name: str, values: list[str]) -> list[str]:
    return [word for value in values for word in (name, value)]


def _tls(login: Login) -> list[str]:
    if login.tls is None:
        return []
    authority = [f"--ca={login.tls}/ca.crt"] if login.verifies else []
    return [*authority, f"--cert={login.tls}/tls.crt", f"--key={login.tls}/tls.key"]
