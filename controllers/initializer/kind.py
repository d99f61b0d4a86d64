"""The kind TidbInitializer (other-resources.md 2)."""

from collections.abc import Sequence

from apis.initializers import TidbInitializer
from apis.validation.dashboards import validate_initializer
from controllers.conditions import PROGRESSING, READY
from controllers.database_actions import executor_of
from controllers.initializer.running import initialize, observe
from controllers.simple_kind import Reconcile, SimpleKind
from controllers.stages import Stage
from controllers.status_fields import STATUS_FIELDS
from controllers.target_cluster import one_cluster
from controllers.unheeded import of_kind
from kube.objects import Json
from kube.resources import CONFIG_MAPS, JOBS, PODS, TIDB_CLUSTERS, TIDB_INITIALIZERS
from member.labels import TIDB_OPERATOR


def _conditions_of_job(ctx: Reconcile[TidbInitializer]) -> Sequence[Json]:
    return [condition for condition in ctx.model.status.conditions if condition.get("type") not in (PROGRESSING, READY)]


TIDB_INITIALIZER = SimpleKind(
    resource=TIDB_INITIALIZERS,
    model=TidbInitializer,
    stages=[Stage("job", initialize)],
    owns=[CONFIG_MAPS, JOBS],
    reads=[PODS],
    refers={TIDB_CLUSTERS: one_cluster},
    managed_by=TIDB_OPERATOR,
    problems=validate_initializer,
    others_conditions=_conditions_of_job,
    observe=observe,
    further_conditions=of_kind,
    status_fields=STATUS_FIELDS,
    executor=executor_of,
)
