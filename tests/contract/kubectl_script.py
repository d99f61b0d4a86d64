"""A user's session with kubectl: the steps, and their execution in front of a recorder."""

import os
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tests.contract.recording import Exchange, Recorder
from tests.contract.worlds import Side
from tests.controlplane.processes import BINARIES

NAMESPACE = "kubectl"
_TIMEOUT = 60.0

_TIDB_CLUSTER = """\
apiVersion: pingcap.com/v1alpha1
kind: TidbCluster
metadata: {name: basic}
spec:
  version: %s
  pd: {replicas: 1, requests: {storage: 1Gi}, config: {}}
%s"""

_WORKLOAD = """\
apiVersion: v1
kind: Service
metadata: {name: db}
spec:
  clusterIP: None
  selector: {app: db}
  ports: [{name: main, port: 80}]
---
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db, labels: {app: db, tier: back}}
spec:
  replicas: 1
  serviceName: db
  selector: {matchLabels: {app: db}}
  template:
    metadata: {labels: {app: db}}
    spec:
      terminationGracePeriodSeconds: 1
      containers:
      - name: main
        image: registry.example/idle:v1
        ports: [{containerPort: 80}]
        volumeMounts: [{name: data, mountPath: /data}]
  volumeClaimTemplates:
  - metadata: {name: data}
    spec:
      accessModes: [ReadWriteOnce]
      resources: {requests: {storage: 1Gi}}
"""


@dataclass(frozen=True, slots=True)
class Step:
    """One call of kubectl.

    If it is not `settled`, objects still change: reads depend on timing, and only writes must agree.
    """

    arguments: str
    stdin: str = ""
    settled: bool = True
    fails: bool = False
    editor: str = ""
    watched: str = ""
    """A command that makes the change that a watching call waits for."""
    note: str = ""

    @property
    def name(self) -> str:
        """The name of a step in messages."""
        return f"kubectl {self.arguments}" + (f"  # {self.note}" if self.note else "")


SCRIPT = (
    Step(f"create namespace {NAMESPACE}", settled=False),
    Step("version"),
    Step("api-resources --api-group=pingcap.com"),
    Step("explain tidbclusters.spec.pd.replicas"),
    Step("apply -f -", _TIDB_CLUSTER % ("v8.5.0", ""), note="a new cluster"),
    Step("apply -f -", _WORKLOAD, settled=False, note="a new workload"),
    Step("rollout status statefulset/db --timeout=30s", settled=False),
    Step("wait --for=jsonpath={.status.availableReplicas}=1 statefulset/db --timeout=30s", settled=False),
    Step("wait --for=condition=Ready pod/db-0 --timeout=30s"),
    Step("get pods"),
    Step("get pods -o wide"),
    Step("get pods,statefulsets,services,persistentvolumeclaims,tidbclusters,configmaps,serviceaccounts"),
    Step("get tc -o wide"),
    Step("get nodes,persistentvolumes,storageclasses,namespaces,customresourcedefinitions"),
    Step("get events"),
    Step("get events -o yaml"),
    Step("get pv,nodes -o yaml"),
    Step("get pods -l app=db -o name"),
    Step("get pods -A --field-selector metadata.name=db-0"),
    Step("get pod db-0 -o yaml"),
    Step("get statefulset db -o yaml"),
    Step("get pvc data-db-0 -o yaml"),
    Step("get service db -o yaml"),
    Step("get tc basic -o yaml"),
    Step("get tc -o yaml"),
    Step("get controllerrevisions -o yaml"),
    Step("get pods --chunk-size=1"),
    Step("get statefulset db -w", watched="label statefulset db seen=yes"),
    Step("get tc -w --output-watch-events", watched="label tc basic seen=yes"),
    Step("get pods -o json --watch-only", watched="label pod db-0 seen=yes"),
    Step("describe pod db-0"),
    Step("describe statefulset db"),
    Step("describe pvc data-db-0"),
    Step("describe tc basic"),
    Step("apply -f -", _TIDB_CLUSTER % ("v8.5.1", ""), note="a changed cluster"),
    Step("apply -f -", _TIDB_CLUSTER % ("v8.5.1", ""), note="an unchanged cluster"),
    Step("apply -f -", _TIDB_CLUSTER % ("v8.5.1", "  unheard: of\n"), fails=True, note="an unknown field"),
    Step("apply --validate=warn -f -", _TIDB_CLUSTER % ("v8.5.1", "  unheard: of\n"), note="an unknown field"),
    Step("apply -f -", _TIDB_CLUSTER % ("v8.5.1", "  tikv: {replicas: many}\n"), fails=True, note="a wrong type"),
    Step("apply -f -", _WORKLOAD.replace("tier: back", "tier: front"), note="a changed workload"),
    Step("apply -f -", _WORKLOAD.replace("serviceName", "unheard"), fails=True, note="an unknown field"),
    Step("apply -f -", _WORKLOAD.replace("Name: db", "Name: other"), fails=True, note="an immutable field"),
    Step("diff -f -", _TIDB_CLUSTER % ("v8.5.2", ""), fails=True, note="a difference"),
    Step("edit tc basic", editor="sed -i s/v8.5.1/v8.5.3/"),
    Step("edit tc basic", editor="true", note="no change"),
    Step("edit statefulset db", editor="sed -i s/OrderedReady/Parallel/", fails=True, note="an immutable field"),
    Step("edit statefulset db", editor="sed -i s/idle:v1/idle:v2/", settled=False),
    Step("rollout status statefulset/db --timeout=30s", settled=False),
    Step("wait --for=jsonpath={.status.availableReplicas}=1 statefulset/db --timeout=30s", settled=False),
    Step("annotate tc basic example.com/a=b"),
    Step('patch tc basic --type=merge -p {"spec":{"version":"v8.5.4"}}'),
    Step('patch tc basic --type=json -p [{"op":"remove","path":"/spec/nothing"}]', fails=True),
    Step('patch tc basic --type=merge --subresource=status -p {"status":{"clusterID":"1"}}'),
    Step("scale statefulset db --replicas=2", settled=False),
    Step("wait --for=jsonpath={.status.readyReplicas}=2 statefulset/db --timeout=30s", settled=False),
    Step("scale statefulset db --replicas=1 --current-replicas=2", settled=False),
    Step("wait --for=delete pod/db-1 --timeout=30s", settled=False),
    Step("scale configmap plain --replicas=1", fails=True, note="no scale subresource"),
    Step("rollout restart statefulset/db", settled=False),
    Step("rollout status statefulset/db --timeout=30s", settled=False),
    Step("rollout history statefulset/db"),
    Step("create configmap plain --from-literal=a=b"),
    Step("create configmap plain --from-literal=a=b", fails=True),
    Step("replace -f -", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: plain}\ndata: {a: c}\n"),
    Step("delete configmap plain"),
    Step("delete configmap plain", fails=True),
    Step("delete pod db-0", settled=False),
    Step("get unheard", fails=True),
    Step("get pod unheard", fails=True),
    Step("get --raw /api/v1/unheard", fails=True),
    Step("get --raw /unheard", fails=True),
    Step("get tc basic --namespace unheard", fails=True),
    Step("create configmap plain --from-literal=a=b --namespace unheard", fails=True),
    Step("apply -f -", "apiVersion: unheard.example.com/v1\nkind: Thing\nmetadata: {name: a}\n", fails=True),
    Step("delete tc basic"),
    Step("delete statefulset db --cascade=foreground", settled=False),
    Step("delete pvc data-db-0 data-db-1", settled=False),
    Step("wait --for=delete pvc/data-db-0 --timeout=30s", settled=False),
    Step(f"delete namespace {NAMESPACE} --wait=false", settled=False),
)


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of a step."""

    code: int
    output: str = field(compare=False)
    exchanges: frozenset[Exchange]


def carry_out(side: Side, directory: Path) -> list[Outcome]:
    """Every step of the script, in one of the worlds."""
    directory.mkdir()
    with Recorder(side.kubeconfig) as recorder:
        environment = {
            "KUBECONFIG": str(recorder.kubeconfig(directory / "kubeconfig")),
            "KUBECACHEDIR": str(directory / "cache"),
            "HOME": str(directory),
            "PATH": os.environ["PATH"],
        }
        return [_carry_out(step, recorder, environment) for step in SCRIPT]


def _carry_out(step: Step, recorder: Recorder, environment: Mapping[str, str]) -> Outcome:
    if step.watched:
        return _watch(step, recorder, environment)
    environment = dict(environment) | ({"EDITOR": step.editor} if step.editor else {})
    done = subprocess.run(
        _command(step.arguments),
        input=step.stdin,
        env=environment,
        text=True,
        capture_output=True,
        timeout=_TIMEOUT,
        check=False,
    )
    return Outcome(done.returncode, done.stdout + done.stderr, _taken(step, recorder))


def _watch(step: Step, recorder: Recorder, environment: Mapping[str, str]) -> Outcome:
    """Watch, make the change once the watch has begun, and end when the change was shown."""
    with subprocess.Popen(_command(step.arguments), env=environment, text=True, stdout=subprocess.PIPE) as watching:
        assert watching.stdout is not None
        recorder.wait_for_watch()
        subprocess.run(_command(step.watched), env=environment, check=True, capture_output=True, timeout=_TIMEOUT)
        recorder.wait_for_event("MODIFIED")
        watching.terminate()
        output = watching.stdout.read()
    return Outcome(0, output, _taken(step, recorder))


def _taken(step: Step, recorder: Recorder) -> frozenset[Exchange]:
    taken = recorder.take()
    return frozenset(taken if step.settled else {each.without_keys() for each in taken if each.method != "GET"})


def _command(arguments: str) -> list[str]:
    scope = [] if "--namespace" in arguments else ["--namespace", NAMESPACE]
    return [str(BINARIES / "kubectl"), *arguments.split(" "), *scope]
