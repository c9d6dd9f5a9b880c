{{/* Names and labels. */}}

{{- define "turnline.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 40 | trimSuffix "-" }}
{{- end }}

{{- define "turnline.fullname" -}}
{{- if .Values.fullnameOverride }}
{{- .Values.fullnameOverride | trunc 40 | trimSuffix "-" }}
{{- else if contains (include "turnline.name" .) .Release.Name }}
{{- .Release.Name | trunc 40 | trimSuffix "-" }}
{{- else }}
{{- printf "%s-%s" .Release.Name (include "turnline.name" .) | trunc 40 | trimSuffix "-" }}
{{- end }}
{{- end }}

{{- define "turnline.selector" -}}
app.kubernetes.io/name: {{ include "turnline.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "turnline.labels" -}}
{{ include "turnline.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
app.kubernetes.io/part-of: turnline
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end }}

{{- define "turnline.serviceAccount" -}}
{{- if .Values.serviceAccount.create }}
{{- default (include "turnline.fullname" .) .Values.serviceAccount.name }}
{{- else }}
{{- default "default" .Values.serviceAccount.name }}
{{- end }}
{{- end }}

{{- define "turnline.secretName" -}}
{{ include "turnline.fullname" . }}
{{- end }}

{{/* An image of ours.  Takes root, repository and tag, which may be empty. */}}
{{- define "turnline.image" -}}
{{- $tag := default (default .root.Chart.AppVersion .root.Values.image.tag) .tag -}}
{{- if .root.Values.image.registry -}}
{{ .root.Values.image.registry }}/
{{- end -}}
{{ .repository }}:{{ $tag }}
{{- end }}

{{/* The image of a part: one that is named is taken as it stands, with a tag of its own.  Takes root, part and image. */}}
{{- define "turnline.partImage" -}}
{{- $repository := get .image "repository" -}}
{{- $tag := get .image "tag" -}}
{{- if not $repository -}}
{{ include "turnline.image" (dict "root" .root "repository" .part.image "tag" $tag) }}
{{- else if not $tag -}}
{{- fail (printf "%s.image.repository is named without %s.image.tag: image.tag is that of Turnline's own images; set the tag" .part.key .part.key) -}}
{{- else -}}
{{ $repository }}:{{ $tag }}
{{- end -}}
{{- end }}
