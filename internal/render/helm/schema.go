package helm

import (
	"bytes"
	"errors"
	"fmt"
	"path"
	"sort"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
	"golang.org/x/text/language"
	"golang.org/x/text/message"
	chart "helm.sh/helm/v4/pkg/chart/v2"

	"github.com/lockstep-cd/lockstep/internal/render/job"
)

// schemaURL is the address Helm gives a chart's schema; references count from it.
const schemaURL = "file:///values.schema.json"

// maxFaults bounds the faults that one error names.
const maxFaults = 5

// checkSchemas checks the values of a chart and of its dependencies against the schemas they bring. Helm's own check
// would fetch references over the network and from the file system of this machine.
func checkSchemas(c *chart.Chart, values map[string]any, at string) error {
	if c.Schema != nil {
		if err := checkSchema(c.Schema, values, path.Join(at, "values.schema.json"), c.Name()); err != nil {
			return err
		}
	}
	for _, dep := range c.Dependencies() {
		below, ok := values[dep.Name()].(map[string]any)
		if !ok {
			continue
		}
		if err := checkSchemas(dep, below, path.Join(at, "charts", dep.Name())); err != nil {
			return err
		}
	}
	return nil
}

func checkSchema(text []byte, values map[string]any, file, name string) error {
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		return &job.Error{File: file, Reason: "no valid JSON: " + err.Error()}
	}
	compiler := jsonschema.NewCompiler()
	compiler.UseLoader(noLoader{})
	if err := compiler.AddResource(schemaURL, doc); err != nil {
		return &job.Error{File: file, Reason: "no valid schema: " + sentence(err.Error())}
	}
	schema, err := compiler.Compile(schemaURL)
	if err != nil {
		var load *jsonschema.LoadURLError
		if errors.As(err, &load) {
			return &job.Error{File: file, Reason: fmt.Sprintf("the schema refers to %s, and schemas of other places are not fetched: put it into the file or set spec.source.helm.skipSchemaValidation", load.URL)}
		}
		return &job.Error{File: file, Reason: "no valid schema: " + sentence(err.Error())}
	}
	err = schema.Validate(values)
	var invalid *jsonschema.ValidationError
	switch {
	case errors.As(err, &invalid):
		return &job.Error{File: file, Reason: fmt.Sprintf("the values of chart %s do not fit its schema: %s", name, faults(invalid))}
	case err != nil:
		return &job.Error{File: file, Reason: fmt.Sprintf("the values of chart %s can't be checked", name)}
	}
	return nil
}

// noLoader refuses references to other documents. Names without a place accept everything, as in Helm.
type noLoader struct{}

func (noLoader) Load(url string) (any, error) {
	if strings.HasPrefix(url, "urn:") {
		return true, nil
	}
	return nil, errors.New("not fetched")
}

// faults names where the values break the schema, without the values.
func faults(e *jsonschema.ValidationError) string {
	found := map[string]bool{}
	collect(e, found)
	all := make([]string, 0, len(found))
	for fault := range found {
		all = append(all, fault)
	}
	sort.Strings(all)
	if more := len(all) - maxFaults; more > 0 {
		all = append(all[:maxFaults], fmt.Sprintf("and %d more", more))
	}
	return strings.Join(all, "; ")
}

func collect(e *jsonschema.ValidationError, into map[string]bool) {
	if len(e.Causes) > 0 {
		for _, cause := range e.Causes {
			collect(cause, into)
		}
		return
	}
	into["."+strings.Join(e.InstanceLocation, ".")+": "+fault(e.ErrorKind)] = true
}

func fault(k jsonschema.ErrorKind) string {
	switch k := k.(type) {
	case *kind.Pattern:
		return "does not match pattern " + k.Want
	case *kind.Format:
		return "is not a valid " + k.Want
	case *kind.Minimum:
		return fmt.Sprintf("must be at least %s", k.Want.RatString())
	case *kind.Maximum:
		return fmt.Sprintf("must be at most %s", k.Want.RatString())
	case *kind.ExclusiveMinimum:
		return fmt.Sprintf("must be more than %s", k.Want.RatString())
	case *kind.ExclusiveMaximum:
		return fmt.Sprintf("must be less than %s", k.Want.RatString())
	case *kind.MultipleOf:
		return fmt.Sprintf("must be a multiple of %s", k.Want.RatString())
	case *kind.ContentEncoding:
		return "is not valid " + k.Want
	case *kind.ContentMediaType:
		return "is not valid " + k.Want
	}
	return k.LocalizedString(message.NewPrinter(language.English))
}
