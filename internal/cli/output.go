package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"
)

// outputFlag is -o.
type outputFlag struct {
	format string
	allow  []string
}

// The formats. The empty one is the table for people.
const (
	formatTable = ""
	formatWide  = "wide"
	formatJSON  = "json"
	formatYAML  = "yaml"
	formatName  = "name"
)

// bind adds -o with the formats that the command knows.
func (f *outputFlag) bind(cmd *cobra.Command, allow ...string) {
	f.allow = allow
	cmd.Flags().StringVarP(&f.format, "output", "o", f.format, "format of the result: "+strings.Join(allow, ", "))
}

// check refuses an unknown format.
func (f *outputFlag) check() error {
	if f.format != formatTable && !slices.Contains(f.allow, f.format) {
		return ofKind(errUsage, "--output %s: unknown format; there are %s", f.format, strings.Join(f.allow, ", "))
	}
	return nil
}

// encode writes value as JSON or YAML and tells whether the format is one of the two.
func (f *outputFlag) encode(out io.Writer, value any) (bool, error) {
	switch f.format {
	case formatJSON:
		enc := json.NewEncoder(out)
		enc.SetIndent("", "  ")
		enc.SetEscapeHTML(false)
		return true, enc.Encode(value)
	case formatYAML:
		data, err := yaml.Marshal(value)
		if err != nil {
			return true, err
		}
		_, err = out.Write(data)
		return true, err
	}
	return false, nil
}

// encodeNext writes value as one document of several.
func (f *outputFlag) encodeNext(out io.Writer, value any) (bool, error) {
	if f.format == formatYAML {
		fmt.Fprintln(out, "---")
	}
	return f.encode(out, value)
}
