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

{{- /*
The CRDs that are missing though others are there, in one line. Helm makes them at the first install, and never in an upgrade, so that a release of
v1.6 may lack kinds. Says nothing without a connection.
*/ -}}
{{- define "tidb-operator.missing-definitions" -}}
{{- $missing := list }}
{{- $any := false }}
{{- if .Values.clusterScoped }}
{{- range $path, $_ := .Files.Glob "crds/*.yaml" }}
{{- $name := base $path | trimSuffix ".yaml" | splitList "_" | reverse | join "." }}
{{- if lookup "apiextensions.k8s.io/v1" "CustomResourceDefinition" "" $name }}
{{- $any = true }}
{{- else }}
{{- $missing = append $missing $name }}
{{- end }}
{{- end }}
{{- end }}
{{- if $any }}{{ join ", " $missing }}{{ end }}
{{- end -}}
