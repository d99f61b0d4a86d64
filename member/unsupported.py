"""What a spec may contain and this version does not manage yet. It says so instead of staying silent."""

from apis.tidbcluster import TidbCluster


def unsupported(tc: TidbCluster) -> list[str]:
    """The parts of the spec that nothing is made for, by their names in the spec, in the order of one reconcile."""
    spec = tc.spec
    runs_microservices = bool(spec.pdms) and spec.pd is not None and spec.pd.mode == "ms"
    wants_password = bool(spec.tidb and spec.tidb.initializer and spec.tidb.initializer.create_password)
    parts = {
        "pdms": runs_microservices,
        "tiproxy": spec.tiproxy is not None,
        "tiflash": spec.tiflash is not None,
        "pump": spec.pump is not None,
        "tidb.initializer": wants_password,
        "ticdc": spec.ticdc is not None,
    }
    return [name for name, present in parts.items() if present]
