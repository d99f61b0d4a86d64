"""Pods with an API server's answer: the status, and the fields that it names. All were sent to a real Kubernetes
1.36."""

from collections.abc import Mapping

from kube.objects import Json
from tests.contract.bodies import (
    CONTAINER,
    container,
)
from tests.contract.objects import IMAGE, pod

PODS: Mapping[str, tuple[int, str, Json]] = {
    "volume-nameless": (422, "spec.volumes[0].name", pod("a", volumes=[{}])),
    "volume-no-source": (201, "", pod("a", volumes=[{"name": "v"}])),
    "volume-bad-name": (422, "spec.volumes[0].name", pod("a", volumes=[{"name": "V_1", "emptyDir": {}}])),
    "volume-dup": (
        422,
        "spec.volumes[1].name",
        pod("a", volumes=[{"name": "v", "emptyDir": {}}, {"name": "v", "emptyDir": {}}]),
    ),
    "volume-two-sources": (
        422,
        "spec.volumes[0].hostPath",
        pod("a", volumes=[{"name": "v", "emptyDir": {}, "hostPath": {"path": "/x"}}]),
    ),
    "volume-secret-nameless": (
        422,
        "spec.volumes[0].secret.secretName",
        pod("a", volumes=[{"name": "v", "secret": {}}]),
    ),
    "volume-configmap-nameless": (
        422,
        "spec.volumes[0].configMap.name",
        pod("a", volumes=[{"name": "v", "configMap": {}}]),
    ),
    "volume-claim-nameless": (
        422,
        "spec.volumes[0].persistentVolumeClaim.claimName",
        pod("a", volumes=[{"name": "v", "persistentVolumeClaim": {}}]),
    ),
    "volume-hostpath-empty": (422, "spec.volumes[0].hostPath.path", pod("a", volumes=[{"name": "v", "hostPath": {}}])),
    "volume-items": (
        422,
        "spec.volumes[0].configMap.items[0].key spec.volumes[0].configMap.items[0].path "
        "spec.volumes[0].configMap.items[1].path",
        pod(
            "a",
            volumes=[
                {
                    "name": "v",
                    "configMap": {"name": "c", "items": [{"key": "", "path": "/abs"}, {"key": "k", "path": "../x"}]},
                }
            ],
        ),
    ),
    "volume-sizelimit": (
        422,
        "spec.volumes[0].emptyDir.sizeLimit",
        pod("a", volumes=[{"name": "v", "emptyDir": {"sizeLimit": "-1Gi"}}]),
    ),
    "mount-unknown": (
        422,
        "spec.containers[0].volumeMounts[0].name",
        container(volumeMounts=[{"name": "v", "mountPath": "/x"}]),
    ),
    "mount-nameless": (422, "spec.containers[0].volumeMounts[0].name", container(volumeMounts=[{"mountPath": "/x"}])),
    "mount-no-path": (
        422,
        "spec.containers[0].volumeMounts[0].mountPath",
        pod("a", volumes=[{"name": "v", "emptyDir": {}}], containers=[{**CONTAINER, "volumeMounts": [{"name": "v"}]}]),
    ),
    "mount-dup-path": (
        422,
        "spec.containers[0].volumeMounts[1].mountPath",
        pod(
            "a",
            volumes=[{"name": "v", "emptyDir": {}}],
            containers=[
                {**CONTAINER, "volumeMounts": [{"name": "v", "mountPath": "/x"}, {"name": "v", "mountPath": "/x"}]}
            ],
        ),
    ),
    "mount-subpath": (
        422,
        "spec.containers[0].volumeMounts.subPath",
        pod(
            "a",
            volumes=[{"name": "v", "emptyDir": {}}],
            containers=[{**CONTAINER, "volumeMounts": [{"name": "v", "mountPath": "/x", "subPath": "../y"}]}],
        ),
    ),
    "container-nameless": (422, "spec.containers[0].name", pod("a", containers=[{"image": IMAGE}])),
    "container-imageless": (422, "spec.containers[0].image", pod("a", containers=[{"name": "main"}])),
    "container-image-blank": (422, "spec.containers[0].image", pod("a", containers=[{"name": "main", "image": " x"}])),
    "container-bad-name": (422, "spec.containers[0].name", pod("a", containers=[{"name": "Main_1", "image": IMAGE}])),
    "container-dup": (422, "spec.containers[1].name", pod("a", containers=[CONTAINER, CONTAINER])),
    "init-dup": (422, "spec.initContainers[0].name", pod("a", initContainers=[CONTAINER])),
    "init-readiness": (
        422,
        "spec.initContainers[0].readinessProbe",
        pod("a", initContainers=[{"name": "i", "image": IMAGE, "readinessProbe": {"exec": {"command": ["x"]}}}]),
    ),
    "port-zero": (422, "spec.containers[0].ports[0].containerPort", container(ports=[{"containerPort": 0}])),
    "port-missing": (422, "spec.containers[0].ports[0].containerPort", container(ports=[{"name": "x"}])),
    "port-big": (422, "spec.containers[0].ports[0].containerPort", container(ports=[{"containerPort": 70000}])),
    "port-name": (422, "spec.containers[0].ports[0].name", container(ports=[{"containerPort": 1, "name": "Bad_Name"}])),
    "port-long-name": (
        422,
        "spec.containers[0].ports[0].name",
        container(ports=[{"containerPort": 1, "name": "a-name-that-is-too-long"}]),
    ),
    "port-dup-name": (
        422,
        "spec.containers[0].ports[1].name",
        container(ports=[{"containerPort": 1, "name": "x"}, {"containerPort": 2, "name": "x"}]),
    ),
    "port-protocol": (
        422,
        "spec.containers[0].ports[0].protocol",
        container(ports=[{"containerPort": 1, "protocol": "HTTP"}]),
    ),
    "port-hostport": (
        422,
        "spec.containers[0].ports[0].hostPort",
        container(ports=[{"containerPort": 1, "hostPort": 70000}]),
    ),
    "port-hostport-dup": (
        422,
        "spec.containers[0].ports[1].hostPort",
        container(ports=[{"containerPort": 1, "hostPort": 7000}, {"containerPort": 2, "hostPort": 7000}]),
    ),
    "port-hostnetwork": (
        422,
        "spec.containers[0].ports[0].hostPort",
        pod("a", hostNetwork=True, containers=[{**CONTAINER, "ports": [{"containerPort": 1, "hostPort": 2}]}]),
    ),
    "env-nameless": (422, "spec.containers[0].env[0].name", container(env=[{"value": "x"}])),
    "env-bad": (422, "spec.containers[0].env[0].name", container(env=[{"name": "a=b", "value": "x"}])),
    "env-digit": (201, "", container(env=[{"name": "1a b", "value": "x"}])),
    "env-both": (
        422,
        "spec.containers[0].env[0].valueFrom",
        container(env=[{"name": "a", "value": "x", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}]),
    ),
    "env-from-none": (422, "spec.containers[0].env[0].valueFrom", container(env=[{"name": "a", "valueFrom": {}}])),
    "env-from-two": (
        422,
        "spec.containers[0].env[0].valueFrom",
        container(
            env=[
                {
                    "name": "a",
                    "valueFrom": {
                        "fieldRef": {"fieldPath": "metadata.name"},
                        "secretKeyRef": {"name": "x", "key": "y"},
                    },
                }
            ]
        ),
    ),
    "env-field": (
        422,
        "spec.containers[0].env[0].valueFrom.fieldRef.fieldPath",
        container(env=[{"name": "a", "valueFrom": {"fieldRef": {"fieldPath": "spec.nothing"}}}]),
    ),
    "env-secret-key": (
        422,
        "spec.containers[0].env[0].valueFrom.secretKeyRef.key",
        container(env=[{"name": "a", "valueFrom": {"secretKeyRef": {"name": "x"}}}]),
    ),
    "env-secret-name": (
        422,
        "spec.containers[0].env[0].valueFrom.secretKeyRef.name",
        container(env=[{"name": "a", "valueFrom": {"secretKeyRef": {"key": "x"}}}]),
    ),
    "envfrom-none": (422, "spec.containers[0].envFrom", container(envFrom=[{}])),
    "envfrom-nameless": (
        422,
        "spec.containers[0].envFrom[0].configMapRef.name",
        container(envFrom=[{"configMapRef": {}}]),
    ),
    "quantity-bad": (400, "", container(resources={"requests": {"cpu": "lots"}})),
    "quantity-bad2": (400, "", container(resources={"requests": {"memory": "1GiB"}})),
    "quantity-negative": (
        422,
        "spec.containers[0].resources.requests[cpu]",
        container(resources={"requests": {"cpu": "-1"}}),
    ),
    "quantity-over-limit": (
        422,
        "spec.containers[0].resources.requests",
        container(resources={"requests": {"cpu": "2"}, "limits": {"cpu": "1"}}),
    ),
    "quantity-unknown": (
        422,
        "spec.containers[0].resources.requests[coffee]",
        container(resources={"requests": {"coffee": "2"}}),
    ),
    "quantity-storage": (
        422,
        "spec.containers[0].resources.requests[storage]",
        container(resources={"requests": {"storage": "2Gi"}}),
    ),
    "quantity-cpu-unit": (201, "", container(resources={"requests": {"cpu": "0.0001"}})),
    "probe-none": (422, "spec.containers[0].readinessProbe", container(readinessProbe={})),
    "probe-two": (
        422,
        "spec.containers[0].readinessProbe.tcpSocket",
        container(readinessProbe={"tcpSocket": {"port": 1}, "exec": {"command": ["x"]}}),
    ),
    "probe-port": (
        422,
        "spec.containers[0].readinessProbe.tcpSocket.port",
        container(readinessProbe={"tcpSocket": {"port": 0}}),
    ),
    "probe-port-name": (
        422,
        "spec.containers[0].readinessProbe.httpGet.port",
        container(readinessProbe={"httpGet": {"port": "No_Name"}}),
    ),
    "probe-exec": (422, "spec.containers[0].readinessProbe.exec.command", container(readinessProbe={"exec": {}})),
    "probe-negative": (
        422,
        "spec.containers[0].readinessProbe.periodSeconds",
        container(readinessProbe={"tcpSocket": {"port": 1}, "periodSeconds": -1}),
    ),
    "probe-success": (
        422,
        "spec.containers[0].livenessProbe.successThreshold",
        container(livenessProbe={"tcpSocket": {"port": 1}, "successThreshold": 2}),
    ),
    "lifecycle-none": (422, "spec.containers[0].lifecycle.preStop", container(lifecycle={"preStop": {}})),
    "pull-policy": (422, "spec.containers[0].imagePullPolicy", container(imagePullPolicy="Sometimes")),
    "termination-policy": (422, "spec.containers[0].terminationMessagePolicy", container(terminationMessagePolicy="X")),
    "restart-policy": (422, "spec.restartPolicy", pod("a", restartPolicy="X")),
    "dns-policy": (422, "spec.dnsPolicy", pod("a", dnsPolicy="X")),
    "grace": (201, "", pod("a", terminationGracePeriodSeconds=-5)),
    "active-deadline": (422, "spec.activeDeadlineSeconds", pod("a", activeDeadlineSeconds=0)),
    "node-selector": (422, "spec.nodeSelector", pod("a", nodeSelector={"a b": "c d"})),
    "toleration-op": (422, "spec.tolerations[0].operator", pod("a", tolerations=[{"key": "a", "operator": "X"}])),
    "toleration-exists-value": (
        422,
        "spec.tolerations[0].operator",
        pod("a", tolerations=[{"key": "a", "operator": "Exists", "value": "b"}]),
    ),
    "toleration-nokey": (
        422,
        "spec.tolerations[0].operator",
        pod("a", tolerations=[{"operator": "Equal", "value": "b"}]),
    ),
    "toleration-effect": (
        422,
        "spec.tolerations[0].effect",
        pod("a", tolerations=[{"key": "a", "operator": "Exists", "effect": "X"}]),
    ),
    "toleration-seconds": (
        422,
        "spec.tolerations[0].effect",
        pod("a", tolerations=[{"key": "a", "operator": "Exists", "effect": "NoSchedule", "tolerationSeconds": 1}]),
    ),
    "affinity-weight": (
        422,
        "spec.affinity.podAntiAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].weight",
        pod(
            "a",
            affinity={
                "podAntiAffinity": {
                    "preferredDuringSchedulingIgnoredDuringExecution": [
                        {"weight": 0, "podAffinityTerm": {"topologyKey": "x"}}
                    ]
                }
            },
        ),
    ),
    "affinity-topology": (
        422,
        "spec.affinity.podAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution[0].topologyKey",
        pod(
            "a",
            affinity={"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [{"labelSelector": {}}]}},
        ),
    ),
    "affinity-node-empty": (
        422,
        "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms",
        pod(
            "a",
            affinity={"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": []}}},
        ),
    ),
    "affinity-node-op": (
        422,
        "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0].matchExpressions[0].operator",
        pod(
            "a",
            affinity={
                "nodeAffinity": {
                    "requiredDuringSchedulingIgnoredDuringExecution": {
                        "nodeSelectorTerms": [{"matchExpressions": [{"key": "a", "operator": "X"}]}]
                    }
                }
            },
        ),
    ),
    "affinity-node-in": (
        422,
        "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0].matchExpressions[0].values",
        pod(
            "a",
            affinity={
                "nodeAffinity": {
                    "requiredDuringSchedulingIgnoredDuringExecution": {
                        "nodeSelectorTerms": [{"matchExpressions": [{"key": "a", "operator": "In"}]}]
                    }
                }
            },
        ),
    ),
    "spread-skew": (
        422,
        "spec.topologySpreadConstraints[0].maxSkew",
        pod(
            "a",
            topologySpreadConstraints=[
                {"maxSkew": 0, "topologyKey": "x", "whenUnsatisfiable": "DoNotSchedule", "labelSelector": {}}
            ],
        ),
    ),
    "spread-when": (
        422,
        "spec.topologySpreadConstraints[0].whenUnsatisfiable",
        pod(
            "a",
            topologySpreadConstraints=[
                {"maxSkew": 1, "topologyKey": "x", "whenUnsatisfiable": "X", "labelSelector": {}}
            ],
        ),
    ),
    "spread-key": (
        422,
        "spec.topologySpreadConstraints[0].topologyKey",
        pod("a", topologySpreadConstraints=[{"maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule", "labelSelector": {}}]),
    ),
    "spread-dup": (
        422,
        "spec.topologySpreadConstraints[0].{topologyKey, whenUnsatisfiable}",
        pod(
            "a",
            topologySpreadConstraints=[
                {"maxSkew": 1, "topologyKey": "x", "whenUnsatisfiable": "DoNotSchedule", "labelSelector": {}}
            ]
            * 2,
        ),
    ),
    "priority-class": (403, "", pod("a", priorityClassName="nope")),
    "scheduler-name": (201, "", pod("a", schedulerName="A b")),
    "service-account": (403, "", pod("a", serviceAccountName="A_b")),
    "hostname": (422, "spec.hostname", pod("a", hostname="A_b")),
    "sysctl-name": (
        422,
        "spec.securityContext.sysctls[0].name",
        pod("a", securityContext={"sysctls": [{"name": "a b", "value": "1"}]}),
    ),
    "sysctl-hostnetwork": (
        422,
        "spec.securityContext.sysctls[0].name",
        pod("a", hostNetwork=True, securityContext={"sysctls": [{"name": "net.core.somaxconn", "value": "1"}]}),
    ),
    "runasuser": (422, "spec.securityContext.runAsUser", pod("a", securityContext={"runAsUser": -1})),
    "image-pull-secret": (201, "", pod("a", imagePullSecrets=[{}])),
    "type-port": (400, "", container(ports=[{"containerPort": "2379"}])),
    "type-bool": (400, "", pod("a", hostNetwork="true")),
    "type-env": (400, "", container(env=[{"name": "a", "value": 5}])),
    "type-list": (400, "", container(command="x")),
    "type-volumes": (400, "", pod("a", volumes={"name": "v"})),
    "type-quantity": (400, "", container(resources={"requests": {"cpu": True}})),
    "pod-name-dot": (201, "", pod("a.b")),
}
"""Status, fields, object."""
