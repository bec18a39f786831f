package apply

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/lockstep-cd/lockstep/internal/manifest"
)

// canary is what no sentence may show.
const canary = "CANARY"

func TestReasonWithoutValues(t *testing.T) {
	invalid := func(errs ...*field.Error) error {
		return apierrors.NewInvalid(schema.GroupKind{Group: "batch", Kind: "Job"}, "j", errs)
	}
	message := func(text string) error {
		return &apierrors.StatusError{ErrStatus: metav1.Status{Code: http.StatusBadRequest, Message: text}}
	}
	at := field.NewPath("spec", "x")
	template := map[string]any{"spec": map[string]any{"env": []any{map[string]any{"value": canary + `": not the end }]`}}}}
	typed := "failed to create typed patch object (ns/a; /v1, Kind=Secret): "
	cases := []struct {
		name string
		err  error
		want string
	}{
		{"text", invalid(field.Invalid(at, canary, "is too short")), "spec.x: Invalid value: is too short"},
		{"text with quotes and colons", invalid(field.Invalid(at, `a": b: `+canary+`\`, "is wrong: see there")), "spec.x: Invalid value: is wrong: see there"},
		{"number", invalid(field.Invalid(at, 4711, "is too large")), "spec.x: Invalid value: is too large"},
		{"whole object", invalid(field.Invalid(at, template, "field is immutable")), "spec.x: Invalid value: field is immutable"},
		{"struct", invalid(field.Invalid(at, struct{ A, B string }{canary, "}"}, "is wrong")), "spec.x: Invalid value: is wrong"},
		{"list", invalid(field.Invalid(at, []string{canary, "]: "}, "is wrong")), "spec.x: Invalid value: is wrong"},
		{"not supported", invalid(field.NotSupported(at, canary, []string{"a", "b"})), `spec.x: Unsupported value: supported values: "a", "b"`},
		{"duplicate", invalid(field.Duplicate(at, canary)), "spec.x: Duplicate value"},
		{"required", invalid(field.Required(at, "name it")), "spec.x: Required value: name it"},
		{"two faults", invalid(field.Invalid(at, canary, "a"), field.Required(at.Child("y"), "b")), "spec.x: Invalid value: a; spec.x.y: Required value: b"},
		{"the fault of a custom resource", invalid(field.Invalid(at, "string", `spec.x in body must be of type date-time: "`+canary+`"`)),
			"spec.x: Invalid value: spec.x in body must be of type date-time"},

		{"a number for a text", message(typed + ".data.pw: expected string, got &value.valueUnstructured{Value:\"" + canary + "\"}"), "data.pw: expected string"},
		{"a text for a map", message(typed + ".data: expected map, got &{" + canary + "\n  .second: " + canary + " line: expected\n}"), "data: expected map"},
		{"a kind of value may be named", message(typed + ".spec.replicas: expected numeric (int or float), got string"),
			"spec.replicas: expected numeric (int or float), got string"},
		{"several", message(typed + "errors:\n  .spec.foo: field not declared in schema\n  .data.a: expected string, got &value.valueUnstructured{Value:true}"),
			"data.a: expected string; spec.foo: is no field of this kind"},
		{"a double key", message(typed + `.spec.env: duplicate entries for key [name="PW"]`), `spec.env: duplicate entries for key [name="PW"]`},
		{"a missing key", message(typed + `.spec.env: element 0: associative list with keys has an element that omits key field "name"`),
			`spec.env: element 0: associative list with keys has an element that omits key field "name"`},
		{"nothing that is known", message(typed + "." + canary), "does not fit the schema of its kind"},

		{"not decodable", message(`Secret in version "v1" cannot be handled as a Secret: json: cannot unmarshal number 4711.5 into Go struct field X.y of type int32`),
			"json: cannot unmarshal number into Go struct field X.y of type int32"},
		{"base64", message("failed to convert new object (ns/a; /v1, Kind=Secret) to proper version: unable to convert unstructured object to /v1, Kind=Secret: error decoding from json: illegal base64 data at input byte 6"),
			"error decoding from json: illegal base64 data at input byte 6"},
		{"a time", message(`parsing time "` + canary + `" as "2006-01-02": cannot parse "` + canary + `" as "2006"`),
			`parsing time the value as "2006-01-02": cannot parse the value as "2006"`},

		{"no namespace", apierrors.NewNotFound(schema.GroupResource{Resource: "namespaces"}, "web"),
			"namespace web does not exist; create it or set the sync option CreateNamespace=true"},
		{"another thing that is not there", apierrors.NewNotFound(schema.GroupResource{Resource: "widgets"}, "web"), `widgets "web" not found`},
		{"too large for etcd", message("etcdserver: request is too large"), "is too large for the API server"},
		{"too large for the server", apierrors.NewRequestEntityTooLargeError("limit is 3145728"), "is too large for the API server"},
		{"no answer", errors.New("dial tcp: connection refused"), "the API server does not answer: dial tcp: connection refused"},
		{"wrapped", fmt.Errorf("outer: %w", invalid(field.Invalid(at, canary, "is wrong"))), "spec.x: Invalid value: is wrong"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			got := reason(c.err)
			if got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
			if strings.Contains(got, canary) || strings.Contains(got, "4711") {
				t.Errorf("%s shows a value", got)
			}
		})
	}
}

// Whatever follows the mark of a value and does not end is a value to its end.
func TestUnfinishedValuesAreDropped(t *testing.T) {
	for _, text := range []string{`"CANARY`, `{"a": "CANARY"`, `{"a": "CANARY: b"`, `[CANARY: x`, `core.Spec{A: CANARY`, `"CANARY\": x`} {
		if got := withoutValues("Invalid value: " + text); got != "Invalid value" {
			t.Errorf("%s became %q", text, got)
		}
	}
}

func TestProblem(t *testing.T) {
	key := manifest.Key{Kind: "Secret", Namespace: "web", Name: "a"}
	if err := problem(key, nil); err != nil {
		t.Errorf("no error became %v", err)
	}
	var refused *Error
	ended := problem(key, fmt.Errorf("patch: %w", context.Canceled))
	if errors.As(ended, &refused) || !errors.Is(ended, context.Canceled) {
		t.Errorf("an end of the context became %v", ended)
	}
	cause := apierrors.NewConflict(schema.GroupResource{Resource: "secrets"}, "a", errors.New("changed"))
	err := problem(key, cause)
	if !errors.As(err, &refused) || !apierrors.IsConflict(err) || refused.Object != key {
		t.Fatalf("got %v", err)
	}
	if want := "Secret/web/a: "; !strings.HasPrefix(err.Error(), want) || strings.Count(err.Error(), "web/a") != 1 {
		t.Errorf("%q does not name the object once", err)
	}
}

func TestRetry(t *testing.T) {
	gr := schema.GroupResource{Resource: "secrets"}
	cases := []struct {
		err  error
		want bool
	}{
		{errors.New("connection refused"), true},
		{apierrors.NewTooManyRequests("busy", 1), true},
		{apierrors.NewServerTimeout(gr, "patch", 1), true},
		{apierrors.NewTimeoutError("slow", 1), true},
		{apierrors.NewInternalError(errors.New("a webhook is away")), true},
		{apierrors.NewServiceUnavailable("starting"), true},
		{apierrors.NewConflict(gr, "a", nil), true},
		{apierrors.NewForbidden(gr, "a", nil), false},
		{apierrors.NewInvalid(schema.GroupKind{}, "a", nil), false},
		{apierrors.NewBadRequest("no"), false},
		{apierrors.NewNotFound(gr, "a"), false},
		{&apierrors.StatusError{ErrStatus: metav1.Status{Code: 500, Message: "etcdserver: leader changed"}}, true},
		{&apierrors.StatusError{ErrStatus: metav1.Status{Code: 500, Message: "failed to create typed patch object (a/b; v1, Kind=X): .y: z"}}, false},
	}
	for _, c := range cases {
		if got := retryable(c.err); got != c.want {
			t.Errorf("%v: retryable is %v", c.err, got)
		}
	}
}
