package health

import "testing"

func TestCertificateSigningRequest(t *testing.T) {
	checkStates(t, "certificatesigningrequest", []state{
		{"healthy", "Healthy", ""},
		{"progressing", "Progressing", "it is approved and waits for its signer"},
		{"new", "Progressing", "it waits for its approval or its signer"},
		{"failed-denied", "Degraded", "Denied is True: ByAdmin: not allowed"},
		{"failed", "Degraded", "Failed is True: SignerError"},
		{"healthy-pod", "Healthy", ""},
		{"deleting", "Progressing", "it is being deleted and waits for its finalizers: example.com/hold"},
	})
}
