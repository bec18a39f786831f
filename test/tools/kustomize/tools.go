//go:build tools

// Package kustomize pins the kustomize program that rendering is compared with. It is a module of its own, so that the program's
// dependencies stay out of the product's.
package kustomize

import _ "sigs.k8s.io/kustomize/kustomize/v5"
