#!/bin/sh
# Writes what is derived from the Go types of api/: deep copies and CRDs. Run from anywhere; `make generate` calls it.
set -eu
cd "$(dirname "$0")/../.."
go tool -modfile=tools/gen/go.mod controller-gen \
	object crd:crdVersions=v1,maxDescLen=100 paths=./api/v1alpha1 output:crd:dir=api/crds
go run -C tools/gen ./slim "$PWD"/api/crds/*.yaml
