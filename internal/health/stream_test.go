package health

import (
	"bufio"
	"bytes"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// The streams are what a watch of a real API server and a real controller manager said, one object a line. Health must go
// forward through them: within one generation no answer comes back after another took its place.
func TestHealthNeverFlaps(t *testing.T) {
	for _, c := range []struct {
		stream string
		// deployment are all answers for the Deployment, in order.
		deployment []string
	}{
		{"rollout", []string{
			"Progressing: its controller has not seen the last change yet",
			"Progressing: the rollout waits for updated pods",
			"Progressing: the rollout waits for pods to become available",
			"Healthy",
			"Progressing: its controller has not seen the last change yet",
			"Progressing: the rollout waits for updated pods",
			"Progressing: the rollout waits for old pods to stop",
			"Healthy",
		}},
		{"restart", []string{
			"Healthy",
			"Progressing: its controller has not seen the last change yet",
			"Progressing: the rollout waits for updated pods",
			"Progressing: the rollout waits for old pods to stop",
			"Healthy",
		}},
		{"nodeloss", []string{"Healthy", "Progressing: the rollout waits for pods to become available"}},
	} {
		t.Run(c.stream, func(t *testing.T) {
			answers := replay(t, c.stream)
			for object, list := range answers {
				for i, answer := range list {
					if slices.Contains(list[:i], answer) {
						t.Errorf("%s: %q comes back: %q", object, answer, list)
					}
				}
			}
			var deployment []string
			for _, generation := range []string{"1", "2", "3"} {
				for _, answer := range answers["Deployment web "+generation] {
					if len(deployment) == 0 || deployment[len(deployment)-1] != answer {
						deployment = append(deployment, answer)
					}
				}
			}
			if diff := cmp.Diff(c.deployment, deployment); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// replay is the health of each object and generation of a stream, without repetitions.
func replay(t *testing.T, stream string) map[string][]string {
	t.Helper()
	text, err := os.ReadFile("testdata/streams/" + stream + ".jsonl")
	if err != nil {
		t.Fatal(err)
	}
	answers := map[string][]string{}
	for lines := bufio.NewScanner(bytes.NewReader(text)); lines.Scan(); {
		obj := &unstructured.Unstructured{}
		if err := obj.UnmarshalJSON(lines.Bytes()); err != nil {
			t.Fatal(err)
		}
		health, _ := Of(obj)
		answer := strings.TrimSuffix(string(health.Status)+": "+health.Message, ": ")
		key := obj.GetKind() + " " + obj.GetName() + " " + string(rune('0'+obj.GetGeneration()))
		if list := answers[key]; len(list) == 0 || list[len(list)-1] != answer {
			answers[key] = append(list, answer)
		}
	}
	return answers
}
