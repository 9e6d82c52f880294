{{/*
Who decides on the replicas of a Deployment that is there: (dict "root" $ "name" "slipway-web"). {"live": n, "isStopped": …,
"byOthers": …, "isApplied": …}, or {} before it is there and under `helm template`. Others are `kubectl scale` or an autoscaler. Helm's own
entry is the one that applied the pod template (Helm 4), or that is called helm (Helm 3).
*/}}
{{- define "slipway.replica-owners" -}}
{{- $live := lookup "apps/v1" "Deployment" .root.Release.Namespace .name -}}
{{- $owners := dict -}}
{{- if $live -}}
{{- $replicas := int (dig "spec" "replicas" 1 $live) -}}
{{- $_ := set $owners "live" $replicas -}}
{{- $_ := set $owners "isStopped" (eq $replicas 0) -}}
{{- range $live.metadata.managedFields -}}
{{- $fields := dig "fieldsV1" "f:spec" dict . -}}
{{- $applies := and (eq .operation "Apply") (hasKey $fields "f:template") -}}
{{- if $applies -}}{{- $_ := set $owners "isApplied" true -}}{{- end -}}
{{- if and (hasKey $fields "f:replicas") (not $applies) (ne .manager "helm") -}}
{{- $_ := set $owners "byOthers" true -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- toJson $owners -}}
{{- end -}}

{{/*
(dict "root" $ "name" … "replicas" 2 "kind" "none"). A field that others own is left out: Helm 4 would conflict with them, and
nothing resets it. For Helm 3, which resets what it leaves out, it is repeated. One that nobody else owns yet is repeated too
when an autoscaler takes over, because leaving it out means 1.
*/}}
{{- define "slipway.replicas" -}}
{{- $owners := include "slipway.replica-owners" . | fromJson -}}
{{- $isThere := hasKey $owners "live" -}}
{{- if and $isThere $owners.isStopped -}}
{{- /* By hand, as no values say so. A number of 0 is in nobody's managed fields. */ -}}
replicas: 0
{{- else if and $isThere $owners.byOthers -}}
{{- if not $owners.isApplied -}}replicas: {{ int $owners.live }}{{- end -}}
{{- else if ne .kind "none" -}}
{{- if $isThere -}}replicas: {{ int $owners.live }}{{- end -}}
{{- else -}}
replicas: {{ .replicas }}
{{- end -}}
{{- end -}}
