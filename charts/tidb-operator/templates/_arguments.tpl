{{- /* The controller-manager's flags. Those of values that are empty keep the program's defaults. */ -}}
{{- define "tidb-operator.controller-manager.args" -}}
{{- $own := .Values.controllerManager -}}
{{- $flags := list
  (list "tidb-discovery-image" .Values.operatorImage)
  (list "tidb-backup-manager-image" .Values.tidbBackupManagerImage)
  (list "cluster-scoped" (toString .Values.clusterScoped))
-}}
{{- if not .Values.clusterScoped -}}
{{- $flags = concat $flags (list
  (list "cluster-permission-node" (toString $own.clusterPermissions.nodes))
  (list "cluster-permission-pv" (toString $own.clusterPermissions.persistentvolumes))
  (list "cluster-permission-sc" (toString $own.clusterPermissions.storageclasses))
) -}}
{{- end -}}
{{- $flags = concat $flags (list
  (list "workers" $own.workers)
  (list "shards" (gt (int $own.shards) 1 | ternary $own.shards ""))
  (list "selector" (join "," $own.selector))
  (list "features" (join "," .Values.features))
  (list "auto-failover" (toString $own.autoFailover))
  (list "pd-failover-period" $own.pdFailoverPeriod)
  (list "tikv-failover-period" $own.tikvFailoverPeriod)
  (list "tidb-failover-period" $own.tidbFailoverPeriod)
  (list "tiflash-failover-period" $own.tiflashFailoverPeriod)
  (list "dm-master-failover-period" $own.dmMasterFailoverPeriod)
  (list "dm-worker-failover-period" $own.dmWorkerFailoverPeriod)
  (list "detect-node-failure" (ternary "true" "" $own.detectNodeFailure))
  (list "cross-namespace-references" (eq $own.crossNamespaceReferences "consent" | ternary "" $own.crossNamespaceReferences))
  (list "pod-hard-recovery-period" (ternary $own.podHardRecoveryPeriod "" $own.detectNodeFailure))
  (list "leader-lease-duration" $own.leaderLeaseDuration)
  (list "leader-renew-deadline" $own.leaderRenewDeadline)
  (list "leader-retry-period" $own.leaderRetryPeriod)
  (list "kube-client-qps" $own.kubeClientQPS)
  (list "kube-client-burst" $own.kubeClientBurst)
  (list "admission-webhook" (ternary (include "tidb-operator.admission.name" .) "" $own.admissionWebhook.create))
  (list "debug-addr" $own.debugAddr)
  (list "observe" (ternary "true" "" $own.observe))
  (list "v" $own.logLevel)
) -}}
{{- range $flags }}
{{- $name := first . }}
{{- with last . }}
- -{{ $name }}={{ . }}
{{- end }}
{{- end }}
{{- with $own.extraArgs }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- /* What its kube-scheduler is told. The profile is called as the Deployment is, so that two releases do not compete. */ -}}
{{- define "tidb-operator.scheduler.configuration" -}}
apiVersion: kubescheduler.config.k8s.io/{{ semverCompare "<1.25-0" .Capabilities.KubeVersion.Version | ternary "v1beta3" "v1" }}
kind: KubeSchedulerConfiguration
leaderElection:
  leaderElect: true
  resourceNamespace: {{ .Release.Namespace }}
  resourceName: {{ include "tidb-operator.scheduler.name" . }}
profiles:
  - schedulerName: {{ include "tidb-operator.scheduler.name" . }}
extenders:
  - urlPrefix: {{ ternary "https" "http" (not (empty .Values.scheduler.extenderTLSSecret)) }}://127.0.0.1:10262/scheduler
    filterVerb: filter
    preemptVerb: preempt
    weight: 1
    httpTimeout: 30s
    nodeCacheCapable: true # names of nodes are sent, not thousands of whole ones
    {{- if .Values.scheduler.extenderTLSSecret }}
    enableHTTPS: true
    tlsConfig:
      serverName: {{ .Values.scheduler.extenderServerName }}
      caFile: /etc/extender-tls/ca.crt
      certFile: /etc/extender-tls/tls.crt
      keyFile: /etc/extender-tls/tls.key
    {{- end }}
{{- end -}}
