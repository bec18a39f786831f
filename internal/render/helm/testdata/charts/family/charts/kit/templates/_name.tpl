{{- define "kit.name" -}}{{ .Release.Name }}-{{ .Chart.Name }}{{- end -}}
