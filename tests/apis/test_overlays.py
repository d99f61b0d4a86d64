"""An overlay adds what the spec lacks, and nothing that decides about data (ADR 18)."""

import json

import pytest
from msgspec.structs import fields

from apis.embedded import known_fields
from apis.overlays import overlay_annotation, unknown_in_overlays
from apis.shared import ComponentSpec
from apis.validation import validate
from kube.objects import Json
from tests.apis.clusters import cluster, minimal

KEY = overlay_annotation("tikv")
PLACE = f'metadata.annotations["{KEY}"]'

_LISTS = ("imagePullSecrets", "initContainers", "tolerations", "topologySpreadConstraints")
_TEXTS = ("dnsPolicy", "priorityClassName", "schedulerName")
_VALUES: dict[str, object] = {
    **{name: [] for name in _LISTS},
    **dict.fromkeys(_TEXTS, "x"),
    "automountServiceAccountToken": False,
    "hostNetwork": True,
    "terminationGracePeriodSeconds": 1,
}
"""Values of the right types; other fields are objects."""


def problems(overlay: object, component: str = "tikv") -> list[str]:
    text = overlay if isinstance(overlay, str) else json.dumps(overlay)
    made = cluster(minimal(), annotations={overlay_annotation(component): text})
    return [str(each) for each in validate(made)]


@pytest.mark.parametrize(
    ("overlay", "problem"),
    [
        ("{", f'{PLACE}: "{{": is not JSON'),
        ("[]", f'{PLACE}: "[]": must be a JSON object'),
        ({"replicas": 5}, f"{PLACE}.replicas: 5: has no place in an overlay"),
        ({"serviceName": "x"}, f'{PLACE}.serviceName: "x": has no place in an overlay'),
        ({"template": {"metadata": {}}}, "set spec.tikv.labels and spec.tikv.annotations"),
        ({"template": {"spec": {"hostname": "x"}}}, f'{PLACE}.template.spec.hostname: "x": decides which pod'),
        ({"template": {"spec": {"containers": []}}}, "set spec.tikv.additionalContainers"),
        ({"template": {"spec": {"securityContext": {}}}}, "set spec.tikv.podSecurityContext"),
        ({"template": {"spec": {"volumes": []}}}, "set spec.tikv.additionalVolumes"),
        ({"template": {"spec": {"hostAliases": "x"}}}, f'{PLACE}.template.spec.hostAliases: "x": must be a list'),
    ],
)
def test_a_protected_or_malformed_overlay_is_refused_by_field_value_and_way_out(overlay: object, problem: str) -> None:
    (found,) = problems(overlay)
    assert problem in found


@pytest.mark.parametrize(
    ("claim", "problem"),
    [
        ({"metadata": {"name": "pd"}}, '[0].metadata.name: "pd": must name a claim template of tikv (tikv'),
        ({"metadata": {"name": "tikv", "uid": "1"}}, '[0].metadata.uid: "1": has no place here'),
        ({"metadata": {"name": "tikv"}, "status": {}}, "[0].status: {}: has no place in a claim's overlay"),
        ({"metadata": {"name": "tikv"}, "spec": {"volumeName": "x"}}, '[0].spec.volumeName: "x": decides which pod'),
        (
            {"metadata": {"name": "tikv"}, "spec": {"resources": {}}},
            "set the size and the classes of volumes in spec.ti",
        ),
        (
            {"metadata": {"name": "tikv", "labels": {"app.kubernetes.io/component": "pd"}}},
            '[0].metadata.labels["app.kubernetes.io/component"]: "pd": belongs to Kubernetes or the operator',
        ),
    ],
)
def test_a_claims_overlay_decides_about_no_data(claim: Json, problem: str) -> None:
    (found,) = problems({"volumeClaimTemplates": [claim]})
    assert problem in found


def test_an_overlay_belongs_to_a_component_with_pods() -> None:
    (found,) = problems("{}", "tikvs")
    assert '"tidb.pingcap.com/tikvs-overlay"' in found
    assert "these have one: tso, scheduling, pd" in found


def test_no_field_has_its_place_both_in_the_spec_and_in_an_overlay() -> None:
    own = {field.encode_name for field in fields(ComponentSpec)}
    both = own & set(known_fields("PodSpec"))
    assert len(both) > 10
    for name in both:
        assert f".template.spec.{name}: " in "".join(problems({"template": {"spec": {name: _VALUES.get(name, {})}}}))


def test_a_field_that_kubernetes_may_not_know_passes_and_is_reported() -> None:
    overlay: Json = {"template": {"spec": {"hostAlias": []}}}
    assert [] == problems(overlay)
    (found,) = unknown_in_overlays(cluster(minimal(), annotations={KEY: json.dumps(overlay)}))
    assert f"{PLACE}.template.spec.hostAlias: is not known" in str(found)
    assert "did you mean hostAliases?" in str(found)
