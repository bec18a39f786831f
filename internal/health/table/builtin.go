package table

import (
	"embed"
	"errors"
	"io/fs"
	"slices"
	"sync"
)

//go:embed rules/*.yaml
var rules embed.FS

// builtIn reads the rules once. A test holds that they can be read.
var builtIn = sync.OnceValues(func() (*Table, error) {
	names, err := fs.Glob(rules, "rules/*.yaml")
	if err != nil {
		return nil, err
	}
	slices.Sort(names)
	var (
		entries []*entry
		errs    []error
	)
	for _, name := range names {
		text, err := rules.ReadFile(name)
		if err != nil {
			return nil, err
		}
		t, err := Parse(name, text)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		entries = append(entries, t.entries...)
	}
	return newTable(entries), errors.Join(errs...)
})

// BuiltIn is the table of the projects that people run. Several callers share it.
func BuiltIn() *Table {
	t, _ := builtIn()
	return t
}
