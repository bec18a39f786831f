package renders

import (
	"errors"
	"fmt"
	"os"
	"path"
)

func save(root *os.Root, files map[string]string) error {
	for name, text := range files {
		if err := errors.Join(root.MkdirAll(path.Dir(name), 0o755), root.WriteFile(name, []byte(text), 0o600)); err != nil {
			return err
		}
	}
	return nil
}

// chart is a chart as `helm create` makes them, in what it does: helpers, conditions, loops, values laid over values.
func chart(files map[string]string, at string, n int) {
	files[at+"/Chart.yaml"] = fmt.Sprintf("apiVersion: v2\nname: service\nversion: 1.0.%d\nappVersion: \"2.%d\"\n", n, n)
	files[at+"/values.yaml"] = fmt.Sprintf(`replicas: %d
image: {repository: registry.example.com/shop/service, tag: ""}
service: {type: ClusterIP, ports: [{name: http, port: 80}, {name: metrics, port: 9090}]}
ingress: {enabled: true, hosts: [{host: a.example.com, paths: [/, /api]}, {host: b.example.com, paths: [/]}]}
resources: {requests: {cpu: 100m, memory: 128Mi}, limits: {memory: 256Mi}}
autoscaling: {enabled: true, min: 2, max: 10, target: 80}
env: {LOG_LEVEL: info, REGION: eu, FEATURE_A: "true", FEATURE_B: "false", POOL: "10"}
labels: {team: shop, tier: backend}
config: {main.conf: "listen 80\nworkers 4\n", extra.conf: "timeout 30\n"}
`, n%5+1)
	files[at+"/templates/_helpers.tpl"] = `{{- define "s.name" -}}{{ .Chart.Name | trunc 63 | trimSuffix "-" }}{{- end }}
{{- define "s.full" -}}{{ printf "%s-%s" .Release.Name (include "s.name" .) | trunc 63 | trimSuffix "-" }}{{- end }}
{{- define "s.selector" -}}
app.kubernetes.io/name: {{ include "s.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}
{{- define "s.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{ include "s.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- range $k, $v := .Values.labels }}
{{ $k }}: {{ $v | quote }}
{{- end }}
{{- end }}
`
	head := func(api, kind string) string {
		return "apiVersion: " + api + "\nkind: " + kind + "\nmetadata:\n  name: {{ include \"s.full\" . }}\n  labels:\n    {{- include \"s.labels\" . | nindent 4 }}\n"
	}
	templates := map[string]string{
		"deployment": head("apps/v1", "Deployment") + `  annotations: {checksum/config: {{ .Values.config | toYaml | sha256sum }}}
spec:
  {{- if not .Values.autoscaling.enabled }}
  replicas: {{ .Values.replicas }}
  {{- end }}
  selector:
    matchLabels: {{- include "s.selector" . | nindent 6 }}
  template:
    metadata:
      labels: {{- include "s.labels" . | nindent 8 }}
    spec:
      serviceAccountName: {{ include "s.full" . }}
      containers:
        - name: {{ .Chart.Name }}
          image: "{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}"
          env:
            {{- range $k, $v := .Values.env }}
            - {name: {{ $k }}, value: {{ $v | quote }}}
            {{- end }}
          ports:
            {{- range .Values.service.ports }}
            - {name: {{ .name }}, containerPort: {{ .port }}}
            {{- end }}
          resources: {{- toYaml .Values.resources | nindent 12 }}
`,
		"service": head("v1", "Service") + "spec:\n  type: {{ .Values.service.type }}\n  selector: {{- include \"s.selector\" . | nindent 4 }}\n  ports: {{- toYaml .Values.service.ports | nindent 4 }}\n",
		"account": head("v1", "ServiceAccount"),
		"config":  head("v1", "ConfigMap") + "data:\n  {{- range $k, $v := .Values.config }}\n  {{ $k }}: |\n    {{- $v | nindent 4 }}\n  {{- end }}\n",
		"hpa": "{{- if .Values.autoscaling.enabled }}\n" + head("autoscaling/v2", "HorizontalPodAutoscaler") +
			"spec:\n  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: {{ include \"s.full\" . }}}\n  minReplicas: {{ .Values.autoscaling.min }}\n  maxReplicas: {{ .Values.autoscaling.max }}\n{{- end }}\n",
		"ingress": "{{- if .Values.ingress.enabled }}\n" + head("networking.k8s.io/v1", "Ingress") + `spec:
  rules:
    {{- range .Values.ingress.hosts }}
    - host: {{ .host }}
      http:
        paths:
          {{- range .paths }}
          - {path: {{ . }}, pathType: Prefix, backend: {service: {name: {{ include "s.full" $ }}, port: {name: http}}}}
          {{- end }}
    {{- end }}
{{- end }}
`,
	}
	for name, text := range templates {
		files[at+"/templates/"+name+".yaml"] = text
	}
}

// base is what all overlays share.
func base(files map[string]string) {
	const labels = "{app: service}"
	files["base/kustomization.yaml"] = "resources: [deployment.yaml, service.yaml, account.yaml, role.yaml]\nlabels: [{pairs: {team: shop}}]\n"
	files["base/deployment.yaml"] = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: service}\nspec:\n  replicas: 1\n  selector: {matchLabels: " + labels +
		"}\n  template:\n    metadata: {labels: " + labels + "}\n    spec:\n      serviceAccountName: service\n      containers:\n        - name: main\n          image: registry.example.com/service:1\n" +
		"          envFrom: [{configMapRef: {name: settings}}]\n          resources: {requests: {cpu: 100m}}\n"
	files["base/service.yaml"] = "apiVersion: v1\nkind: Service\nmetadata: {name: service}\nspec: {selector: " + labels + ", ports: [{port: 80}]}\n"
	files["base/account.yaml"] = "apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: service}\n"
	files["base/role.yaml"] = "apiVersion: rbac.authorization.k8s.io/v1\nkind: Role\nmetadata: {name: service}\nrules: [{apiGroups: [''], resources: [configmaps], verbs: [get]}]\n"
}

func overlay(files map[string]string, at string, n int) {
	files[at+"/kustomization.yaml"] = fmt.Sprintf(`resources: [../../base, ingress.yaml]
nameSuffix: -o%d
namespace: shop
images: [{name: registry.example.com/service, newTag: "%d"}]
configMapGenerator: [{name: settings, envs: [settings.env]}]
patches: [{path: replicas.yaml}]
`, n, n)
	files[at+"/settings.env"] = fmt.Sprintf("A=%d\nB=two\nC=three\n", n)
	files[at+"/replicas.yaml"] = fmt.Sprintf("apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: service}\nspec: {replicas: %d}\n", n%7+1)
	files[at+"/ingress.yaml"] = "apiVersion: networking.k8s.io/v1\nkind: Ingress\nmetadata: {name: service}\nspec: {rules: [{host: a.example.com, http: {paths: [{path: /, pathType: Prefix, backend: {service: {name: service, port: {number: 80}}}}]}}]}\n"
}
