package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/Masterminds/semver/v3"
	chart "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	chartutil "helm.sh/helm/v4/pkg/chart/v2/util"
)

// packed is a chart ready to be offered.
type packed struct {
	repository string
	chart      *chart.Chart
	// dir is where its sources lie.
	dir     string
	archive []byte
	// state guards against charts that depend on each other.
	state packing
	err   error
}

type packing int

const (
	untouched packing = iota
	underway
	done
)

// packer packages the charts that the selection publishes.
type packer struct {
	charts []*packed
	dir    string
}

// pack packages every subject with a repository. What does not work out is kept with the subject.
func (p *packer) pack(ctx context.Context, subjects []*subject) error {
	var err error
	if p.dir, err = os.MkdirTemp(p.dir, "charts-"); err != nil {
		return err
	}
	for _, s := range subjects {
		if s.Repository == "" || s.err != nil {
			continue
		}
		if s.chart, s.err = p.load(ctx, s); s.err == nil {
			p.charts = append(p.charts, s.chart)
			s.version = s.chart.chart.Metadata.Version
		}
	}
	for _, s := range subjects {
		if s.chart != nil {
			s.err = p.complete(s.chart)
		}
	}
	return ctx.Err()
}

func (p *packer) load(ctx context.Context, s *subject) (*packed, error) {
	tree, err := s.from.tree(ctx, s.commit)
	if err != nil {
		return nil, err
	}
	dir := filepath.Join(tree, filepath.FromSlash(s.Path))
	c, err := loadChart(dir)
	if err != nil {
		return nil, err
	}
	if s.Version != "" {
		c.Metadata.Version = s.Version
	}
	return &packed{repository: strings.TrimRight(s.Repository, "/"), chart: c, dir: dir}, nil
}

func loadChart(dir string) (*chart.Chart, error) {
	if _, err := os.Stat(filepath.Join(dir, "Chart.yaml")); err != nil {
		return nil, errors.New("there is no Chart.yaml")
	}
	c, err := loader.LoadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("chart can't be loaded: %w", err)
	}
	return c, nil
}

// complete lays the dependencies into a chart and writes its archive.
func (p *packer) complete(c *packed) error {
	switch c.state {
	case done:
		return c.err
	case underway:
		return fmt.Errorf("chart %s depends on itself", c.chart.Name())
	case untouched:
	}
	c.state = underway
	c.err = p.depend(c.chart, c.dir)
	if c.err == nil {
		c.archive, c.err = p.save(c.chart)
	}
	c.state = done
	return c.err
}

func (p *packer) depend(c *chart.Chart, dir string) error {
	vendored := map[string]bool{}
	for _, d := range c.Dependencies() {
		vendored[d.Name()] = true
	}
	for _, d := range c.Metadata.Dependencies {
		if vendored[d.Name] {
			continue
		}
		dependency, err := p.dependency(d, dir)
		if err != nil {
			return err
		}
		c.AddDependency(dependency)
		vendored[d.Name] = true
	}
	return nil
}

func (p *packer) dependency(d *chart.Dependency, dir string) (*chart.Chart, error) {
	if rel, ok := strings.CutPrefix(d.Repository, "file://"); ok {
		at := filepath.Join(dir, filepath.FromSlash(rel))
		c, err := loadChart(at)
		if err != nil {
			return nil, fmt.Errorf("dependency %s at %s: %w", d.Name, d.Repository, err)
		}
		return c, p.depend(c, at)
	}
	wanted, err := semver.NewConstraint(d.Version)
	if err != nil {
		return nil, fmt.Errorf("dependency %s: version %s: %w", d.Name, d.Version, err)
	}
	var have []string
	for _, c := range p.charts {
		if c.repository != strings.TrimRight(d.Repository, "/") || c.chart.Name() != d.Name {
			continue
		}
		if v, err := semver.NewVersion(c.chart.Metadata.Version); err == nil && wanted.Check(v) {
			if err := p.complete(c); err != nil {
				return nil, fmt.Errorf("dependency %s: %w", d.Name, err)
			}
			return c.chart, nil
		}
		have = append(have, c.chart.Metadata.Version)
	}
	if len(have) > 0 {
		return nil, fmt.Errorf("needs chart %s %s of %s; the checkouts have %s", d.Name, d.Version, d.Repository, strings.Join(have, ", "))
	}
	return nil, fmt.Errorf("needs chart %s %s of %s, which none of the checkouts has", d.Name, d.Version, d.Repository)
}

func (p *packer) save(c *chart.Chart) ([]byte, error) {
	dir, err := os.MkdirTemp(p.dir, "")
	if err != nil {
		return nil, err
	}
	file, err := chartutil.Save(c, dir)
	if err != nil {
		return nil, fmt.Errorf("chart %s can't be packaged: %w", c.Name(), err)
	}
	return os.ReadFile(file)
}

// metadata is Chart.yaml as an index holds it.
func (c *packed) metadata() (map[string]any, error) {
	data, err := json.Marshal(c.chart.Metadata)
	if err != nil {
		return nil, err
	}
	m := map[string]any{}
	err = json.Unmarshal(data, &m)
	return m, err
}
