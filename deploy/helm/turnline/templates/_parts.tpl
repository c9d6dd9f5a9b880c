{{/*
The parts of the release, as JSON: name -> what it is.  Everything that is rendered for each part asks here, so that
a part is described once.
  key      of its values
  service  the name the product, its alerts and its dashboard give it
  image    repository of its image, where no other is named
  command  in place of the image's own
  http     takes requests of clients at 8000
  pushes   takes pushes at 8001
  probe    name of the port with /health, /ready and /metrics
*/}}
{{- define "turnline.parts" -}}
{{- $values := .Values -}}
{{- $five := eq $values.layout "five" -}}
{{- $python := "/opt/turnline/bin/python" -}}
{{- $parts := dict -}}
{{- if $five -}}
{{- $_ := set $parts "request-handler" (dict "key" "requestHandler" "service" "request-handler" "image" "turnline-request-handler" "http" true "probe" "http") -}}
{{- $_ := set $parts "responder" (dict "key" "responder" "service" "responder" "image" "turnline-responder" "probe" "http") -}}
{{- else -}}
{{- $_ := set $parts "io-handler" (dict "key" "ioHandler" "service" "io-handler" "image" "turnline" "http" true "probe" "http" "command" (list $python "-c" "from turnline.pipeline import IOHandler; IOHandler.run()")) -}}
{{- end -}}
{{- $runner := dict "key" "agentRunner" "service" "runner" "image" "turnline-runner" "probe" "http" -}}
{{- if $values.agentRunner.agents.configMap -}}
{{- $_ := set $runner "command" (list $python "-c" "import agent; from turnline.runner.main import main; main()") -}}
{{- end -}}
{{- $_ := set $parts "agent-runner" $runner -}}
{{- if include "turnline.hasGateway" . -}}
{{- $_ := set $parts "ws-gateway" (dict "key" "wsGateway" "service" "gateway" "image" "turnline-gateway" "http" true "pushes" true "probe" "http") -}}
{{- end -}}
{{- if include "turnline.hasPushEndpoint" . -}}
{{- $_ := set $parts "push-endpoint" (dict "key" "pushEndpoint" "service" "push-endpoint" "image" "turnline-push-endpoint" "pushes" true "probe" "push") -}}
{{- end -}}
{{- if include "turnline.hasScaler" . -}}
{{- $_ := set $parts "scaler" (dict "key" "scaler" "service" "scaler" "image" "turnline-scaler" "probe" "http") -}}
{{- end -}}
{{- toJson $parts -}}
{{- end }}

{{- define "turnline.hasGateway" -}}
{{- if kindIs "bool" .Values.wsGateway.enabled }}
{{- if .Values.wsGateway.enabled }}yes{{ end }}
{{- else if eq .Values.layout "five" }}yes{{ end }}
{{- end }}

{{- define "turnline.hasPushEndpoint" -}}
{{- if kindIs "bool" .Values.pushEndpoint.enabled }}
{{- if .Values.pushEndpoint.enabled }}yes{{ end }}
{{- else if eq .Values.layout "five" }}yes{{ end }}
{{- end }}

{{- define "turnline.pushes" -}}
{{- if or (include "turnline.hasGateway" .) (include "turnline.hasPushEndpoint" .) }}yes{{ end }}
{{- end }}

{{- define "turnline.hasScaler" -}}
{{- if and .Values.autoscaling.enabled (eq .Values.autoscaling.by "scaler") }}yes{{ end }}
{{- end }}

{{/* The values of a part over `defaults`, as JSON.  Takes root and key. */}}
{{- define "turnline.partValues" -}}
{{- mergeOverwrite (deepCopy .root.Values.defaults) (deepCopy (get .root.Values .key)) | toJson -}}
{{- end }}

{{/* Seconds for work to finish.  Takes root, key and values. */}}
{{- define "turnline.drainSeconds" -}}
{{- $execution := .root.Values.settings.execution -}}
{{- if kindIs "invalid" .values.drainSeconds -}}
{{- if hasKey $execution "drain_grace" -}}
{{- $execution.drain_grace -}}
{{- else if eq .key "agentRunner" -}}
{{- min (int64 (ceil (default 600 $execution.turn_timeout))) 3600 -}}
{{- else -}}
25
{{- end -}}
{{- else -}}
{{- .values.drainSeconds -}}
{{- end -}}
{{- end }}
