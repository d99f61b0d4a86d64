"""The descriptions of spec fields for `kubectl explain`: a sentence each, by name, or by model and name where they
differ. Fields without a sentence here are described by their model. They are short on purpose: a definition must stay
small enough for a client-side apply (api/crds.md 2)."""

import re
from collections.abc import Mapping

from msgspec import inspect

from apis.backup_descriptions import TEXTS as _OF_BACKUPS
from apis.monitor_descriptions import TEXTS as _OF_MONITORS
from apis.shared import Json, Metadata, Model
from ports.structs import type_info

_OF_OTHERS: Mapping[str, str] = {
    "TidbInitializerSpec.cluster": "The TidbCluster, in the namespace of the TidbInitializer.",
    "TidbInitializerSpec.image": "An image with sh, nc, and python with MySQLdb, such as tnir/mysqlclient.",
    "TidbInitializerSpec.resources": "What a container of the pod needs and gets.",
    "TidbInitializerSpec.tlsClientSecretName": "The Secret with the certificate of a client of TiDB.",
    "TidbDashboardSpec.baseImage": "The image without its tag, such as pingcap/tidb-dashboard; empty: image.",
    "NGMonitoringSpec.baseImage": "The image without its tag, such as pingcap/ng-monitoring; empty: image.",
    "clusters": "The TidbCluster: one.",
    "pathPrefix": "The path below which a proxy shows the dashboard, such as /ui.",
    "telemetry": "Whether the dashboard reports how it is used; true if not given.",
    "experimental": "Whether the dashboard has features that are being tried out.",
    "listenOnLocalhostOnly": "Listen inside the pod only, for a proxy beside it.",
    "disableKeyVisualizer": "Leave the key visualizer out.",
    "ngMonitoring": "The server; what it sets wins over the same field beside it.",
    "retentionPeriod": "How long profiles and queries are kept, such as 3d.",
    "serviceAccountName": "The service account of the pod.",
    "permitHost": "From where users may come, such as 10.0.%.%; % (default) is everywhere.",
    "initSql": "SQL that is run once; statements end with a semicolon.",
    "initSqlConfigMap": "A ConfigMap with the SQL under the key init-sql, in place of initSql.",
    "passwordSecret": "A Secret with a key for each user; its value is the password.",
}
"""TidbInitializer, TidbDashboard, TidbNGMonitoring."""

_TEXTS: Mapping[str, str] = {
    **_OF_BACKUPS,
    **_OF_MONITORS,
    **_OF_OTHERS,
    # the cluster
    "acrossK8s": "The cluster spans several Kubernetes clusters; PD is found through Discovery.",
    "cluster": "Another TidbCluster whose PD this one joins.",
    "clusterDomain": "The DNS domain of the Kubernetes cluster, such as cluster.local; fixed once PD has bootstrapped.",
    "enablePVReclaim": "Delete volume claims that a scale-in left behind.",
    "enablePVCReplace": "Replace volumes that cannot be changed in place, pod by pod.",
    "enableDynamicConfiguration": "Apply what TiDB's servers can change while they run.",
    "helper": "The image of sidecars and init containers.",
    "paused": "Make no changes, but observe and report.",
    "pdAddresses": "URLs of a PD outside of this cluster, such as http://pd.example.com:2379.",
    "preferIPv6": "Listen on IPv6 addresses.",
    "pvReclaimPolicy": "The fate of volumes whose claims go: Retain (default), Delete or Recycle.",
    "recoveryMode": "Keep TiKV and TiDB waiting while a volume backup is restored.",
    "services": "Deprecated: types of Services, by component.",
    "masterNodePort": "The port of each node at which the masters are reached.",
    "startScriptVersion": "The form of the start scripts: v1 (default) or v2.",
    "startScriptV2FeatureFlags": "Options of start scripts of version v2.",
    "timezone": "A time zone of the IANA database, such as UTC or Asia/Shanghai.",
    "tlsCluster": "TLS between the components.",
    "version": "The tag of the images, such as v8.5.2; a component's goes before the cluster's.",
    # components, which their models describe themselves
    "replicas": "How many pods; above 1000 only with the annotation tidb.pingcap.com/max-replicas.",
    "baseImage": "The image without its tag, such as pingcap/tikv.",
    "image": "Deprecated: the whole image; set baseImage and version instead.",
    "config": "The configuration file, as TOML text or as an object.",
    "configUpdateStrategy": "InPlace (default) changes the file, RollingUpdate restarts the pods as well.",
    "requests": "What a pod needs at least; storage is the size of its data volume.",
    "limits": "What a pod gets at most.",
    "claims": "Claims of dynamic resource allocation.",
    "service": "The Service of the component.",
    "maxFailoverCount": "How many lost members are replaced at most; 0 switches failover off.",
    "failover": "Whether substitutes stay when the lost stores are back.",
    "recoverFailover": "Remove the substitutes.",
    "recoverByUID": "Remove the substitutes of the failover with this id.",
    "scalePolicy": "How many pods are added or removed at a time.",
    "scaleInParallelism": "How many pods are removed at a time.",
    "scaleOutParallelism": "How many pods are added at a time.",
    "spareVolReplaceReplicas": "Further pods while volumes are replaced.",
    "suspendAction": "What to suspend.",
    "suspendStatefulSet": "Delete the StatefulSet, and keep volumes, configuration and Services.",
    "statefulSetUpdateStrategy": "RollingUpdate (default), or OnDelete: you delete the pods.",
    "podManagementPolicy": "Start pods in Parallel (default) or as OrderedReady.",
    "mode": "With ms, PD runs as microservices.",
    "startTimeout": "Seconds in which the start script waits for its name to resolve.",
    "initWaitTime": "Seconds to wait before the start script begins.",
    "startUpScriptVersion": "Deprecated: the form of PD's start script.",
    "enableDashboardInternalProxy": "Deprecated: let PD forward requests to TiDB Dashboard.",
    "mountClusterClientSecret": "Mount the certificate of clients into the pods.",
    "tlsClientSecretName": "The Secret with the certificate for TiDB Dashboard.",
    "tlsClientSecretNames": "Secrets with certificates for downstream servers.",
    "dataSubDir": "A directory of the data volume to keep the data in.",
    "evictLeaderTimeout": "How long a TiKV pod waits until its leaders have moved away, such as 1500m.",
    "waitLeaderTransferBackTimeout": "How long to wait for leaders to return to a restarted TiKV, such as 400s.",
    "gracefulShutdownTimeout": "How long a TiCDC pod may take to hand over, such as 10m.",
    "privileged": "Run the container with all rights on its node.",
    "logTailer": "The containers that print log files.",
    "useSidecar": "Print with a native sidecar, which ends after the server; needs Kubernetes 1.29.",
    "sleepTimeSeconds": "How long the native sidecar still prints when the pod ends.",
    "serverLabels": "Labels of each server; the labels of its node take precedence.",
    "separateRaftLog": "Write the Raft engine's log to a file, which a sidecar prints.",
    "separateRocksDBLog": "Write RocksDB's log to a file, which a sidecar prints.",
    "separateSlowLog": "Write slow queries to a file, which a sidecar prints (default true).",
    "raftLogVolumeName": "The volume of that file, of storageVolumes or additionalVolumes.",
    "rocksDBLogVolumeName": "The volume of that file, of storageVolumes or additionalVolumes.",
    "slowLogVolumeName": "The volume of that file, of storageVolumes or additionalVolumes.",
    "slowLogTailer": "The container that prints slow queries.",
    "storeLabels": "Labels of nodes that PD learns as locations of its stores.",
    "storageClaims": "The data volumes, one for each disk.",
    "storageVolumes": "Further volumes of each pod.",
    "storageSize": "The size of the volume, such as 100Gi.",
    "storageClassName": "The storage class of the volumes; empty: the default one.",
    "volumeAttributesClassName": "The volume attributes class of the volumes.",
    "mountPath": "Where the volume is mounted; empty: nowhere.",
    "resources": "The size of the volume, in requests.storage.",
    "arguments": "Further arguments of tidb-server.",
    "args": "Further arguments of the program.",
    "plugins": "Plugins that TiDB loads, such as audit-1.",
    "binlogEnabled": "Write to Pump; by default when the cluster has one.",
    "bootstrapSQLConfigMapName": "A ConfigMap with SQL (key bootstrap-sql) that the first TiDB runs once.",
    "initializer": "A random password for root.",
    "createPassword": "Make a random password for root.",
    "lifecycle": "What a container does after its start and before its end.",
    "tlsClient": "TLS for SQL clients.",
    "disableClientAuthn": "Ask SQL clients for no certificate.",
    "skipInternalClientCA": "Let the initializer check servers with the system's authorities.",
    "tokenBasedAuthEnabled": "Accept JSON web tokens of SQL clients.",
    "customizedStartupProbe": "A program of an image of yours that says when TiDB has started.",
    "binaryName": "The program in the image.",
    "tici": "Full-text search: TiCI, its reader in TiFlash, and the changefeed that feeds it.",
    "TiCISpec.meta": "The servers with the catalogue of indexes.",
    "TiCISpec.worker": "The servers that build indexes.",
    "TiCISpec.s3": "The bucket of the indexes.",
    "TiCISpec.reader": "The reader of indexes in TiFlash.",
    "TiCISpec.changefeed": "The changefeed of TiCDC that writes changes into the bucket.",
    "TiCIS3.endpoint": "The URL of the storage, such as https://s3.us-east-1.amazonaws.com.",
    "TiCIS3.bucket": "The name of the bucket.",
    "TiCIS3.region": "The region (default us-east-1).",
    "TiCIS3.prefix": "The prefix in the bucket (default tici_default_prefix).",
    "TiCIS3.secretName": "A Secret with access_key and secret_key, in place of keys in the spec.",
    "TiCIS3.accessKey": "The access key, in clear text; better use secretName.",
    "TiCIS3.secretKey": "The secret key, in clear text; better use secretName.",
    "usePathStyle": "Put the bucket into the path of URLs (default true).",
    "TiCIReader.port": "The port of the reader (default 8520).",
    "TiCIChangefeed.enable": "Whether TiCDC feeds TiCI (default true).",
    "heartbeatInterval": "Without effect.",
    "maxHeartbeatRetries": "Without effect.",
    "heartbeatWorkerCount": "Without effect.",
    "sinkURI": "The sink; empty: in the bucket.",
    "changefeedID": "The name of the changefeed (default tici-replication-task).",
    "sslEnableTiDB": "Have TiProxy speak TLS with TiDB.",
    "certLayout": "How certificates are mounted: empty, or v1.",
    "proxy": "The configuration of the TiFlash proxy.",
    "setTimeZone": "Set the time zone of the cluster.",
    # Services
    "additionalPorts": "Further ports of the Service.",
    "clusterIP": "The address of the Service; None for a headless one.",
    "exposeStatus": "Give the Service the status port as well (default true).",
    "externalTrafficPolicy": "Cluster or Local: whether traffic from outside stays on its node.",
    "enableNamedStatusPort": "Name the status port of the containers.",
    "loadBalancerClass": "Which implementation of load balancers to use.",
    "loadBalancerIP": "The address that the load balancer should get.",
    "loadBalancerSourceRanges": "Address ranges that may connect, such as 10.0.0.0/8.",
    "mysqlNodePort": "The port for SQL clients on each node; 0: any free one.",
    "statusNodePort": "The status port on each node; 0: any free one.",
    "port": "The number of the port.",
    "portName": "The name of the port.",
    "type": "ClusterIP, NodePort or LoadBalancer.",
    # pods
    "additionalContainers": "Further containers; one called as the component is merged into its container.",
    "additionalVolumes": "Further volumes of the pods.",
    "additionalVolumeMounts": "Where they are mounted in the component's container.",
    "affinity": "Where pods may run, and near what; replaces the cluster's.",
    "annotations": "Annotations of the pods; tidb.pingcap.com/restartedAt restarts them one by one.",
    "automountServiceAccountToken": "Whether pods get a token of their service account.",
    "dnsConfig": "DNS settings of the pods.",
    "dnsPolicy": "ClusterFirst, ClusterFirstWithHostNet, Default or None.",
    "env": "Environment variables of the component's container.",
    "envFrom": "ConfigMaps and Secrets to take environment variables from.",
    "hostNetwork": "Run pods in the network of their node.",
    "imagePullPolicy": "Always, IfNotPresent or Never; a component's goes before the cluster's.",
    "imagePullSecrets": "Secrets for the image registry.",
    "initContainers": "Containers that run before the others.",
    "labels": "Labels of the pods.",
    "nodeSelector": "Labels that nodes must have; merged with the cluster's.",
    "podSecurityContext": "The security context of the pods.",
    "priorityClassName": "The priority class of the pods.",
    "schedulerName": "The scheduler of the pods.",
    "securityContext": "The security context of the component's container.",
    "serviceAccount": "The service account of the pods.",
    "terminationGracePeriodSeconds": "Seconds that a pod has to end by itself.",
    "tolerations": "Taints of nodes that pods tolerate; replaces the cluster's.",
    "topologySpreadConstraints": "How pods are spread over nodes and zones.",
    "topologyKey": "The label of nodes by which pods are spread.",
    "maxSkew": "By how many pods two such groups of nodes may differ.",
    "minDomains": "How many such groups there should be at least.",
    "nodeAffinityPolicy": "Honor or Ignore the affinity when counting nodes.",
    "matchLabels": "Other values of the labels by which pods are counted.",
    "readinessProbe": "When a pod counts as Ready.",
    "livenessProbe": "When a container is started again.",
    "initialDelaySeconds": "Seconds before the first probe.",
    "periodSeconds": "Seconds from one probe to the next.",
    "timeoutSeconds": "Seconds after which a probe has failed.",
    "failureThreshold": "Failures in a row that count.",
    "successThreshold": "Successes in a row that count.",
    # where the same name means something else
    "enabled": "Whether it is switched on.",
    "enableDiscoveryMTLS": "Have Discovery demand client certificates.",
    "name": "The name.",
    "namespace": "The namespace; empty: the namespace of this TidbCluster.",
    "TidbClusterRef.name": "The name of the other TidbCluster.",
    "PDMSSpec.name": "Which microservice: tso or scheduling.",
    "StorageVolume.name": "The name, which follows the component's name in the claim.",
    "Probe.type": "How to ask: tcp or command.",
    "HelperSpec.image": "The image of sidecars and init containers.",
    "CustomizedStartupProbe.image": "The image with the program.",
    "TiDBSlowLogTailerSpec.image": "Deprecated: the image; set spec.helper.image instead.",
    "ServiceSpec.annotations": "Annotations of the Service.",
    "ServiceSpec.labels": "Labels of the Service.",
    "TiDBServiceSpec.annotations": "Annotations of the Service.",
    "TiDBServiceSpec.labels": "Labels of the Service.",
    "DMDiscoverySpec.address": "Deprecated: has no effect.",
    "DMMasterServiceSpec.annotations": "Annotations of the Service.",
    "DMMasterServiceSpec.labels": "Labels of the Service.",
    "DMClusterSpec.tlsClientSecretNames": "Secrets with certificates for sources and downstream servers.",
    "DMCluster.spec": "What you want: masters, workers, and what they have in common.",
    "DMCluster.status": "What the operator last saw; REASON of `kubectl get dc -o wide` says what it waits for.",
    "TidbCluster.spec": "What you want: the components of the cluster, and what they have in common.",
    "TidbCluster.status": "What the operator last saw; REASON of `kubectl get tc -o wide` says what it waits for.",
}

_PLACE = re.compile(r"^`[\w.]+`: |^An entry of `[\w.]+`: ")
_CITED = re.compile(r" \([^()]*\)(?=\.?$)")
"""Prefixes of models' docstrings and the citations at their end, which the descriptions omit."""


def describe(tree: Json, model: type[Model]) -> None:
    """Give the schema of a model and its properties their sentences, in place."""
    tree["description"] = _first_line(model)
    _describe(tree, type_info(model))


def _describe(tree: Json, kind: inspect.Type) -> None:
    match _plain(kind):
        case inspect.StructType() as struct if struct.cls is not Metadata:
            for field in struct.fields:
                node = tree["properties"][field.encode_name]
                if text := _sentence(struct.cls, field):
                    node["description"] = text
                _describe(node, field.type)
        case inspect.ListType() as items:
            _describe(tree.get("items") or {}, items.item_type)
        case inspect.DictType() as values if isinstance(tree.get("additionalProperties"), dict):
            _describe(tree["additionalProperties"], values.value_type)


def _sentence(model: type, field: inspect.Field) -> str:
    if model.__name__.endswith(("Status", "Condition", "Record")):  # what the operator writes
        return ""
    name = field.encode_name
    for each in model.__mro__:  # the field may belong to a base class
        if text := _TEXTS.get(f"{each.__name__}.{name}"):
            return text
    return _TEXTS.get(name) or _of_model(field.type)


def _of_model(kind: inspect.Type) -> str:
    kind = _plain(kind)
    kind = _plain(kind.item_type) if isinstance(kind, inspect.ListType) else kind
    if not isinstance(kind, inspect.StructType) or kind.cls is Metadata:
        return ""
    return _first_line(kind.cls)


def _first_line(model: type) -> str:
    text = _CITED.sub("", _PLACE.sub("", (model.__doc__ or "").partition("\n")[0]))
    return text[:1].upper() + text[1:]


def _plain(kind: inspect.Type) -> inspect.Type:
    """The type without annotations and without the choice to be absent."""
    if isinstance(kind, inspect.Metadata):
        return _plain(kind.type)
    if isinstance(kind, inspect.UnionType):
        choices = [choice for choice in kind.types if not isinstance(choice, inspect.NoneType)]
        return _plain(choices[0]) if len(choices) == 1 else kind
    return kind
