package engine

import (
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/lockstep-cd/lockstep/api/v1alpha1"
	"github.com/lockstep-cd/lockstep/internal/manifest"
	"github.com/lockstep-cd/lockstep/internal/render/job"
)

// KeptForm is the version of how renderings are kept. One of another form is made again.
const KeptForm = 1

// kept is a rendering as it lies in the cache. It holds the values of Secrets: the cache encrypts all of it.
type kept struct {
	Form      int
	Tool      string
	Inputs    string
	Resolved  []string
	Revisions []string
	Objects   []keptObject
	Generated map[int][]job.Path `json:",omitempty"`
	Warnings  []string           `json:",omitempty"`
	Types     []v1alpha1.ApplicationSourceType
	Parts     []part
	Digest    string
}

type keptObject struct {
	Origin manifest.Origin
	Object json.RawMessage
}

// save keeps a rendering for the time after a restart. That it can not be kept costs another rendering and nothing else.
func (c *Chain) save(r request, out *rendering) {
	if c.cache == nil {
		return
	}
	data, err := encodeRendering(out)
	if err == nil {
		err = c.cache.Put(r.key, out.inputs, data)
	}
	c.metrics.kept(err)
}

// load is the rendering that is kept for the application and the inputs; nil when there is none.
func (c *Chain) load(r request, inputs string) *rendering {
	if c.cache == nil || r.afresh {
		return nil
	}
	data, ok := c.cache.Get(r.key, inputs)
	if !ok {
		return nil
	}
	out, err := decodeRendering(data)
	if err != nil || out.inputs != inputs || out.tool != c.version && len(r.fixed) > 0 {
		return nil // an operation is not done with what is to be rendered again
	}
	return out
}

func encodeRendering(r *rendering) ([]byte, error) {
	k := kept{
		Form: KeptForm, Tool: r.tool, Inputs: r.inputs, Resolved: r.resolved, Revisions: r.revisions, Generated: r.generated,
		Warnings: r.warnings, Types: r.types, Parts: r.parts, Digest: r.digest, Objects: make([]keptObject, len(r.objects)),
	}
	for i, o := range r.objects {
		text, err := json.Marshal(o.Object)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", o.Key(), err)
		}
		k.Objects[i] = keptObject{Origin: o.Origin, Object: text}
	}
	return json.Marshal(k)
}

func decodeRendering(data []byte) (*rendering, error) {
	var k kept
	if err := json.Unmarshal(data, &k); err != nil {
		return nil, err
	}
	if k.Form != KeptForm {
		return nil, fmt.Errorf("rendering of form %d", k.Form)
	}
	out := &rendering{
		tool: k.Tool, inputs: k.Inputs, resolved: k.Resolved, revisions: k.Revisions, generated: k.Generated,
		warnings: k.Warnings, types: k.Types, parts: k.Parts, digest: k.Digest, objects: make([]manifest.Object, len(k.Objects)),
	}
	for i, o := range k.Objects {
		fields := map[string]any{}
		if err := utiljson.Unmarshal(o.Object, &fields); err != nil {
			return nil, err
		}
		out.objects[i] = manifest.Object{Unstructured: &unstructured.Unstructured{Object: fields}, Origin: o.Origin}
	}
	return out, nil
}
