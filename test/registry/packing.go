package registry

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"fmt"
	"path"
	"sort"

	"sigs.k8s.io/yaml"
)

// Chart is a packed chart.
type Chart struct {
	Name, Version string
	// Metadata is what Chart.yaml holds.
	Metadata map[string]any
	// Archive is the packed chart, gzipped.
	Archive []byte
}

// Pack packs a chart from its files by path, as helm package does: equal files make equal archives.
func Pack(files map[string]string) (Chart, error) {
	c := Chart{}
	if err := yaml.Unmarshal([]byte(files["Chart.yaml"]), &c.Metadata); err != nil {
		return c, fmt.Errorf("Chart.yaml: %w", err)
	}
	c.Name, _ = c.Metadata["name"].(string)
	c.Version, _ = c.Metadata["version"].(string)
	if c.Name == "" || c.Version == "" {
		return c, fmt.Errorf("Chart.yaml: name or version is missing")
	}
	prefixed := make(map[string]string, len(files))
	for name, text := range files {
		prefixed[path.Join(c.Name, name)] = text
	}
	var err error
	c.Archive, err = Tar(prefixed)
	return c, err
}

// Tar makes a gzipped tar archive of files by path.
func Tar(files map[string]string) ([]byte, error) {
	names := make([]string, 0, len(files))
	for name := range files {
		names = append(names, name)
	}
	sort.Strings(names)
	var out bytes.Buffer
	zip := gzip.NewWriter(&out)
	w := tar.NewWriter(zip)
	for _, name := range names {
		header := &tar.Header{Name: name, Typeflag: tar.TypeReg, Mode: 0o644, Size: int64(len(files[name]))}
		if err := w.WriteHeader(header); err != nil {
			return nil, err
		}
		if _, err := w.Write([]byte(files[name])); err != nil {
			return nil, err
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	if err := zip.Close(); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}
