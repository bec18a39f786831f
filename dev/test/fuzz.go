package main

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// fuzzTest is one fuzz test of the root module.
type fuzzTest struct{ dir, name string }

// command runs the fuzz test alone: the go command fuzzes one at a time. It ends after a number of inputs: when a time ends it,
// Go up to 1.26 now and then calls that a failure although nothing was found (golang/go#75804).
func (f fuzzTest) command(inputs int) []string {
	return []string{"go", "test", "-run=^$", "-fuzz=^" + f.name + "$", fmt.Sprintf("-fuzztime=%dx", inputs), "./" + filepath.ToSlash(f.dir)}
}

// fuzzTests finds the fuzz tests by their declarations; other modules below the root are left out.
func (r *runner) fuzzTests(note func(string, error)) []fuzzTest {
	declaration := regexp.MustCompile(`(?m)^func (Fuzz\w*)\(\w+ \*testing\.F\)`)
	var found []fuzzTest
	note("fuzz tests", filepath.WalkDir(r.root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			_, module := os.Stat(filepath.Join(path, "go.mod"))
			if path != r.root && (module == nil || strings.HasPrefix(d.Name(), ".")) {
				return filepath.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(path, "_test.go") {
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		dir, err := filepath.Rel(r.root, filepath.Dir(path))
		for _, m := range declaration.FindAllSubmatch(text, -1) {
			found = append(found, fuzzTest{dir, string(m[1])})
		}
		return err
	}))
	return found
}
