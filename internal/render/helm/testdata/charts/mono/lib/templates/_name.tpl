{{ define "lib.name" }}{{ .Release.Name }}-from-lib{{ end }}
