{{/* Every Secret that the values name, with the keys that are read: {"needed": [{"name": …, "keys": […]}]} */}}
{{- define "slipway.needed-secrets" -}}
{{- $values := .Values -}}
{{- $main := list "SLIPWAY_SECRET_KEY" "SLIPWAY_DATABASE_URL" "SLIPWAY_REDIS_URL" -}}
{{- $needed := list (dict "name" $values.secretName "keys" $main) -}}
{{- $needed = append $needed (dict "name" $values.migrations.secretName "keys" (list "SLIPWAY_DATABASE_URL")) -}}
{{- range $values.secretSettings -}}
{{- $needed = append $needed (dict "name" .secretName "keys" (list .key)) -}}
{{- end -}}
{{- with $values.metrics.tokenSecret -}}
{{- if .name -}}{{- $needed = append $needed (dict "name" .name "keys" (list .key)) -}}{{- end -}}
{{- end -}}
{{- with $values.web.tlsSecretName -}}
{{- $needed = append $needed (dict "name" . "keys" (list "tls.crt" "tls.key")) -}}
{{- end -}}
{{- with $values.clusterCredentialsSecretName -}}
{{- $needed = append $needed (dict "name" . "keys" list) -}}
{{- end -}}
{{- dict "needed" $needed | toJson -}}
{{- end -}}

{{/*
Refuses an installation whose pods could not start. Nothing is looked up by `helm template`, nor before the namespace is
there: its default service account says that it is.
*/}}
{{- define "slipway.check-secrets" -}}
{{- $where := .Release.Namespace -}}
{{- if and .Values.checkSecrets (lookup "v1" "ServiceAccount" $where "default") -}}
{{- range (include "slipway.needed-secrets" . | fromJson).needed -}}
{{- $found := lookup "v1" "Secret" $where .name -}}
{{- if not $found -}}
{{- fail (printf "the Secret %s is missing in namespace %s (docs/install.md, Secrets); where Helm may not read Secrets, set checkSecrets: false" .name $where) -}}
{{- end -}}
{{- $name := .name -}}
{{- range .keys -}}
{{- if not (hasKey ($found.data | default dict) .) -}}
{{- fail (printf "the Secret %s in namespace %s has no key %s (docs/install.md, Secrets)" $name $where .) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/*
Changes with the Secrets, so that an upgrade restarts the pods that read them. SLIPWAY_SECRET_KEY is among what is hashed:
without it nobody tries passwords against the sum.
*/}}
{{- define "slipway.secrets-checksum" -}}
{{- $where := .Release.Namespace -}}
{{- if .Values.checkSecrets -}}
{{- $main := lookup "v1" "Secret" $where .Values.secretName -}}
{{- if and $main (hasKey ($main.data | default dict) "SLIPWAY_SECRET_KEY") -}}
{{- $data := list -}}
{{- range (include "slipway.needed-secrets" . | fromJson).needed -}}
{{- with lookup "v1" "Secret" $where .name -}}{{- $data = append $data (.data | default dict) -}}{{- end -}}
{{- end -}}
{{- toJson $data | sha256sum -}}
{{- end -}}
{{- end -}}
{{- end -}}
