{{- /*
The CRDs that are not those of this chart, as lines. Helm makes missing ones and leaves the others alone, so that no release takes fields
away from another. Says nothing without a connection, as in `helm template`.
*/ -}}
{{- define "tidb-operator.outdated-definitions" -}}
{{- if .Values.clusterScoped }}
{{- range $path, $content := .Files.Glob "crds/*.yaml" }}
{{- $ours := $content | toString | fromYaml }}
{{- $found := lookup "apiextensions.k8s.io/v1" "CustomResourceDefinition" "" $ours.metadata.name }}
{{- if and $found (ne (toJson $found.spec.versions) (toJson $ours.spec.versions)) }}
{{ $ours.metadata.name }}
{{- end }}
{{- end }}
{{- end }}
{{- end -}}
