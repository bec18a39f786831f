package house

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

const (
	maxFile     = 500 // lines
	maxFunction = 80  // lines, without its comment
	// stays starts the sentence, in the comment of a long function, that says why it is not cut.
	stays = "Stays whole:"
)

// file is one parsed source file of ours.
type file struct {
	rel   string
	test  bool
	lines int
	fset  *token.FileSet
	ast   *ast.File
}

// files are the source files of the root module, without generated ones.
func files(t *testing.T) []file {
	t.Helper()
	root := moduleRoot(t)
	generated := regexp.MustCompile(`(?m)^// Code generated .* DO NOT EDIT\.$`)
	var list []file
	for _, p := range packages(t) {
		for i, names := range [][]string{p.GoFiles, p.TestGoFiles, p.XTestGoFiles} {
			for _, name := range names {
				path := filepath.Join(p.Dir, name)
				data, err := os.ReadFile(path)
				if err != nil {
					t.Fatal(err)
				}
				if generated.Match(data) {
					continue
				}
				fset := token.NewFileSet()
				parsed, err := parser.ParseFile(fset, path, data, parser.ParseComments|parser.SkipObjectResolution)
				if err != nil {
					t.Fatal(err)
				}
				rel, err := filepath.Rel(root, path)
				if err != nil {
					t.Fatal(err)
				}
				list = append(list, file{rel: filepath.ToSlash(rel), test: i > 0, lines: bytes.Count(data, []byte("\n")), fset: fset, ast: parsed})
			}
		}
	}
	return list
}

func TestFilesStaySmall(t *testing.T) {
	for _, f := range files(t) {
		if f.lines > maxFile {
			t.Errorf("%s: %d lines, the limit is %d: split it by what it does", f.rel, f.lines, maxFile)
		}
	}
}

func TestFunctionsStaySmall(t *testing.T) {
	for _, f := range files(t) {
		if f.test {
			continue // a table is long and still read in one go
		}
		for _, decl := range f.ast.Decls {
			fn, ok := decl.(*ast.FuncDecl)
			if !ok || fn.Body == nil {
				continue
			}
			lines := f.fset.Position(fn.End()).Line - f.fset.Position(fn.Pos()).Line + 1
			if lines > maxFunction && !strings.Contains(fn.Doc.Text(), stays) {
				t.Errorf("%s: %s has %d lines, the limit is %d: cut it, or say why in its comment after %q",
					f.rel, fn.Name.Name, lines, maxFunction, stays)
			}
		}
	}
}

func TestNothingRunsBeforeMain(t *testing.T) {
	for _, f := range files(t) {
		for _, decl := range f.ast.Decls {
			if fn, ok := decl.(*ast.FuncDecl); ok && fn.Recv == nil && fn.Name.Name == "init" {
				t.Errorf("%s: has an init function: build what it builds in a constructor", f.rel)
			}
		}
	}
}

func TestTestsDoNotSleep(t *testing.T) {
	for _, f := range files(t) {
		if !f.test {
			continue
		}
		ast.Inspect(f.ast, func(n ast.Node) bool {
			sel, ok := n.(*ast.SelectorExpr)
			if !ok || sel.Sel.Name != "Sleep" {
				return true
			}
			if x, ok := sel.X.(*ast.Ident); ok && x.Name == "time" {
				t.Errorf("%s: time.Sleep in a test: wait for the condition", f.fset.Position(n.Pos()))
			}
			return true
		})
	}
}

func TestErrorsNameTheObjectFirst(t *testing.T) {
	for _, f := range files(t) {
		if f.test {
			continue
		}
		ast.Inspect(f.ast, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok || len(call.Args) == 0 || !makesError(call.Fun) {
				return true
			}
			lit, ok := call.Args[0].(*ast.BasicLit)
			if ok && strings.Contains(lit.Value, "failed to ") {
				t.Errorf("%s: %s: say what is not so, object first, without \"failed to\"", f.fset.Position(lit.Pos()), lit.Value)
			}
			return true
		})
	}
}

// makesError tells whether fun is fmt.Errorf or errors.New.
func makesError(fun ast.Expr) bool {
	sel, ok := fun.(*ast.SelectorExpr)
	if !ok {
		return false
	}
	x, ok := sel.X.(*ast.Ident)
	return ok && (x.Name == "fmt" && sel.Sel.Name == "Errorf" || x.Name == "errors" && sel.Sel.Name == "New")
}
