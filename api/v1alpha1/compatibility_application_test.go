package v1alpha1_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/lockstep-cd/lockstep/api/v1alpha1"
)

// The part "Application" of the page says something of every field, condition, sync option and key that there is, and of
// nothing else.
func TestCompatibilityOfApplication(t *testing.T) {
	var kinds [5][]row
	for _, r := range part(t, "Application") {
		kinds[kindOf(r.names[0])] = append(kinds[kindOf(r.names[0])], r)
	}
	elsewhere := []reflect.Type{
		reflect.TypeFor[v1alpha1.ApplicationSource](), reflect.TypeFor[v1alpha1.ApplicationSourceHelm](),
		reflect.TypeFor[v1alpha1.ApplicationSourceKustomize](), reflect.TypeFor[v1alpha1.ApplicationSourceDirectory](),
		reflect.TypeFor[v1alpha1.ApplicationSourcePlugin](),
	}
	there := fields("spec", reflect.TypeFor[v1alpha1.ApplicationSpec](), elsewhere...)
	there = append(there, fields("operation", reflect.TypeFor[v1alpha1.Operation](), elsewhere...)...)
	there = append(there, fields("status", reflect.TypeFor[v1alpha1.ApplicationStatus](), append(elsewhere,
		reflect.TypeFor[v1alpha1.Operation](), reflect.TypeFor[v1alpha1.ComparedTo](), reflect.TypeFor[v1alpha1.SourceHydrator](),
		reflect.TypeFor[v1alpha1.OperationInitiator](), reflect.TypeFor[v1alpha1.ManagedNamespaceMetadata]())...)...)
	inStep(t, kinds[field], there)
	inStep(t, kinds[condition], conditionTypes(t))
	inStep(t, bare(kinds[option]), optionsKnown(t))
	keysInStep(t, kinds[key])
}

const (
	field = iota
	condition
	option
	key
)

func kindOf(name string) int {
	switch {
	case strings.Contains(name, "/") || strings.Contains(name, ".argoproj.io") || strings.HasPrefix(name, "managed-by"):
		return key
	case regexp.MustCompile(`^[A-Z][A-Za-z]+(Error|Warning)$`).MatchString(name):
		return condition
	case regexp.MustCompile(`^[A-Z]`).MatchString(name):
		return option
	}
	return field
}

// bare are the rows with names of options only: Prune=confirm is about Prune.
func bare(rows []row) []row {
	seen := map[string]bool{}
	for _, r := range rows {
		for _, n := range r.names {
			n, _, _ = strings.Cut(n, "=")
			seen[n] = true
		}
	}
	return []row{{names: slices.Sorted(maps.Keys(seen))}}
}

// conditionTypes are the values of the constants of that type.
func conditionTypes(t *testing.T) []string {
	t.Helper()
	var out []string
	ast.Inspect(parsed(t, "status.go"), func(n ast.Node) bool {
		if spec, ok := n.(*ast.ValueSpec); ok && len(spec.Values) == 1 {
			if id, ok := spec.Type.(*ast.Ident); ok && id.Name == "ApplicationConditionType" {
				out = append(out, text(spec.Values[0]))
			}
		}
		return true
	})
	return out
}

// optionsKnown are the sync options that the engine knows, and those that steer the comparison.
func optionsKnown(t *testing.T) []string {
	t.Helper()
	out := []string{"IgnoreExtraneous", "ServerSideDiff", "IncludeMutationWebhook"}
	ast.Inspect(parsed(t, "../../internal/engine/unsupported.go"), func(n ast.Node) bool {
		fn, ok := n.(*ast.FuncDecl)
		if !ok || fn.Name.Name != "syncOptionsKnown" {
			return true
		}
		ast.Inspect(fn, func(n ast.Node) bool {
			if kv, ok := n.(*ast.KeyValueExpr); ok && text(kv.Key) != "" {
				out = append(out, text(kv.Key))
			}
			return true
		})
		return false
	})
	if len(out) < 10 {
		t.Fatal("no sync options were found")
	}
	return out
}

// keysInStep holds the rows about annotations, labels and finalizers against the code: what it names has a row, and what has
// an effect is named in it, itself or by its beginning.
func keysInStep(t *testing.T, rows []row) {
	t.Helper()
	used := keysUsed(t)
	for _, name := range used {
		if !slices.ContainsFunc(rows, func(r row) bool {
			return slices.ContainsFunc(r.names, func(n string) bool { return n == name || strings.HasSuffix(name, "/") && strings.HasPrefix(n, name) })
		}) {
			t.Errorf("%s is used and has no row in %s", name, compatibility)
		}
	}
	for _, r := range rows {
		for _, name := range r.names {
			named := slices.ContainsFunc(used, func(u string) bool { return u == name || len(u) > len("lockstep.dev/") && strings.HasPrefix(name, u) })
			if r.state == "supported" && !named {
				t.Errorf("%s is said to be supported, and nothing reads it", name)
			}
		}
	}
}

// keysUsed are the keys of annotations, labels and finalizers in the product's code.
func keysUsed(t *testing.T) []string {
	t.Helper()
	isKey := regexp.MustCompile(`^([a-z.-]*argocd\.argoproj\.io(/[a-z-]*)?|(lockstep\.dev|helm\.sh|app\.kubernetes\.io)/[a-z-]+)$`)
	seen := map[string]bool{}
	for _, root := range []string{"../../internal", "../../api"} {
		err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			ast.Inspect(parsed(t, path), func(n ast.Node) bool {
				if _, imports := n.(*ast.ImportSpec); imports {
					return false
				}
				if e, ok := n.(ast.Expr); ok && isKey.MatchString(text(e)) && !strings.HasSuffix(text(e), "-") {
					seen[text(e)] = true
				}
				return true
			})
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return slices.Sorted(maps.Keys(seen))
}

func parsed(t *testing.T, path string) *ast.File {
	t.Helper()
	f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// text is the value of a literal text; empty for anything else.
func text(e ast.Expr) string {
	lit, ok := e.(*ast.BasicLit)
	if !ok || lit.Kind != token.STRING {
		return ""
	}
	s, _ := strconv.Unquote(lit.Value)
	return s
}
