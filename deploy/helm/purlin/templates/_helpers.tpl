{{- /* SPDX-License-Identifier: Apache-2.0 */ -}}
{{- define "purlin.image" -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end }}
{{- define "purlin.scheme" -}}
{{ if .Values.server.tlsSecret }}https{{ else }}http{{ end }}
{{- end }}
{{- define "purlin.url" -}}
{{ include "purlin.scheme" . }}://{{ .Release.Name }}:8717
{{- end }}
{{- define "purlin.labels" -}}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end }}
