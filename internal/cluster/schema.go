package cluster

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/client-go/openapi"
	"k8s.io/kube-openapi/pkg/spec3"
	"sigs.k8s.io/structured-merge-diff/v6/typed"
)

// schemas checks objects by the types the API server publishes, one group-version at a time and on first use.
type schemas struct {
	client func() openapi.Client

	mu    sync.Mutex
	paths map[string]openapi.GroupVersion
	known map[schema.GroupVersion]known
}

type known struct {
	hash      string
	converter managedfields.TypeConverter
}

// Check says what of an object does not fit its schema: an unknown field, a wrong type, an entry of a list that is there
// twice. The message names the field and no value. An object whose schema is not known passes.
func (c *Cluster) Check(u *unstructured.Unstructured) error {
	gv := u.GroupVersionKind().GroupVersion()
	converter, err := c.schemas.of(gv)
	if err != nil || converter == nil {
		return nil //nolint:nilerr // the API server checks again; a schema that can't be had decides nothing
	}
	_, unknown, left := strip(converter, u)
	if left != nil && strings.Contains(left.Error(), "no corresponding type") {
		return nil
	}
	if faults := readable(unknown, left); faults != "" {
		return errors.New(faults)
	}
	return nil
}

func (s *schemas) of(gv schema.GroupVersion) (managedfields.TypeConverter, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if t, ok := s.known[gv]; ok {
		return t.converter, nil
	}
	if s.paths == nil {
		paths, err := s.client().Paths()
		if err != nil {
			return nil, fmt.Errorf("schemas: %w", err)
		}
		s.paths = paths
	}
	path := "apis/" + gv.String()
	if gv.Group == "" {
		path = "api/" + gv.Version
	}
	found, ok := s.paths[path]
	if !ok {
		return nil, nil
	}
	t := known{hash: found.ServerRelativeURL()}
	raw, err := found.Schema(runtime.ContentTypeJSON)
	if err != nil {
		return nil, fmt.Errorf("schemas of %s: %w", gv, err)
	}
	doc := &spec3.OpenAPI{}
	if err := json.Unmarshal(raw, doc); err != nil {
		return nil, fmt.Errorf("schemas of %s: %w", gv, err)
	}
	if doc.Components != nil {
		t.converter, err = managedfields.NewTypeConverter(doc.Components.Schemas, false)
		if err != nil {
			return nil, fmt.Errorf("schemas of %s: %w", gv, err)
		}
	}
	if s.known == nil {
		s.known = map[schema.GroupVersion]known{}
	}
	s.known[gv] = t
	return t.converter, nil
}

// refresh forgets the schemas that the API server has replaced since.
func (s *schemas) refresh() {
	s.mu.Lock()
	defer s.mu.Unlock()
	paths, err := s.client().Paths()
	if err != nil {
		return // the old ones stay; what they refuse wrongly is asked again after the next refresh
	}
	s.paths = paths
	for gv, t := range s.known {
		path := "apis/" + gv.String()
		if gv.Group == "" {
			path = "api/" + gv.Version
		}
		if now, ok := paths[path]; !ok || now.ServerRelativeURL() != t.hash {
			delete(s.known, gv)
		}
	}
}

// undeclared is the library's word for a field that the schema does not have.
const undeclared = "field not declared in schema"

// readable puts the fields that are not known and the library's list of other faults on one line, and leaves out the values
// it quotes.
func readable(unknown []string, left error) string {
	var out []string
	for _, path := range unknown {
		out = append(out, path+": is no field of this kind")
	}
	var list typed.ValidationErrors
	if left != nil && !errors.As(left, &list) {
		return "does not fit the schema of its kind"
	}
	for _, fault := range list {
		// What was found instead is printed behind the comma: the value itself, in one form or another.
		text, _, _ := strings.Cut(fault.ErrorMessage, ", got ")
		if text == undeclared {
			text = "is no field of this kind"
		}
		out = append(out, strings.TrimPrefix(fault.Path+": "+text, "."))
	}
	slices.Sort(out) // the library walks maps; the sentence must be the same every time
	return strings.Join(slices.Compact(out), "; ")
}
