// Package auth owns who is asking and what they may do: accounts and tokens, sessions, single sign-on, and the policy
// language of argocd-rbac-cm (issue 8). It answers; the faces translate HTTP.
package auth

import "time"

// Subject is somebody who proved who they are.
type Subject struct {
	// Name is what policies name: the account's or the token's `sub`, such as admin or proj:shop:deployer. Empty is
	// nobody: an anonymous request, where users.anonymous.enabled lets one in.
	Name string
	// Issuer of the token; argocd for local accounts and project roles.
	Issuer string
	// Groups are the values of the claims that `scopes` of argocd-rbac-cm names.
	Groups []string
	// Display is the name to show and to write into histories: the mail address or user name where the provider gave one,
	// else Name.
	Display string
	// TokenID is the token's `jti`; empty where it has none.
	TokenID string
	// Expires is when the proof ends; zero is never.
	Expires time.Time
}
