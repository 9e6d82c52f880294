{{- define "slipway.labels" -}}
app.kubernetes.io/name: slipway
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
{{- end -}}

{{/* Of one role: (dict "root" $ "role" "web") */}}
{{- define "slipway.selector" -}}
app.kubernetes.io/name: slipway
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .role }}
{{- end -}}

{{- define "slipway.image" -}}
{{- if .Values.image.digest -}}
{{ .Values.image.repository }}@{{ .Values.image.digest }}
{{- else -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end -}}
{{- end -}}

{{- define "slipway.pod-security" -}}
runAsNonRoot: true
runAsUser: 10001
runAsGroup: 10001
fsGroup: 10001
seccompProfile: {type: RuntimeDefault}
{{- end -}}

{{- define "slipway.container-security" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: {drop: [ALL]}
{{- end -}}

{{- define "slipway.secret" -}}
- name: {{ .name }}
  valueFrom: {secretKeyRef: {name: {{ .secretName }}, key: {{ .key }}{{ if .optional }}, optional: true{{ end }}}}
{{- end -}}

{{/* Settings of every role. databaseSecret is that of the role; optional: the program says which Secret is missing. */}}
{{- define "slipway.env" -}}
{{- $values := .root.Values -}}
- {name: SLIPWAY_ALLOWED_HOSTS, value: {{ $values.host | quote }}}
- {name: SLIPWAY_TRUSTED_ORIGINS, value: {{ printf "https://%s" $values.host | quote }}}
- {name: SLIPWAY_PUBLIC_URL, value: {{ printf "https://%s" $values.host | quote }}}
- {name: SLIPWAY_TRUSTED_PROXIES, value: {{ join "," $values.trustedProxies | quote }}}
- {name: SLIPWAY_S3_BUCKET, value: {{ $values.s3.bucket | quote }}}
- {name: SLIPWAY_S3_REGION, value: {{ $values.s3.region | quote }}}
- {name: AWS_DEFAULT_REGION, value: {{ $values.s3.region | quote }}}
{{- with $values.s3.endpointUrl }}
- {name: SLIPWAY_S3_ENDPOINT_URL, value: {{ . | quote }}}
{{- end }}
{{- with $values.s3.browserEndpointUrl }}
- {name: SLIPWAY_S3_BROWSER_ENDPOINT_URL, value: {{ . | quote }}}
{{- end }}
{{- range $name, $value := $values.settings }}
- {name: {{ $name }}, value: {{ $value | quote }}}
{{- end }}
{{- $main := $values.secretName }}
{{- $optional := .optional | default false }}
{{ include "slipway.secret" (dict "name" "SLIPWAY_SECRET_KEY" "secretName" $main "key" "SLIPWAY_SECRET_KEY" "optional" $optional) }}
{{ include "slipway.secret" (dict "name" "SLIPWAY_DATABASE_URL" "secretName" .databaseSecret "key" "SLIPWAY_DATABASE_URL" "optional" $optional) }}
{{ include "slipway.secret" (dict "name" "SLIPWAY_REDIS_URL" "secretName" $main "key" "SLIPWAY_REDIS_URL" "optional" $optional) }}
{{- range $values.secretSettings }}
{{ include "slipway.secret" (merge (dict "optional" $optional) .) }}
{{- end }}
{{- with $values.extraEnv }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{/* Labels and annotations of the pods of a role: (dict "root" $ "role" "web" "values" .Values.web) */}}
{{- define "slipway.pod-metadata" -}}
{{- $own := .values | default dict -}}
{{- $selector := include "slipway.selector" . | fromYaml -}}
labels: {{ mergeOverwrite (dict) .root.Values.podLabels ($own.podLabels | default dict) $selector | toJson }}
{{- $annotations := mergeOverwrite (dict) .root.Values.podAnnotations ($own.podAnnotations | default dict) -}}
{{- with include "slipway.secrets-checksum" .root -}}
{{- $_ := set $annotations "checksum/secrets" . -}}
{{- end -}}
{{- with $annotations }}
annotations: {{ toJson . }}
{{- end }}
{{- end -}}

{{/* Where the pods of a role run. What the role has of its own wins. */}}
{{- define "slipway.placement" -}}
{{- $own := .values | default dict -}}
{{- $all := .root.Values -}}
{{- with $own.nodeSelector | default $all.nodeSelector }}
nodeSelector: {{ toJson . }}
{{- end }}
{{- with $own.tolerations | default $all.tolerations }}
tolerations: {{ toJson . }}
{{- end }}
{{- with $own.affinity | default $all.affinity }}
affinity: {{ toJson . }}
{{- end }}
{{- with $own.priorityClassName | default $all.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- with $all.image.pullSecrets }}
imagePullSecrets: {{ toJson . }}
{{- end }}
{{- end -}}

{{/* What the pods of all roles have in common. */}}
{{- define "slipway.pod" -}}
{{- $values := .root.Values -}}
serviceAccountName: {{ $values.serviceAccount.name }}
automountServiceAccountToken: {{ $values.serviceAccount.mountToken }}
securityContext:
  {{- include "slipway.pod-security" . | nindent 2 }}
{{- include "slipway.placement" . }}
topologySpreadConstraints:
  - maxSkew: 1
    topologyKey: topology.kubernetes.io/zone
    whenUnsatisfiable: ScheduleAnyway
    labelSelector: {matchLabels: {{ include "slipway.selector" . | fromYaml | toJson }}}
volumes:
  - name: scratch
    emptyDir: {sizeLimit: {{ .scratch | default "1Gi" }}}
  {{- with $values.clusterCredentialsSecretName }}
  - name: clusters
    secret: {secretName: {{ . }}, defaultMode: 288}
  {{- end }}
  {{- with .tlsSecretName }}
  - name: tls
    secret: {secretName: {{ . }}, defaultMode: 288}
  {{- end }}
  {{- with $values.extraVolumes }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- end -}}

{{- define "slipway.container" -}}
{{- $values := .root.Values -}}
name: {{ .role }}
image: {{ include "slipway.image" .root | quote }}
imagePullPolicy: {{ $values.image.pullPolicy }}
# So that the status of a pod that does not start says why.
terminationMessagePolicy: FallbackToLogsOnError
securityContext:
  {{- include "slipway.container-security" . | nindent 2 }}
resources: {{ toJson .resources }}
volumeMounts:
  - {name: scratch, mountPath: /tmp}
  {{- if $values.clusterCredentialsSecretName }}
  - {name: clusters, mountPath: /etc/slipway, readOnly: true}
  {{- end }}
  {{- if .tlsSecretName }}
  - {name: tls, mountPath: /tls, readOnly: true}
  {{- end }}
  {{- with $values.extraVolumeMounts }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
env:
  {{- include "slipway.env" (dict "root" .root "databaseSecret" $values.secretName) | nindent 2 }}
  {{- $token := $values.metrics.tokenSecret }}
  {{- if and $token.name (eq .role "web") }}
  {{- include "slipway.secret" (dict "name" "SLIPWAY_METRICS_TOKEN" "secretName" $token.name "key" $token.key) | nindent 2 }}
  {{- end }}
{{- end -}}

{{/* Alive while its file is younger than so many minutes. */}}
{{- define "slipway.alive" -}}
livenessProbe:
  exec:
    command: [sh, -c, 'test -n "$(find /tmp/{{ .file }}* -mmin -{{ .minutes }})"']
  initialDelaySeconds: {{ mul .minutes 60 }}
  periodSeconds: 30
  timeoutSeconds: 10
  failureThreshold: 3
{{- end -}}
