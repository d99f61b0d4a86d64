"""Objects other than pods with an API server's answer: its status, and the fields that it names. All were sent to a
real Kubernetes 1.36."""

from collections.abc import Mapping

from kube.objects import Json
from tests.contract.bodies import (
    CLAIM,
    CONTAINER,
    annotated,
    ingress,
    job,
    pods,
    service,
    settings,
    with_replicas,
)
from tests.contract.objects import claim, claim_spec, deployment, pod, stateful_set

OBJECTS: Mapping[str, tuple[int, str, Json]] = {
    "mount-template-unknown": (
        422,
        "spec.template.spec.containers[0].volumeMounts[0].name",
        pods(containers=[{**CONTAINER, "volumeMounts": [{"name": "v", "mountPath": "/x"}]}]),
    ),
    "label-value": (422, "metadata.labels", {**pod("a"), "metadata": {"name": "a", "labels": {"a": "b c"}}}),
    "label-long": (422, "metadata.labels", {**pod("a"), "metadata": {"name": "a", "labels": {"a": "b" * 64}}}),
    "annotation-key": (
        422,
        "metadata.annotations",
        {**pod("a"), "metadata": {"name": "a", "annotations": {"a b": "c"}}},
    ),
    "sts-labels": (422, "spec.template.metadata.labels", stateful_set("a", selector={"matchLabels": {"x": "y"}})),
    "sts-selector-empty": (422, "spec.selector", stateful_set("a", selector={})),
    "sts-negative": (422, "spec.replicas", stateful_set("a", replicas=-1)),
    "sts-policy": (422, "spec.podManagementPolicy", stateful_set("a", podManagementPolicy="X")),
    "sts-strategy": (422, "spec.updateStrategy", stateful_set("a", updateStrategy={"type": "X"})),
    "sts-partition": (
        422,
        "spec.updateStrategy.rollingUpdate.partition",
        stateful_set("a", updateStrategy={"type": "RollingUpdate", "rollingUpdate": {"partition": -1}}),
    ),
    "sts-ondelete": (
        422,
        "spec.updateStrategy.rollingUpdate",
        stateful_set("a", updateStrategy={"type": "OnDelete", "rollingUpdate": {"partition": 1}}),
    ),
    "sts-minready": (422, "spec.minReadySeconds", stateful_set("a", minReadySeconds=-1)),
    "sts-retention": (
        422,
        "spec.persistentVolumeClaimRetentionPolicy.whenDeleted",
        stateful_set("a", persistentVolumeClaimRetentionPolicy={"whenDeleted": "X"}),
    ),
    "sts-history": (201, "", stateful_set("a", revisionHistoryLimit=-1)),
    "sts-template-label": (
        422,
        "spec.selector.matchLabels spec.selector",
        stateful_set("a", selector={"matchLabels": {"app": "a b"}}),
    ),
    "sts-volume": (422, "spec.template.spec.volumes[0].name", pods(volumes=[{}])),
    "sts-restart": (422, "spec.template.spec.restartPolicy", pods(restartPolicy="Never")),
    "sts-deadline": (422, "spec.template.spec.activeDeadlineSeconds", pods(activeDeadlineSeconds=5)),
    "sts-image": (422, "spec.template.spec.containers[0].image", pods(containers=[{"name": "a"}])),
    "sts-claim-nameless": (
        422,
        "spec.template.spec.volumes[0].persistentVolumeClaim.claimName spec.template.spec.volumes[0].name",
        stateful_set("a", volumeClaimTemplates=[{"spec": claim_spec()}]),
    ),
    "sts-claim-spec": (
        422,
        "spec.volumeClaimTemplates[0].spec.accessModes spec.volumeClaimTemplates[0].spec.resources[storage]",
        stateful_set("a", volumeClaimTemplates=[{"metadata": {"name": "x"}, "spec": {}}]),
    ),
    "sts-claim-quantity": (
        400,
        "",
        stateful_set(
            "a",
            volumeClaimTemplates=[
                {
                    "metadata": {"name": "x"},
                    "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "ten"}}},
                }
            ],
        ),
    ),
    "sts-claim-mode": (
        422,
        "spec.volumeClaimTemplates[0].spec.accessModes",
        stateful_set(
            "a",
            volumeClaimTemplates=[
                {
                    "metadata": {"name": "x"},
                    "spec": {"accessModes": ["X"], "resources": {"requests": {"storage": "1Gi"}}},
                }
            ],
        ),
    ),
    "deploy-strategy": (422, "spec.strategy", deployment("a", strategy={"type": "X"})),
    "deploy-recreate": (
        422,
        "spec.strategy.rollingUpdate",
        deployment("a", strategy={"type": "Recreate", "rollingUpdate": {"maxSurge": 1}}),
    ),
    "claim-no-modes": (422, "spec.accessModes", claim("a", accessModes=[])),
    "claim-no-size": (422, "spec.resources[storage]", claim("a", resources={})),
    "claim-mode": (422, "spec.accessModes", claim("a", accessModes=["X"])),
    "claim-zero": (422, "spec.resources[storage]", claim("a", resources={"requests": {"storage": "0"}})),
    "claim-negative": (422, "spec.resources[storage]", claim("a", resources={"requests": {"storage": "-1Gi"}})),
    "claim-quantity": (400, "", claim("a", resources={"requests": {"storage": "1 Gi"}})),
    "claim-class": (422, "spec.storageClassName", claim("a", storageClassName="A_b")),
    "claim-volume-mode": (422, "spec.volumeMode", claim("a", volumeMode="X")),
    "svc-none": (422, "spec.ports", service([])),
    "svc-port0": (422, "spec.ports[0].port spec.ports[0].targetPort", service([{"port": 0}])),
    "svc-port-missing": (422, "spec.ports[0].port spec.ports[0].targetPort", service([{"name": "x"}])),
    "svc-port-big": (422, "spec.ports[0].port spec.ports[0].targetPort", service([{"port": 70000}])),
    "svc-name-two": (422, "spec.ports[0].name spec.ports[1].name", service([{"port": 1}, {"port": 2}])),
    "svc-name-bad": (422, "spec.ports[0].name", service([{"port": 1, "name": "Bad_Name"}])),
    "svc-name-dup": (422, "spec.ports[1].name", service([{"port": 1, "name": "x"}, {"port": 2, "name": "x"}])),
    "svc-port-dup": (422, "spec.ports[1]", service([{"port": 1, "name": "x"}, {"port": 1, "name": "y"}])),
    "svc-protocol": (422, "spec.ports[0].protocol", service([{"port": 1, "protocol": "HTTP"}])),
    "svc-target-bad": (422, "spec.ports[0].targetPort", service([{"port": 1, "targetPort": "Bad_Name"}])),
    "svc-target-range": (422, "spec.ports[0].targetPort", service([{"port": 1, "targetPort": 70000}])),
    "svc-target-digits": (422, "spec.ports[0].targetPort", service([{"port": 1, "targetPort": "123"}])),
    "svc-type": (422, "spec.type", service([{"port": 1}], type="X")),
    "svc-clusterip": (422, "spec.clusterIPs[0]", service([{"port": 1}], clusterIP="300.1.1.1")),
    "svc-nodeport-clusterip": (422, "spec.ports[0].nodePort", service([{"port": 1, "nodePort": 30005}])),
    "svc-affinity": (422, "spec.sessionAffinity", service([{"port": 1}], sessionAffinity="X")),
    "svc-etp": (422, "spec.externalTrafficPolicy", service([{"port": 1}], externalTrafficPolicy="Local")),
    "svc-etp-bad": (
        422,
        "spec.externalTrafficPolicy",
        service([{"port": 1}], type="NodePort", externalTrafficPolicy="X"),
    ),
    "svc-lb-ranges": (
        422,
        "spec.LoadBalancerSourceRanges[0]",
        service([{"port": 1}], type="LoadBalancer", loadBalancerSourceRanges=["x"]),
    ),
    "svc-lb-class": (422, "spec.loadBalancerClass", service([{"port": 1}], loadBalancerClass="a/b")),
    "svc-selector": (422, "spec.selector", service([{"port": 1}], selector={"a": "b c"})),
    "svc-family": (422, "spec.ipFamilyPolicy", service([{"port": 1}], ipFamilyPolicy="X")),
    "svc-name": (201, "", {**service([{"port": 1}]), "metadata": {"name": "1a"}}),
    "svc-external": (422, "spec.externalName", service([], type="ExternalName")),
    "job-always": (
        422,
        "spec.template.spec.restartPolicy",
        {**job(), "spec": {"template": {"spec": {"restartPolicy": "Always", "containers": [CONTAINER]}}}},
    ),
    "job-policy-missing": (
        422,
        "spec.template.spec.restartPolicy",
        {**job(), "spec": {"template": {"spec": {"containers": [CONTAINER]}}}},
    ),
    "job-negative": (
        422,
        "spec.parallelism spec.completions spec.backoffLimit spec.ttlSecondsAfterFinished",
        job(completions=-1, parallelism=-1, backoffLimit=-1, ttlSecondsAfterFinished=-1),
    ),
    "job-deadline": (422, "spec.activeDeadlineSeconds", job(activeDeadlineSeconds=-1)),
    "job-mode": (422, "spec.completionMode", job(completionMode="X")),
    "job-indexed": (201, "", job(completionMode="Indexed")),
    "ing-empty": (422, "spec", ingress()),
    "ing-host": (
        422,
        "spec.rules[0].host",
        ingress(
            rules=[
                {
                    "host": "Bad_Host",
                    "http": {
                        "paths": [
                            {
                                "path": "/",
                                "pathType": "Prefix",
                                "backend": {"service": {"name": "a", "port": {"number": 1}}},
                            }
                        ]
                    },
                }
            ]
        ),
    ),
    "ing-pathtype": (
        422,
        "spec.rules[0].http.paths[0].pathType",
        ingress(
            rules=[{"http": {"paths": [{"path": "/", "backend": {"service": {"name": "a", "port": {"number": 1}}}}]}}]
        ),
    ),
    "ing-path": (
        422,
        "spec.rules[0].http.paths[0].path",
        ingress(
            rules=[
                {
                    "http": {
                        "paths": [
                            {
                                "path": "x",
                                "pathType": "Prefix",
                                "backend": {"service": {"name": "a", "port": {"number": 1}}},
                            }
                        ]
                    }
                }
            ]
        ),
    ),
    "ing-backend": (
        422,
        "spec.rules[0].http.paths[0].backend",
        ingress(
            rules=[
                {
                    "http": {
                        "paths": [
                            {"path": "/", "pathType": "Prefix", "backend": {"service": {"name": "a", "port": {}}}}
                        ]
                    }
                }
            ]
        ),
    ),
    "ing-backend-none": (
        422,
        "spec.rules[0].http.paths[0].backend",
        ingress(rules=[{"http": {"paths": [{"path": "/", "pathType": "Prefix", "backend": {}}]}}]),
    ),
    "ing-port-both": (
        422,
        "spec.defaultBackend",
        ingress(defaultBackend={"service": {"name": "a", "port": {"number": 1, "name": "b"}}}),
    ),
    "cm-size": (
        422,
        "[]",
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"a": "x" * 1100000}},
    ),
    "cm-dup": (
        422,
        "data[a]",
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": "a"},
            "data": {"a": "x"},
            "binaryData": {"a": "eA=="},
        },
    ),
    "secret-tls": (
        422,
        "data[tls.crt] data[tls.key]",
        {
            "apiVersion": "v1",
            "kind": "Secret",
            "type": "kubernetes.io/tls",
            "metadata": {"name": "a"},
            "data": {"x": "eA=="},
        },
    ),
    "rb-subject": (
        422,
        "subjects[0].kind",
        {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "RoleBinding",
            "metadata": {"name": "a"},
            "subjects": [{"kind": "X", "name": "y"}],
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "x"},
        },
    ),
    "role-verbs": (
        422,
        "rules[0].verbs",
        {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "Role",
            "metadata": {"name": "a"},
            "rules": [{"apiGroups": [""], "resources": ["pods"]}],
        },
    ),
    "type-svc-port": (400, "", service([{"port": "4000"}])),
    "type-replicas": (400, "", with_replicas("3")),
    "type-float": (400, "", with_replicas(1.5)),
    "type-map": (400, "", {**pod("a"), "metadata": {"name": "a", "labels": {"a": 1}}}),
    "type-target": (400, "", service([{"port": 1, "targetPort": 1.5}])),
    "type-target-bool": (400, "", service([{"port": 1, "targetPort": True}])),
    "type-partition": (400, "", stateful_set("a", updateStrategy={"rollingUpdate": {"partition": "1"}})),
    "type-port-overflow": (400, "", service([{"port": 2**40}])),
    "type-cm-data": (
        400,
        "",
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"a": True}},
    ),
    "sts-claim-dup": (201, "", stateful_set("a", volumeClaimTemplates=[CLAIM, CLAIM])),
    "sts-claim-bad-name": (
        422,
        "spec.template.spec.volumes[0].name",
        stateful_set("a", volumeClaimTemplates=[{**CLAIM, "metadata": {"name": "A_b"}}]),
    ),
    "sts-sa": (422, "spec.template.spec.serviceAccountName", pods(serviceAccountName="A_b")),
    "sts-priority": (201, "", pods(priorityClassName="nope")),
    "sts-name-long": (
        422,
        "metadata.name metadata.labels spec.serviceName spec.selector.matchLabels spec.selector",
        stateful_set("a" * 64),
    ),
    "sts-name-dot": (422, "metadata.name spec.serviceName", stateful_set("a.b")),
    "sts-service-name-bad": (
        422,
        "spec.serviceName",
        {**stateful_set("a"), "spec": {**stateful_set("a")["spec"], "serviceName": "A_b"}},
    ),
    "svc-name-dot": (422, "metadata.name", {**service([{"port": 1}]), "metadata": {"name": "a.b"}}),
    "svc-name-long": (422, "metadata.name", {**service([{"port": 1}]), "metadata": {"name": "a" * 64}}),
    "cm-name-dot": (201, "", settings(metadata={"name": "a.b"})),
    "claim-name-bad": (422, "metadata.name", claim("A_b")),
    "sts-annotation": (422, "spec.template.annotations", annotated(stateful_set("a"))),
    "deploy-annotation": (422, "spec.template.annotations", annotated(deployment("a"))),
}
"""Status, fields, object."""
