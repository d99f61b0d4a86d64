"""R22: each field of each kind is set by a test, or has a test of what the user sees later."""

from collections.abc import Callable, Collection, Mapping
from functools import partial

from apis.crd import KINDS
from kube.resources import BACKUP_SCHEDULES, TIDB_CLUSTERS
from member.fields.declared import AT_RUN_TIME, fields, fields_of, last_fit
from tests.simulate import test_fields_in_a_running_cluster as of_clusters
from tests.simulate import test_fields_of_backups as of_backups
from tests.simulate import test_fields_of_other_kinds as of_other_kinds

SET: Mapping[str, Callable[[], Collection[str]]] = {
    TIDB_CLUSTERS.kind: lambda: [
        *of_clusters.AT_ONCE,
        *(path for path in fields() if of_clusters.is_later(path) and last_fit(path, AT_RUN_TIME) is not None),
    ],
    BACKUP_SCHEDULES.kind: lambda: [path for way in of_backups.SCHEDULES for path in of_backups.set_in_schedules(way)],
    **{each.kind: partial(fields_of, each.kind) for each in of_backups.WAYS},
    **{each.kind: partial(fields_of, each.kind) for each in of_other_kinds.EVERY_KIND},
}
"""The fields that tests set, by kind."""


def test_each_kind_has_a_test_of_its_fields() -> None:
    assert {kind.name for kind in KINDS} == set(SET)
    assert 1700 < sum(len(fields_of(kind.name)) for kind in KINDS)


def test_each_field_of_each_kind_is_set() -> None:
    assert {} == {kind: missing for kind, paths in SET.items() if (missing := set(fields_of(kind)) - set(paths()))}
