// What differs between the guestbook's parts.
{
  image: 'registry.k8s.io/e2e-test-images/agnhost:2.52',
  parts: {
    web: { replicas: 2, port: 80, env: { STORE: 'http://store:8080' } },
    store: { replicas: 1, port: 8080, env: {} },
  },
}
