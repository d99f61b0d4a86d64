"""The benches run the operator as its pod does."""

from pathlib import Path

import yaml

from bench import operator_process

ROOT = Path(__file__).resolve().parents[2]


def test_the_allocator_is_set_as_in_the_deployment() -> None:
    documents = yaml.safe_load_all((ROOT / "manifests/operator/deployment.yaml").read_text("utf-8"))
    deployment = next(each for each in documents if each["kind"] == "Deployment")
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    allocator = {each["name"]: each["value"] for each in container["env"] if each["name"].startswith("MALLOC_")}
    assert operator_process.OF_THE_DEPLOYMENT == allocator


def test_the_image_lacks_what_the_benches_leave_out() -> None:
    locked = (ROOT / "hack/image/requirements.lock").read_text("utf-8")
    assert "structlog==" in locked
    assert "rich==" not in locked
