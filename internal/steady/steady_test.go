package steady

import (
	"strings"
	"testing"
)

func TestSteady(t *testing.T) {
	tests := []struct{ message, want string }{
		{"access denied", "access denied"},
		{"two\n  lines\t here ", "two lines here"},
		{"last tried at 2026-03-01T10:00:05.123Z", "last tried at …"},
		{"last tried at 2026-03-01 10:00:05.123456 +0000 UTC m=+35.5", "last tried at …"},
		{"next retry in 1m30s", "next retry in …"},
		{"attempt 7: denied", "attempt …: denied"},
		{"retry #3 failed", "retry … failed"},
		{"2 of 3 members have joined", "some of all members have joined"},
		{"0/3 nodes are available: 3 Insufficient cpu.", "… nodes are available: 3 Insufficient cpu."},
		{"waiting for 2 more replicas", "waiting for some more replicas"},
		{"failed 12 times", "failed some times"},
		{"pod web-6d4cf56db6-x8x2p is gone", "pod web-… is gone"},
		{"pod web-x8x2p is gone", "pod web-… is gone"},
		{"AccessDenied, request id: 5f0c-11AB", "AccessDenied, request id …"},
		{"id 123e4567-e89b-12d3-a456-426614174000 is not known", "id … is not known"},
		// What names the cause stays.
		{"status code 403 from https://10.0.0.1:8443/v2", "status code 403 from https://10.0.0.1:8443/v2"},
		{"no route to 10.0.0.0/24", "no route to 10.0.0.0/24"},
		{"image nginx:1.27.1 and my-https stay", "image nginx:1.27.1 and my-https stay"},
	}
	for _, test := range tests {
		if got := Message(test.message); got != test.want {
			t.Errorf("%q: %q, want %q", test.message, got, test.want)
		}
	}
	if got := []rune(Message(strings.Repeat("ä", 1000))); len(got) != maxSentence+1 {
		t.Errorf("a long message keeps %d characters", len(got))
	}
}
