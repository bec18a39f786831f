// Package helm owns the rendering of charts with the Helm library: loading a chart from a tree, its dependencies, the
// order of values, and the text or objects that come out. It answers as the helm program of the same version does with
// "helm template", save for what spec.source.helm says otherwise.
//
// It reads trees only: no file system, no cluster and no network, neither for schemas nor for dependencies; what lies
// elsewhere is asked of the job's Fetcher. It imports values and the Helm library, no other link.
package helm
