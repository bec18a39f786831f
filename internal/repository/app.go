package repository

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// Exchanged are long-lived credentials that a service gives short-lived ones for; package token does that.
type Exchanged struct {
	// GitHubApp is the number of a GitHub App, GitHubInstallation that of its installation; without one it is found out.
	GitHubApp, GitHubInstallation string
	// GitHubKey is the App's private key in PEM, GitHubURL the API of a GitHub Enterprise Server.
	GitHubKey, GitHubURL string
	// GoogleKey is the key of a service account, in JSON.
	GoogleKey string
	// AzureClient, AzureSecret and AzureTenant name a service principal, AzureURL its directory.
	AzureClient, AzureSecret, AzureTenant, AzureURL string
	// AzureWorkload asks for the identity of the process itself.
	AzureWorkload bool
}

// Any tells whether there are such credentials.
func (x Exchanged) Any() bool {
	return x.GitHubApp != "" || x.GoogleKey != "" || x.AzureClient != "" || x.AzureWorkload
}

// exchangedFrom reads the keys of the contract's §3.1; those of Azure are spelled in two ways there.
func exchangedFrom(s *corev1.Secret) Exchanged {
	text := func(keys ...string) string {
		for _, key := range keys {
			if v := strings.TrimSpace(string(s.Data[key])); v != "" {
				return v
			}
		}
		return ""
	}
	return Exchanged{
		GitHubApp: text("githubAppID"), GitHubInstallation: text("githubAppInstallationID"),
		GitHubKey: text("githubAppPrivateKey"), GitHubURL: text("githubAppEnterpriseBaseUrl"),
		GoogleKey:   text("gcpServiceAccountKey"),
		AzureClient: text("azureServicePrincipalClientId", "azureServicePrincipalClientID"),
		AzureSecret: text("azureServicePrincipalClientSecret"),
		AzureTenant: text("azureServicePrincipalTenantId", "azureServicePrincipalTenantID"),
		AzureURL:    text("azureActiveDirectoryEndpoint"), AzureWorkload: strings.EqualFold(text("useAzureWorkloadIdentity"), "true"),
	}
}
