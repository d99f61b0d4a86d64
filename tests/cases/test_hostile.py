"""Values of wrong types, and values that reach a shell: no exception, and nothing runs."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from apis.decoding import decode
from apis.defaulting import with_defaults
from apis.problem import InvalidField
from apis.tidbcluster import TidbCluster
from apis.validation import validate
from cli.fields.probe import desired_objects
from kube.objects import Json
from kube.resources import TIDB_CLUSTERS
from simulate.engine.trees import merged
from tests.apis.field_trees import shared_file
from tests.cases.case_world import CaseWorld, of_case
from tests.operator_world import sample
from tests.security.shell_texts import CANARY, SHELLS, Room, shell_texts, syntax_error

_ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def patches(path: Path) -> dict[str, Json]:
    """Additions to the sample `basic`, by name."""
    found: dict[str, Json] = yaml.safe_load(path.read_text(encoding="utf-8"))
    return found


@pytest.mark.slow
@of_case("security/internal-error.yaml")
def test_a_value_of_a_wrong_type_is_named_and_raises_nothing(world: CaseWorld, patches: dict[str, Json]) -> None:
    for name, patch in patches.items():
        world.apply(merged(sample("basic"), patch | {"metadata": {"name": name}}))
        world.run(2.0)
        ready, progressing = (world.conditions(TIDB_CLUSTERS, name)[each] for each in ("Ready", "Progressing"))
        assert ("False", "InvalidSpec") == progressing[:2], name
        assert "spec." in progressing[2]
        assert "InternalError" not in (ready[1], *world.warnings(name))
        world.admin.delete(TIDB_CLUSTERS, name, "default")


@pytest.mark.slow
@of_case("security/shell.yaml")
def test_a_value_of_a_spec_does_not_run(patches: dict[str, Json], tmp_path: Path) -> None:
    room = Room(tmp_path)
    for name, patch in patches.items():
        text = yaml.safe_dump(merged(sample("basic"), patch)).replace("pwned", CANARY)
        scripts = [each for each in _scripts(yaml.safe_load(text)) if CANARY in each]
        for shell in SHELLS:
            assert [] == [each for each in scripts if syntax_error(each, shell) or room.sings(each, shell)], name


def _scripts(body: Json) -> list[str]:
    """The texts that a shell reads of a cluster's objects; none for a refused spec."""
    try:
        cluster = with_defaults(decode(body, TidbCluster))
        return [] if validate(cluster) else list(shell_texts(list(desired_objects(cluster, "discovery:1"))))
    except InvalidField:
        return []


PROGRAMS = (
    *("exit_hang", "k8s_133810_410_loop", "metric_race", "slow_loris_watch", "stuck_handler"),
    "watchlist_no_end_bookmark",
)
"""Programs that show faults of other informers; `tests/informers` tests each of them."""


@pytest.mark.slow
@pytest.mark.thorough
@pytest.mark.parametrize("program", PROGRAMS)
def test_the_program_that_showed_a_fault_of_informers_finds_it_gone(program: str) -> None:
    path = shared_file("cases", "informers", f"{program}.py")
    environ = os.environ | {"PYTHONPATH": f"{_ROOT}{os.pathsep}{path.parent}", "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(
        [sys.executable, str(path)], cwd=_ROOT, env=environ, capture_output=True, text=True, timeout=120, check=False
    )
    assert "HELD" in done.stdout, done.stderr
    assert "FAILS" not in done.stdout
