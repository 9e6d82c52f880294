{{/* Elements of `egress`: name servers and the database. */}}
{{- define "slipway.egress-to-database" -}}
- ports: [{port: 53, protocol: UDP}, {port: 53, protocol: TCP}]
- to: {{- range .Values.networkPolicy.databaseCidrs }}
    - ipBlock: {cidr: {{ . | quote }}}
    {{- end }}
  ports: [{port: {{ .Values.networkPolicy.databasePort }}, protocol: TCP}]
{{- end -}}

{{/* Nothing reads the credentials of the node, whose addresses are link-local, by IPv6 in fd00:ec2::/32. */}}
{{- define "slipway.outside-block" -}}
{{- if eq . "0.0.0.0/0" -}}
{cidr: {{ . | quote }}, except: ["169.254.0.0/16"]}
{{- else if eq . "::/0" -}}
{cidr: {{ . | quote }}, except: ["fd00:ec2::/32", "fe80::/10"]}
{{- else -}}
{cidr: {{ . | quote }}}
{{- end -}}
{{- end -}}
