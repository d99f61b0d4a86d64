"""Problems of the TidbCluster CRD: missing, or older than this version."""

from collections.abc import Iterator, Mapping

from apis.crd import TIDB_CLUSTER, definition
from cli.doctor.facts import Facts, name_of
from cli.doctor.finding import Cause, Severity, Sign
from kube.objects import Json
from kube.resources import CUSTOM_RESOURCE_DEFINITIONS, TIDB_CLUSTERS


def _without_definition(facts: Facts) -> Iterator[Sign]:
    if facts.knows(CUSTOM_RESOURCE_DEFINITIONS) and not _definition(facts):
        yield Sign(f"CustomResourceDefinition {TIDB_CLUSTERS}", "does not exist")


def _definition(facts: Facts) -> Json:
    found = facts.all(CUSTOM_RESOURCE_DEFINITIONS)
    return next((each for each in found if name_of(each) == str(TIDB_CLUSTERS)), {})


def _older_definition(facts: Facts) -> Iterator[Sign]:
    installed = _definition(facts)
    if not installed:
        return
    missing = list(_missing(_schema(definition(TIDB_CLUSTER)), _schema(installed), ""))
    if missing:
        more = f" and {len(missing) - 3} more" if len(missing) > 3 else ""
        message = f"does not have {', '.join(missing[:3])}{more}: what users write there is dropped"
        yield Sign(f"CustomResourceDefinition {TIDB_CLUSTERS}", message, "spec.versions.schema")


def _schema(crd: Json) -> Json:
    versions = (
        version for version in crd["spec"].get("versions") or () if version.get("name") == TIDB_CLUSTERS.version
    )
    found: Json = next(((version.get("schema") or {}).get("openAPIV3Schema") or {} for version in versions), {})
    return found


def _missing(wanted: Json, there: Json, path: str) -> Iterator[str]:
    """The fields that a schema lacks, by path; nothing is missing below a part that preserves unknown fields."""
    if there.get("x-kubernetes-preserve-unknown-fields"):
        return
    known: Mapping[str, Json] = there.get("properties") or {}
    for name, schema in (wanted.get("properties") or {}).items():
        at = f"{path}.{name}" if path else name
        if name not in known and not isinstance(there.get("additionalProperties"), dict):
            yield at
        elif name in known:
            yield from _missing(schema, known[name], at)
    for key in ("items", "additionalProperties"):
        if isinstance(wanted.get(key), dict) and isinstance(there.get(key), dict):
            yield from _missing(wanted[key], there[key], f"{path}[]")


CAUSES = (
    Cause(
        "CRDMissing",
        "`kubectl create -f manifests/crds/`.",
        _without_definition,
    ),
    Cause(
        "CRDOlderThanOperator",
        "`kubectl replace -f manifests/crds/`.",
        _older_definition,
        Severity.WARNING,
    ),
)
