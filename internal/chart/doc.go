// Package chart owns Helm repositories and OCI registries: what versions they have, and charts, plain OCI artifacts and
// single files behind URLs as trees, cached on disk by digest.
//
// Every connection is checked after its name was resolved, every URL and redirect by the policy of the caller, and every
// answer is bounded in size and time. Credentials go to the repository's own host. The package imports tree and no other
// package of ours; it neither renders nor decides which version is wanted.
//
// Registries are spoken to with oras-go: it takes the HTTP client that carries these checks, and asks no keychain, helper
// program or file of this machine for credentials.
package chart
