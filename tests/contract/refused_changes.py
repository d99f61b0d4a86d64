"""Changes with an API server's answer: the status, and the fields that it names. All were sent to a real Kubernetes
1.36."""

from collections.abc import Mapping

from kube.objects import Json
from tests.contract.bodies import (
    CLAIM,
    CONTAINER,
    job,
    service,
    settings,
)
from tests.contract.objects import claim, claim_spec, deployment, pod, stateful_set

CHANGED: Mapping[str, tuple[int, str, Json, Json]] = {
    "sts-service-name": (422, "spec", stateful_set("u", 0), {"spec": {"serviceName": "other"}}),
    "sts-policy": (422, "spec", stateful_set("u", 0), {"spec": {"podManagementPolicy": "Parallel"}}),
    "sts-selector": (
        422,
        "spec",
        stateful_set("u", 0),
        {
            "spec": {
                "selector": {"matchLabels": {"app": "u", "x": "y"}},
                "template": {"metadata": {"labels": {"x": "y"}}},
            }
        },
    ),
    "sts-claims": (
        422,
        "spec",
        stateful_set("u", 0, volumeClaimTemplates=[CLAIM]),
        {
            "spec": {
                "volumeClaimTemplates": [
                    {"metadata": {"name": "c"}, "spec": claim_spec(resources={"requests": {"storage": "2Gi"}})}
                ]
            }
        },
    ),
    "sts-labels": (
        422,
        "spec.template.metadata.labels",
        stateful_set("u", 0),
        {"spec": {"template": {"metadata": {"labels": {"app": "z"}}}}},
    ),
    "sts-mutable": (
        200,
        "",
        stateful_set("u", 0),
        {
            "spec": {
                "replicas": 0,
                "minReadySeconds": 3,
                "revisionHistoryLimit": 2,
                "ordinals": {"start": 1},
                "persistentVolumeClaimRetentionPolicy": {"whenScaled": "Delete"},
            }
        },
    ),
    "deploy-selector": (
        422,
        "spec.selector",
        deployment("u", 0),
        {"spec": {"selector": {"matchLabels": {"x": "y"}}, "template": {"metadata": {"labels": {"x": "y"}}}}},
    ),
    "claim-modes": (422, "spec", claim("u", storageClassName="none"), {"spec": {"accessModes": ["ReadWriteMany"]}}),
    "claim-class": (422, "spec", claim("u", storageClassName="none"), {"spec": {"storageClassName": "other"}}),
    "claim-size-unbound": (
        422,
        "spec",
        claim("u", storageClassName="none"),
        {"spec": {"resources": {"requests": {"storage": "2Gi"}}}},
    ),
    "claim-shrink-unbound": (
        422,
        "spec",
        claim("u", storageClassName="none"),
        {"spec": {"resources": {"requests": {"storage": "1Mi"}}}},
    ),
    "claim-volume": (200, "", claim("u", storageClassName="none"), {"spec": {"volumeName": "x"}}),
    "cm-immutable": (422, "data", settings(immutable=True), {"data": {"a": "y"}}),
    "cm-mutable-again": (422, "immutable", settings(immutable=True), {"immutable": False}),
    "secret-type": (
        422,
        "type",
        {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "u"}, "type": "a/b"},
        {"type": "c/d"},
    ),
    "svc-ip": (
        422,
        "spec.clusterIPs[0]",
        service([{"port": 1}], "u"),
        {"spec": {"clusterIP": "10.96.200.201", "clusterIPs": ["10.96.200.201"]}},
    ),
    "svc-headless": (
        422,
        "spec.clusterIPs[0]",
        service([{"port": 1}], "u"),
        {"spec": {"clusterIP": "None", "clusterIPs": ["None"]}},
    ),
    "svc-policy-of-others": (
        422,
        "spec.externalTrafficPolicy",
        service([{"port": 1}], "u"),
        {"spec": {"externalTrafficPolicy": "Local"}},
    ),
    "svc-node-port-of-others": (
        422,
        "spec.ports[0].nodePort",
        service([{"port": 1}], "u"),
        {"spec": {"ports": [{"port": 1, "nodePort": 30999}]}},
    ),
    "svc-lb-ports-of-others": (
        422,
        "spec.allocateLoadBalancerNodePorts",
        service([{"port": 1}], "u"),
        {"spec": {"allocateLoadBalancerNodePorts": False}},
    ),
    "svc-back-to-cluster": (
        200,
        "",
        service([{"port": 1}], "u", type="LoadBalancer", externalTrafficPolicy="Local"),
        {"spec": {"type": "ClusterIP"}},
    ),
    "svc-back-with-a-policy": (
        422,
        "spec.externalTrafficPolicy",
        service([{"port": 1}], "u", type="NodePort"),
        {"spec": {"type": "ClusterIP", "externalTrafficPolicy": "Local"}},
    ),
    "svc-to-lb": (200, "", service([{"port": 1}], "u"), {"spec": {"type": "LoadBalancer"}}),
    "svc-ports-none": (422, "spec.ports", service([{"port": 1}], "u"), {"spec": {"ports": []}}),
    "pod-env": (
        422,
        "spec",
        pod("u", nodeSelector={"no": "where"}),
        {"spec": {"containers": [{**CONTAINER, "env": [{"name": "a", "value": "b"}]}]}},
    ),
    "pod-node": (422, "spec", pod("u", nodeSelector={"no": "where"}), {"spec": {"nodeSelector": {"a": "b"}}}),
    "pod-toleration-removed": (200, "", pod("u", nodeSelector={"no": "where"}), {"spec": {"tolerations": []}}),
    "pod-hostname": (422, "spec", pod("u", nodeSelector={"no": "where"}), {"spec": {"hostname": "b"}}),
    "job-template": (
        422,
        "spec.template.spec",
        job("u", suspend=True),
        {"spec": {"template": {"spec": {"restartPolicy": "OnFailure"}}}},
    ),
    "job-completions": (422, "spec.completions", job("u", suspend=True), {"spec": {"completions": 3}}),
    "job-parallelism": (200, "", job("u", suspend=True), {"spec": {"parallelism": 3, "backoffLimit": 2}}),
    "rb-roleref": (
        422,
        "roleRef",
        {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "RoleBinding",
            "metadata": {"name": "u"},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "x"},
        },
        {"roleRef": {"name": "y"}},
    ),
    "name": (400, "", settings(), {"metadata": {"name": "v"}}),
    "namespace": (400, "", settings(), {"metadata": {"namespace": "v"}}),
    "uid": (422, "metadata.uid", settings(), {"metadata": {"uid": "v"}}),
    "owner": (
        422,
        "metadata.ownerReferences.apiVersion metadata.ownerReferences.name metadata.ownerReferences.uid",
        settings(),
        {"metadata": {"ownerReferences": [{"kind": "X"}]}},
    ),
    "owner-two-controllers": (
        422,
        "metadata.ownerReferences",
        settings(),
        {
            "metadata": {
                "ownerReferences": [
                    {"apiVersion": "v1", "kind": "X", "name": "a", "uid": "1", "controller": True},
                    {"apiVersion": "v1", "kind": "X", "name": "b", "uid": "2", "controller": True},
                ]
            }
        },
    ),
    "finalizer": (422, "metadata.finalizers[0]", settings(), {"metadata": {"finalizers": ["Bad_One"]}}),
    "finalizer-plain": (422, "metadata.finalizers[0]", settings(), {"metadata": {"finalizers": ["plain"]}}),
    "type-string": (422, "patch", stateful_set("u", 0), {"spec": {"replicas": "3"}}),
    "type-label": (422, "patch", stateful_set("u", 0), {"metadata": {"labels": {"a": 3}}}),
    "quantity": (
        422,
        "patch",
        claim("u", storageClassName="none"),
        {"spec": {"resources": {"requests": {"storage": "lots"}}}},
    ),
    "sts-negative": (422, "spec.replicas", stateful_set("u", 0), {"spec": {"replicas": -2}}),
    "sts-volume": (
        422,
        "spec.template.spec.volumes[0].name",
        stateful_set("u", 0),
        {"spec": {"template": {"spec": {"volumes": [{}]}}}},
    ),
    "deploy-image": (
        422,
        "spec.template.spec.containers[0].image",
        deployment("u", 0),
        {"spec": {"template": {"spec": {"containers": [{"name": "x"}]}}}},
    ),
}
"""Status, fields, object, merge patch."""
