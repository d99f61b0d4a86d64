"""How tests are shared out among processes."""

from pathlib import Path

from tests.distribution import LONGEST, order_of, unit_of

_ROOT = Path(__file__).resolve().parents[1]


def test_the_units_that_begin_exist() -> None:
    assert [] == [unit for unit in LONGEST if not (_ROOT / unit).exists()]


def test_one_process_runs_a_file_and_all_files_that_share_its_world() -> None:
    assert "tests/kube/test_apply.py" == unit_of("tests/kube/test_apply.py::test_a[x::y]")
    assert "tests/contract/" == unit_of("tests/contract/test_jobs.py::test_a[real]")


def test_some_processes_begin_with_what_waits_the_others_with_the_rest_and_all_with_the_longest() -> None:
    quick, long, waits = "tests/apis/test_cron.py", "tests/simulate/test_campaigns.py", "tests/e2e/test_kills.py"
    for first, expected in ((True, [waits, long, quick]), (False, [long, quick, waits])):
        assert expected == sorted([quick, waits, long], key=lambda unit: order_of(unit, waiting_first=first))
