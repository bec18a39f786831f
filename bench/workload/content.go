package workload

import "encoding/json"

// Content is the part of an object that a manifest declares and the cluster must show. It is decoded instead of the whole
// object: the rest, managedFields above all, is most of the text.
type Content struct {
	Metadata struct {
		Name        string            `json:"name"`
		Namespace   string            `json:"namespace"`
		Labels      map[string]string `json:"labels"`
		Annotations map[string]string `json:"annotations"`
		// ResourceVersion is of the cluster; no manifest declares it and Holds does not look at it.
		ResourceVersion string `json:"resourceVersion"`
	} `json:"metadata"`
	Spec      any               `json:"spec"`
	Data      map[string]string `json:"data"`
	Automount *bool             `json:"automountServiceAccountToken"`
}

// Wanted is the content that an object of application i must have at least.
func (s Spec) Wanted(i int, o Object) (Content, error) {
	var c Content
	text, err := json.Marshal(o.Content)
	if err != nil {
		return c, err
	}
	if err := json.Unmarshal(text, &c); err != nil {
		return c, err
	}
	c.Metadata.Namespace = s.Namespace(i)
	return c, nil
}

// Holds tells whether c, read from the cluster, has everything that wanted has. Fields beyond it, such as defaults, do not
// count.
func (c Content) Holds(wanted Content) bool {
	return c.Metadata.Name == wanted.Metadata.Name && c.Metadata.Namespace == wanted.Metadata.Namespace &&
		has(c.Metadata.Labels, wanted.Metadata.Labels) && has(c.Metadata.Annotations, wanted.Metadata.Annotations) &&
		has(c.Data, wanted.Data) && contains(c.Spec, wanted.Spec) &&
		(wanted.Automount == nil || c.Automount != nil && *c.Automount == *wanted.Automount)
}

func has(live, wanted map[string]string) bool {
	for k, v := range wanted {
		if got, ok := live[k]; !ok || got != v {
			return false
		}
	}
	return true
}

// contains compares JSON values; lists must have the same length and order.
func contains(live, wanted any) bool {
	switch w := wanted.(type) {
	case nil:
		return true
	case map[string]any:
		l, ok := live.(map[string]any)
		if !ok {
			return false
		}
		for k, v := range w {
			if got, ok := l[k]; !ok || !contains(got, v) {
				return false
			}
		}
		return true
	case []any:
		l, ok := live.([]any)
		if !ok || len(l) != len(w) {
			return false
		}
		for i := range w {
			if !contains(l[i], w[i]) {
				return false
			}
		}
		return true
	default:
		return live == wanted
	}
}
