"""Rules of TidbInitializer (other-resources.md 2.1, 2.2). v1.6 has none."""

from collections.abc import Iterator

from apis.initializers import TidbInitializer
from apis.problem import Problem
from apis.shared import TidbClusterRef

_LONGEST_LABEL = 63
_SUFFIX = "-tidb-initializer"


def validate_initializer(initializer: TidbInitializer) -> list[Problem]:
    """Everything that is wrong with a TidbInitializer."""
    spec, meta = initializer.spec, initializer.metadata
    problems = list(_check_cluster(spec.cluster, meta.namespace))
    if len(meta.name) > _LONGEST_LABEL:
        message = f"must have {_LONGEST_LABEL} characters at most, since it becomes a label"
        problems.append(Problem("metadata.name", meta.name, message))
    if not spec.image:
        message = "is required; name an image that has python with MySQLdb, sh and nc, such as tnir/mysqlclient"
        problems.append(Problem("spec.image", spec.image, message))
    return problems


def _check_cluster(reference: TidbClusterRef, own: str) -> Iterator[Problem]:
    if not reference.name:
        yield Problem("spec.cluster.name", reference.name, "is required; name the TidbCluster")
    elif len(reference.name) > (longest := _LONGEST_LABEL - len(_SUFFIX)):
        message = f"must have {longest} characters at most, since <name>{_SUFFIX} becomes a label of the Job's pod"
        yield Problem("spec.cluster.name", reference.name, message)
    if reference.namespace not in ("", own):
        message = f"must be that of the TidbInitializer, {own}: its Job runs beside the cluster; create it there"
        yield Problem("spec.cluster.namespace", reference.namespace, message)
