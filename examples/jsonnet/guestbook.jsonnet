// One Deployment and one Service for each part of the guestbook.
local params = import 'params.libsonnet';

local labels(name) = { 'app.kubernetes.io/name': name, 'app.kubernetes.io/part-of': 'guestbook' };

local deployment(name, part) = {
  apiVersion: 'apps/v1',
  kind: 'Deployment',
  metadata: { name: name, labels: labels(name) },
  spec: {
    replicas: part.replicas,
    selector: { matchLabels: { 'app.kubernetes.io/name': name } },
    template: {
      metadata: { labels: labels(name) },
      spec: {
        containers: [{
          name: name,
          image: params.image,
          args: ['netexec', '--http-port=8080'],
          env: [{ name: key, value: part.env[key] } for key in std.objectFields(part.env)],
          ports: [{ name: 'http', containerPort: 8080 }],
          readinessProbe: { httpGet: { path: '/healthz', port: 'http' } },
        }],
      },
    },
  },
};

local service(name, part) = {
  apiVersion: 'v1',
  kind: 'Service',
  metadata: { name: name, labels: labels(name) },
  spec: {
    selector: { 'app.kubernetes.io/name': name },
    ports: [{ name: 'http', port: part.port, targetPort: 'http' }],
  },
};

std.flattenArrays([
  [make(name, params.parts[name]) for make in [deployment, service]]
  for name in std.objectFields(params.parts)
])
