{{/*
The configuration file, as JSON: the settings of the values, and what the chart knows better.
Secrets stand there as `<file:name>`, of the files mounted from secrets.
*/}}
{{- define "turnline.config" -}}
{{- $name := include "turnline.fullname" . -}}
{{- $config := deepCopy .Values.settings -}}
{{- $api := dict "host" "0.0.0.0" "port" 8000 -}}
{{- $sockets := dict "push_port" 8001 -}}
{{- if .Values.secrets.adminToken.existingSecret -}}
{{- $_ := set $api "admin_token" "<file:admin-token>" -}}
{{- end -}}
{{- if include "turnline.pushes" . -}}
{{- $_ := set $sockets "push_auth_token" "<file:push-token>" -}}
{{- end -}}
{{- $_ := mergeOverwrite $config (dict "api" $api "websocket_api" $sockets) -}}
{{- $jwt := .Values.secrets.jwt -}}
{{- if include "turnline.jwtSecret" . -}}
{{- $_ := mergeOverwrite $config (dict "auth" (dict "jwt" (dict "secret" "<file:jwt-secret>"))) -}}
{{- end -}}
{{- if .Values.secrets.jwtPublicKey.existingSecret -}}
{{- $_ := mergeOverwrite $config (dict "auth" (dict "jwt" (dict "public_key_file" "/etc/turnline/secrets/jwt-public-key.pem"))) -}}
{{- end -}}
{{- $queues := $config.execution.queues -}}
{{- if eq $queues.type "nats" -}}
{{- $_ := set $queues "nats" (mergeOverwrite (default dict (get $queues "nats")) (include "turnline.natsConfig" . | fromJson)) -}}
{{- else if eq $queues.type "kafka" -}}
{{- $_ := set $queues "kafka" (mergeOverwrite (default dict (get $queues "kafka")) (include "turnline.kafkaConfig" . | fromJson)) -}}
{{- end -}}
{{- include "turnline.setStoreUrl" (dict "root" . "store" $config.session) -}}
{{- with (get $config.execution "response_store") -}}
{{- include "turnline.setStoreUrl" (dict "root" $ "store" .) -}}
{{- end -}}
{{- toJson $config -}}
{{- end }}

{{- define "turnline.jwtSecret" -}}
{{- if or .Values.secrets.jwt.existingSecret .Values.secrets.jwt.generate }}yes{{ end }}
{{- end }}

{{/* Put where the store is, and its password, into a block.  Takes root and store. */}}
{{- define "turnline.setStoreUrl" -}}
{{- $type := .store.type -}}
{{- if has $type (list "valkey" "redis") -}}
{{- $block := default dict (get .store $type) -}}
{{- $url := get $block "url" -}}
{{- if and $url .root.Values.valkey.enabled -}}
{{- fail (printf "settings: a %s store has a url while valkey.enabled is true, and would be sent the password of the Valkey in the release; set valkey.enabled=false, or leave the url out" $type) -}}
{{- end -}}
{{- if .root.Values.valkey.enabled -}}
{{- $url = printf "%s://%s-valkey:6379" $type (include "turnline.fullname" .root) -}}
{{- end -}}
{{- if not $url -}}
{{- fail (printf "settings: a %s store has no url, and valkey.enabled is false; set the url" $type) -}}
{{- end -}}
{{- if or .root.Values.valkey.enabled .root.Values.secrets.store.existingSecret -}}
{{- $url = replace "://" (printf "://%s:<file:store-password>@" .root.Values.secrets.store.username) $url -}}
{{- end -}}
{{- $_ := set .store $type (mergeOverwrite $block (dict "url" $url)) -}}
{{- end -}}
{{- end }}

{{- define "turnline.natsConfig" -}}
{{- $given := default dict (get .Values.settings.execution.queues "nats") -}}
{{- $secrets := .Values.secrets.nats -}}
{{- $url := get $given "url" -}}
{{- if .Values.nats.enabled -}}
{{- $url = printf "nats://%s-nats:4222" (include "turnline.fullname" .) -}}
{{- else if not $url -}}
{{- fail "settings.execution.queues.nats.url is not set, and nats.enabled is false; set the url" -}}
{{- end -}}
{{- $config := dict -}}
{{- if $secrets.credentialsSecret -}}
{{- $_ := set $config "credentials_file" "/etc/turnline/secrets/nats.creds" -}}
{{- else if or .Values.nats.enabled $secrets.existingSecret -}}
{{- $url = replace "://" (printf "://%s:<file:nats-password>@" $secrets.username) $url -}}
{{- end -}}
{{- if $secrets.caSecret -}}
{{- $_ := set $config "tls_ca_file" "/etc/turnline/secrets/nats-ca.crt" -}}
{{- end -}}
{{- set $config "url" $url | toJson -}}
{{- end }}

{{- define "turnline.kafkaConfig" -}}
{{- $given := default dict (get .Values.settings.execution.queues "kafka") -}}
{{- $servers := get $given "bootstrap_servers" -}}
{{- $client := deepCopy (default dict (get $given "client_config")) -}}
{{- if and (not $servers) .Values.kafka.cluster.create -}}
{{- /* With its namespace: KEDA asks from another. */ -}}
{{- $servers = printf "%s-kafka-bootstrap.%s.svc:9093" .Values.kafka.cluster.name .Release.Namespace -}}
{{- end -}}
{{- if not $servers -}}
{{- fail "settings.execution.queues.kafka.bootstrap_servers is not set, and kafka.cluster.create is false; set the servers" -}}
{{- end -}}
{{- if include "turnline.kafkaPassword" . -}}
{{- $client = mergeOverwrite (dict "security.protocol" "SASL_SSL" "sasl.mechanism" "SCRAM-SHA-512") $client -}}
{{- $_ := set $client "sasl.username" (include "turnline.kafkaUser" .) -}}
{{- $_ := set $client "sasl.password" "<file:kafka-password>" -}}
{{- end -}}
{{- if or .Values.secrets.kafka.caSecret .Values.kafka.cluster.create -}}
{{- $_ := set $client "ssl.ca.location" "/etc/turnline/secrets/kafka-ca.crt" -}}
{{- end -}}
{{- dict "bootstrap_servers" $servers "client_config" $client | toJson -}}
{{- end }}

{{/* Strimzi writes the user's password into a secret of the user's name, so that must not be the release's own. */}}
{{- define "turnline.kafkaUser" -}}
{{- default (printf "%s-kafka" (include "turnline.fullname" .)) .Values.secrets.kafka.username -}}
{{- end }}

{{- define "turnline.kafkaPassword" -}}
{{- if or .Values.secrets.kafka.existingSecret .Values.kafka.user.create }}yes{{ end }}
{{- end }}

{{/* The sources of /etc/turnline/secrets: which key of which secret is which file. */}}
{{- define "turnline.secretSources" -}}
{{- $own := include "turnline.secretName" . -}}
{{- $secrets := .Values.secrets -}}
{{- $type := .Values.settings.execution.queues.type -}}
{{- if include "turnline.pushes" . }}
{{ include "turnline.secretSource" (list (default $own $secrets.pushToken.existingSecret) $secrets.pushToken.key "push-token") }}
{{- end }}
{{- if include "turnline.jwtSecret" . }}
{{ include "turnline.secretSource" (list (default $own $secrets.jwt.existingSecret) $secrets.jwt.key "jwt-secret") }}
{{- end }}
{{- if $secrets.jwtPublicKey.existingSecret }}
{{ include "turnline.secretSource" (list $secrets.jwtPublicKey.existingSecret $secrets.jwtPublicKey.key "jwt-public-key.pem") }}
{{- end }}
{{- if $secrets.adminToken.existingSecret }}
{{ include "turnline.secretSource" (list $secrets.adminToken.existingSecret $secrets.adminToken.key "admin-token") }}
{{- end }}
{{- if $secrets.store.existingSecret }}
{{ include "turnline.secretSource" (list $secrets.store.existingSecret $secrets.store.key "store-password") }}
{{- else if .Values.valkey.enabled }}
{{ include "turnline.secretSource" (list $own "valkey-password" "store-password") }}
{{- end }}
{{- if eq $type "nats" }}
{{- if $secrets.nats.credentialsSecret }}
{{ include "turnline.secretSource" (list $secrets.nats.credentialsSecret $secrets.nats.credentialsKey "nats.creds") }}
{{- else if $secrets.nats.existingSecret }}
{{ include "turnline.secretSource" (list $secrets.nats.existingSecret $secrets.nats.key "nats-password") }}
{{- else if .Values.nats.enabled }}
{{ include "turnline.secretSource" (list $own "nats-password" "nats-password") }}
{{- end }}
{{- if $secrets.nats.caSecret }}
{{ include "turnline.secretSource" (list $secrets.nats.caSecret $secrets.nats.caKey "nats-ca.crt") }}
{{- end }}
{{- end }}
{{- if eq $type "kafka" }}
{{- if $secrets.kafka.existingSecret }}
{{ include "turnline.secretSource" (list $secrets.kafka.existingSecret $secrets.kafka.key "kafka-password") }}
{{- else if .Values.kafka.user.create }}
{{ include "turnline.secretSource" (list (include "turnline.kafkaUser" .) "password" "kafka-password") }}
{{- end }}
{{- if $secrets.kafka.caSecret }}
{{ include "turnline.secretSource" (list $secrets.kafka.caSecret $secrets.kafka.caKey "kafka-ca.crt") }}
{{- else if .Values.kafka.cluster.create }}
{{ include "turnline.secretSource" (list (printf "%s-cluster-ca-cert" .Values.kafka.cluster.name) "ca.crt" "kafka-ca.crt") }}
{{- end }}
{{- end }}
{{- end }}

{{- define "turnline.secretSource" -}}
- secret:
    name: {{ index . 0 }}
    items: [{key: {{ index . 1 | quote }}, path: {{ index . 2 }}}]
{{- end }}
