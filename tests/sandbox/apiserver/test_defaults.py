"""Defaults of the server (objects.md 11.7)."""

from tests.sandbox.apiserver.calls import APPS, CORE, Calls, pod, workload

_CLAIM_TEMPLATE = {
    "metadata": {"name": "data"},
    "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
}


def test_pods(call: Calls) -> None:
    call.made(f"{CORE}/serviceaccounts", {"metadata": {"name": "pd"}})
    made = call.made(f"{CORE}/pods", pod("p", serviceAccountName="pd"))
    spec = made["spec"]
    assert ("default-scheduler", {}, 30, "pd") == (
        spec["schedulerName"],
        spec["securityContext"],
        spec["terminationGracePeriodSeconds"],
        spec["serviceAccount"],
    )
    assert {
        "name": "main",
        "image": "pingcap/pd:v8.5.2",
        "resources": {},
        "terminationMessagePath": "/dev/termination-log",
        "terminationMessagePolicy": "File",
        "imagePullPolicy": "IfNotPresent",
        "volumeMounts": [
            {
                "name": spec["volumes"][0]["name"],
                "readOnly": True,
                "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount",
            }
        ],
    } == spec["containers"][0]
    assert {"phase": "Pending", "qosClass": "BestEffort"} == made["status"]


def test_a_pod_mounts_the_token_of_its_account(call: Calls) -> None:
    accounts = f"{CORE}/serviceaccounts"
    call.made(accounts, {"metadata": {"name": "closed"}, "automountServiceAccountToken": False})

    plain = call.made(f"{CORE}/pods", pod("plain"))["spec"]
    by_account = call.made(f"{CORE}/pods", pod("by-account", serviceAccountName="closed"))["spec"]
    by_pod = call.made(f"{CORE}/pods", pod("by-pod", automountServiceAccountToken=False))["spec"]

    assert "default" == plain["serviceAccountName"]
    assert ["serviceAccountToken", "configMap", "downwardAPI"] == [
        next(iter(source)) for source in plain["volumes"][0]["projected"]["sources"]
    ]
    assert ("volumes" in by_account, "volumes" in by_pod) == (False, False)


def test_containers_and_volumes(call: Calls) -> None:
    container = {
        "name": "main",
        "image": "busybox",
        "ports": [{"containerPort": 1}],
        "env": [{"name": "IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}],
        "readinessProbe": {"httpGet": {"port": 1}},
        "resources": {"limits": {"cpu": "1", "memory": "1Gi"}},
    }
    volumes = [{"name": "c", "configMap": {"name": "c"}}, {"name": "e"}]
    made = call.made(f"{CORE}/pods", pod("p", containers=[container], volumes=volumes))
    full = made["spec"]["containers"][0]
    assert "Always" == full["imagePullPolicy"]
    assert "TCP" == full["ports"][0]["protocol"]
    assert "v1" == full["env"][0]["valueFrom"]["fieldRef"]["apiVersion"]
    probe = {"periodSeconds": 10, "timeoutSeconds": 1, "successThreshold": 1, "failureThreshold": 3}
    assert probe | {"httpGet": {"port": 1, "path": "/", "scheme": "HTTP"}} == full["readinessProbe"]
    assert {"cpu": "1", "memory": "1Gi"} == full["resources"]["requests"]
    assert 420 == made["spec"]["volumes"][0]["configMap"]["defaultMode"]
    assert {} == made["spec"]["volumes"][1]["emptyDir"]
    assert "Guaranteed" == made["status"]["qosClass"]


def test_stateful_sets(call: Calls) -> None:
    made = call.made(f"{APPS}/statefulsets", workload("web", volumeClaimTemplates=[_CLAIM_TEMPLATE]))
    spec = made["spec"]
    assert (10, {"whenDeleted": "Retain", "whenScaled": "Retain"}, "OrderedReady") == (
        spec["revisionHistoryLimit"],
        spec["persistentVolumeClaimRetentionPolicy"],
        spec["podManagementPolicy"],
    )
    assert {"type": "RollingUpdate", "rollingUpdate": {"partition": 0}} == spec["updateStrategy"]
    claim = spec["volumeClaimTemplates"][0]
    assert ("v1", "PersistentVolumeClaim", "Filesystem", {"phase": "Pending"}) == (
        claim["apiVersion"],
        claim["kind"],
        claim["spec"]["volumeMode"],
        claim["status"],
    )


def test_deployments(call: Calls) -> None:
    spec = call.made(f"{APPS}/deployments", workload("web"))["spec"]
    assert (1, 10, 600) == (spec["replicas"], spec["revisionHistoryLimit"], spec["progressDeadlineSeconds"])


def test_services_are_given_addresses_and_ports_that_stay(call: Calls) -> None:
    def service(name: str) -> dict[str, object]:
        ports = [{"port": 80}]
        spec = {"type": "LoadBalancer", "externalTrafficPolicy": "Local", "ports": ports}
        return {"metadata": {"name": name}, "spec": spec}

    first = call.made(f"{CORE}/services", service("a"))["spec"]
    second = call.made(f"{CORE}/services", service("b"))["spec"]
    assert ("10.96.0.10", "10.96.0.11") == (first["clusterIP"], second["clusterIP"])
    used = {spec["ports"][0]["nodePort"] for spec in (first, second)} | {
        spec["healthCheckNodePort"] for spec in (first, second)
    }
    # ports below 30086 are left to users
    assert {30086, 30087, 30088, 30089} == used
    assert ("Cluster", ["IPv4"], "SingleStack", "None", True) == (
        first["internalTrafficPolicy"],
        first["ipFamilies"],
        first["ipFamilyPolicy"],
        first["sessionAffinity"],
        first["allocateLoadBalancerNodePorts"],
    )
    replaced = call("PUT", f"{CORE}/services/a", service("a")).tree["spec"]
    assert first == replaced
    plain = call.merged(f"{CORE}/services/a", {"spec": {"type": "ClusterIP"}}).tree["spec"]
    assert (first["clusterIP"], [{"port": 80, "protocol": "TCP", "targetPort": 80}]) == (
        plain["clusterIP"],
        plain["ports"],
    )


def test_headless_services_get_no_address(call: Calls) -> None:
    body = {"metadata": {"name": "peer"}, "spec": {"clusterIP": "None", "ports": [{"port": 1}]}}
    spec = call.made(f"{CORE}/services", body)["spec"]
    assert ("None", ["None"]) == (spec["clusterIP"], spec["clusterIPs"])


def test_claims_take_the_default_storage_class(call: Calls) -> None:
    annotations = {"storageclass.kubernetes.io/is-default-class": "true"}
    storage_class = {"metadata": {"name": "fast", "annotations": annotations}, "provisioner": "sandbox"}
    made = call.made("/apis/storage.k8s.io/v1/storageclasses", storage_class)
    assert ("Delete", "Immediate") == (made["reclaimPolicy"], made["volumeBindingMode"])
    claim = call.made(f"{CORE}/persistentvolumeclaims", {**_CLAIM_TEMPLATE})
    assert ("fast", "Filesystem", {"phase": "Pending"}) == (
        claim["spec"]["storageClassName"],
        claim["spec"]["volumeMode"],
        claim["status"],
    )


def test_secrets_encode_their_plain_text(call: Calls) -> None:
    made = call.made(f"{CORE}/secrets", {"metadata": {"name": "s"}, "stringData": {"root": "x"}})
    assert ("Opaque", {"root": "eA=="}, False) == (made["type"], made["data"], "stringData" in made)


def test_jobs_select_their_own_pods(call: Calls) -> None:
    template = {"spec": pod("x")["spec"] | {"restartPolicy": "Never"}}
    made = call.made(
        "/apis/batch/v1/namespaces/default/jobs", {"metadata": {"name": "j"}, "spec": {"template": template}}
    )
    uid = made["metadata"]["uid"]
    assert {"batch.kubernetes.io/controller-uid": uid} == made["spec"]["selector"]["matchLabels"]
    assert "j" == made["spec"]["template"]["metadata"]["labels"]["job-name"]
    assert (1, 6) == (made["spec"]["completions"], made["spec"]["backoffLimit"])
