"""docs/metrics.md is what a process serves, and is kept so."""

from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry, Gauge

from controller_manager import reference


def test_the_page_is_up_to_date() -> None:
    assert 0 == reference.main(["--check"])


@pytest.mark.slow
def test_reports_and_rewrites_an_outdated_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(reference, "PAGE", tmp_path / "metrics.md")
    monkeypatch.setattr(reference, "FLAGS", tmp_path / "flags.md")
    assert 1 == reference.main(["--check"])
    assert "run `python -m controller_manager.reference`" in capsys.readouterr().err
    assert (0, 0) == (reference.main([]), reference.main(["--check"]))


def test_names_a_metric_that_only_the_topics_or_only_the_server_has() -> None:
    registry = CollectorRegistry()
    Gauge("new_metric", "Not listed.", registry=registry)
    served = dict(reference.metrics()) | dict(reference.named(registry))
    del served["workqueue_depth"]
    assert [
        "new_metric is served: give it a place in TOPICS",
        "workqueue_depth is in TOPICS, but the operator does not serve it",
    ] == reference.differences(served)


def test_every_metric_has_a_description() -> None:
    assert [] == [name for name, family in reference.metrics().items() if not family.documentation]
