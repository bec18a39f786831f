// Package crds owns the CustomResourceDefinitions of our kinds, generated from the types of api/v1alpha1.
//
// It imports Kubernetes' API machinery and nothing of ours.
package crds

import (
	"embed"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

//go:embed *.yaml
var files embed.FS

// All returns the definitions in the order of their file names. Each call returns fresh copies.
func All() ([]*unstructured.Unstructured, error) {
	entries, err := files.ReadDir(".")
	if err != nil {
		return nil, err
	}
	all := make([]*unstructured.Unstructured, 0, len(entries))
	for _, entry := range entries {
		text, err := files.ReadFile(entry.Name())
		if err != nil {
			return nil, err
		}
		json, err := yaml.YAMLToJSON(text)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", entry.Name(), err)
		}
		crd := &unstructured.Unstructured{}
		if err := crd.UnmarshalJSON(json); err != nil {
			return nil, fmt.Errorf("%s: %w", entry.Name(), err)
		}
		all = append(all, crd)
	}
	return all, nil
}
