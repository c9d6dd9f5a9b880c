{{- define "turnline.runsNats" -}}
{{- if and .Values.nats.enabled (eq .Values.settings.execution.queues.type "nats") }}yes{{ end }}
{{- end }}

{{- define "turnline.usesStoreServer" -}}
{{- $store := default dict (get .Values.settings.execution "response_store") }}
{{- if or (has .Values.settings.session.type (list "valkey" "redis")) (has (get $store "type") (list "valkey" "redis")) }}yes{{ end }}
{{- end }}

{{- define "turnline.runsValkey" -}}
{{- if and .Values.valkey.enabled (include "turnline.usesStoreServer" .) }}yes{{ end }}
{{- end }}

{{/* NATS's settings with the product's defaults, as JSON; a test holds them against the product. */}}
{{- define "turnline.natsOptions" -}}
{{- $defaults := dict
  "input_stream" "AGENT_REQUESTS" "input_subject_prefix" "chat.req"
  "output_stream" "AGENT_REPLIES" "output_subject_prefix" "chat.out"
  "partitions" 32 "ack_wait" 10 "duplicate_window" 300 "max_age" 86400
  "max_messages" 10000 "max_messages_per_session" 100 "max_dead_letters" 1000 "replicas" 1 -}}
{{- mergeOverwrite $defaults (deepCopy (default dict (get .Values.settings.execution.queues "nats"))) | toJson -}}
{{- end }}

{{/* The same of Kafka's. */}}
{{- define "turnline.kafkaOptions" -}}
{{- $defaults := dict
  "input_topic" "agent-input" "output_topic" "agent-output" "group_id" "agent-kernel" "dlq_suffix" ".dlq"
  "partitions" 32 "replicas" 1 "max_age" 86400 -}}
{{- mergeOverwrite $defaults (deepCopy (default dict (get .Values.settings.execution.queues "kafka"))) | toJson -}}
{{- end }}

{{/* The consumers of a stream, as JSON: name and filter.  Takes options, stream and prefix. */}}
{{- define "turnline.natsConsumers" -}}
{{- $consumers := list -}}
{{- if get .options "max_ack_pending" -}}
{{- range $number := until (int .options.partitions) -}}
{{- $consumers = append $consumers (dict "name" (printf "%s-p%d" $.stream $number) "filter" (printf "%s.%d.>" $.prefix $number)) -}}
{{- end -}}
{{- else -}}
{{- $consumers = append $consumers (dict "name" (printf "%s-all" .stream) "filter" (printf "%s.>" .prefix)) -}}
{{- end -}}
{{- toJson $consumers -}}
{{- end }}

{{/* Seconds as text, without an exponent. */}}
{{- define "turnline.seconds" -}}
{{- if eq (float64 .) (floor .) -}}{{ int64 . }}s{{- else -}}{{ . }}s{{- end -}}
{{- end }}

{{- define "turnline.triggerAuthentication" -}}
{{- with .Values.autoscaling.triggerAuthentication -}}
authenticationRef: {name: {{ . }}}
{{- end }}
{{- end }}

{{/*
With a consumer per partition KEDA would follow the fullest one, since an autoscaler takes the greatest of its metrics:
so they are summed.
*/}}
{{- define "turnline.sumOfPartitions" -}}
{{- $options := include "turnline.natsOptions" . | fromJson -}}
{{- if and (get $options "max_ack_pending") (gt (int $options.partitions) 1) -}}
{{- $names := list -}}
{{- range $number := until (int $options.partitions) -}}
{{- $names = append $names (printf "p%d" $number) -}}
{{- end -}}
scalingModifiers:
  formula: {{ join " + " $names | quote }}
  target: {{ default (default 100 .Values.settings.execution.max_concurrency) .Values.autoscaling.turnsPerReplica | toString | quote }}
  activationTarget: "0"
  metricType: AverageValue
{{- end -}}
{{- end }}

{{- define "turnline.nackConnection" }}
  {{- if .account }}
  account: {{ .account }}
  {{- else if .servers }}
  servers: {{ toJson .servers }}
  {{- end }}
{{- end }}

{{- define "turnline.nackMeta" -}}
metadata:
  name: {{ .name | lower | replace "_" "-" }}
  labels:
    {{- include "turnline.labels" .root | nindent 4 }}
  annotations:
    # What lies on the broker outlives the release.
    helm.sh/resource-policy: keep
{{- end }}

{{- define "turnline.strimziMeta" -}}
metadata:
  name: {{ .name | lower | replace "_" "-" }}
  labels:
    {{- include "turnline.labels" .root | nindent 4 }}
    strimzi.io/cluster: {{ .root.Values.kafka.cluster.name }}
  annotations:
    # What lies on the brokers outlives the release.
    helm.sh/resource-policy: keep
{{- end }}
