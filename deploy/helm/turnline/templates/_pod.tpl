{{/* What every container of ours is like, whatever it runs. */}}
{{- define "turnline.securityContext" -}}
allowPrivilegeEscalation: false
capabilities: {drop: [ALL]}
readOnlyRootFilesystem: true
runAsNonRoot: true
{{- end }}

{{- define "turnline.podSecurityContext" -}}
runAsNonRoot: true
runAsUser: {{ . }}
runAsGroup: {{ . }}
fsGroup: {{ . }}
fsGroupChangePolicy: OnRootMismatch
seccompProfile: {type: RuntimeDefault}
{{- end }}

{{- define "turnline.mounts" -}}
- {name: config, mountPath: /etc/turnline/config, readOnly: true}
- {name: secrets, mountPath: /etc/turnline/secrets, readOnly: true}
- {name: tmp, mountPath: /tmp}
{{- end }}

{{- define "turnline.volumes" -}}
- name: config
  configMap: {name: {{ include "turnline.fullname" . }}}
- name: secrets
  projected:
    defaultMode: 0440
    sources:
      {{- include "turnline.secretSources" . | trim | default "[]" | nindent 6 }}
# Forms over 1 MB are put here while they are read.
- name: tmp
  emptyDir: {sizeLimit: 1Gi}
{{- end }}

{{- define "turnline.env" -}}
- {name: AK_CONFIG_PATH_OVERRIDE, value: /etc/turnline/config/config.yaml}
- {name: AK_SECRETS_PATH, value: /etc/turnline/secrets}
{{- end }}

{{- define "turnline.pullSecrets" -}}
{{- with .Values.image.pullSecrets }}
imagePullSecrets:
  {{- range . }}
  - name: {{ . }}
  {{- end }}
{{- end }}
{{- end }}

{{/* The ports of a part.  Takes root, name and part. */}}
{{- define "turnline.ports" -}}
{{- $api := default dict (get .root.Values.settings "api") }}
{{- $sockets := default dict (get .root.Values.settings "websocket_api") }}
{{- if eq .part.probe "http" }}
- {name: http, containerPort: 8000}
{{- end }}
{{- if get .part "pushes" }}
- {name: push, containerPort: 8001}
{{- end }}
{{- if eq .name "scaler" }}
- {name: grpc, containerPort: 9090}
{{- else if and (get .part "http") (get $api "grpc_port") }}
- {name: grpc, containerPort: {{ $api.grpc_port }}}
{{- else if and (eq .name "push-endpoint") (get $sockets "push_grpc_port") }}
- {name: grpc, containerPort: {{ $sockets.push_grpc_port }}}
{{- end }}
{{- end }}

{{- define "turnline.namespacePeer" -}}
namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: {{ . }}}}
{{- end }}
