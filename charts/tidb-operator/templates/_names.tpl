{{- define "tidb-operator.suffix" -}}
{{- if .Values.appendReleaseSuffix }}-{{ .Release.Name }}{{ end -}}
{{- end -}}

{{- define "tidb-operator.controller-manager.name" -}}
tidb-controller-manager{{ include "tidb-operator.suffix" . }}
{{- end -}}

{{- define "tidb-operator.controller-manager.account" -}}
{{ .Values.controllerManager.serviceAccount }}{{ include "tidb-operator.suffix" . }}
{{- end -}}

{{- define "tidb-operator.controller-manager.role" -}}
{{ .Release.Name }}:tidb-controller-manager
{{- end -}}

{{- /* Of the webhook's Service and Secret, and of its configuration, which has no namespace. */ -}}
{{- define "tidb-operator.admission.name" -}}
{{ printf "tidb-admission-%s-%s" .Release.Namespace .Release.Name | trunc 63 | trimSuffix "-" }}
{{- end -}}

{{- define "tidb-operator.scheduler.name" -}}
{{ .Values.scheduler.schedulerName }}{{ include "tidb-operator.suffix" . }}
{{- end -}}

{{- define "tidb-operator.scheduler.account" -}}
{{ .Values.scheduler.serviceAccount }}{{ include "tidb-operator.suffix" . }}
{{- end -}}

{{- define "tidb-operator.scheduler.role" -}}
{{ .Release.Name }}:{{ .Values.scheduler.schedulerName }}
{{- end -}}

{{- /* The labels of a component; takes [component, root]. Selectors of Deployments are immutable: these are v1.6's. */ -}}
{{- define "tidb-operator.labels" -}}
app.kubernetes.io/name: tidb-operator
app.kubernetes.io/component: {{ first . }}
app.kubernetes.io/instance: {{ (last .).Release.Name }}
{{- end -}}

{{- /* Where and how important the pods of a component are; takes its values. */ -}}
{{- define "tidb-operator.placement" -}}
{{- range $field := list "priorityClassName" "nodeSelector" "tolerations" "affinity" "topologySpreadConstraints" }}
{{- with index $ $field }}
{{ $field }}: {{- kindIs "string" . | ternary (printf " %v" .) (printf "\n%s" (toYaml . | indent 2)) }}
{{- end }}
{{- end }}
{{- end -}}

{{- define "tidb-operator.container.security" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: {drop: [ALL]}
{{- end -}}
