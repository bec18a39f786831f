package cli

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// versionInfo is what the build knows of itself. The JSON names are part of the interface.
type versionInfo struct {
	Version    string `json:"version"`
	Commit     string `json:"commit,omitempty"`
	CommitDate string `json:"commitDate,omitempty"`
	Modified   bool   `json:"modified,omitempty"`
	Go         string `json:"go"`
	Platform   string `json:"platform"`
	// Tools are the libraries that render, and the Kubernetes client, at their versions.
	Tools map[string]string `json:"tools,omitempty"`
}

func newVersion(sh *shell) *cobra.Command {
	f := &outputFlag{}
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Show the version, and those of the tools inside",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			if err := f.check(); err != nil {
				return err
			}
			v := versionOf(sh.Version)
			if done, err := f.encode(sh.Out, v); done {
				return err
			}
			sh.printVersion(v)
			return nil
		},
	}
	f.bind(cmd, formatJSON, formatYAML)
	return cmd
}

// toolModules are the libraries whose versions decide what is rendered, by the name people know them by.
func toolModules() map[string]string {
	return map[string]string{
		"helm.sh/helm/v4":              "helm",
		"sigs.k8s.io/kustomize/api":    "kustomize",
		"github.com/google/go-jsonnet": "jsonnet",
		"k8s.io/client-go":             "kubernetes",
	}
}

func versionOf(version string) versionInfo {
	v := versionInfo{Version: version, Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH, Tools: map[string]string{}}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return v
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			v.Commit = s.Value
		case "vcs.time":
			v.CommitDate = s.Value
		case "vcs.modified":
			v.Modified = s.Value == "true"
		}
	}
	names := toolModules()
	for _, dep := range info.Deps {
		if name, ok := names[dep.Path]; ok {
			v.Tools[name] = dep.Version
		}
	}
	return v
}

func (sh *shell) printVersion(v versionInfo) {
	fmt.Fprintf(sh.Out, "lockstep %s\n", v.Version)
	if v.Commit != "" {
		fmt.Fprintf(sh.Out, "commit     %s\n", v.Commit)
	}
	fmt.Fprintf(sh.Out, "go         %s %s\n", v.Go, v.Platform)
	for _, name := range []string{"helm", "kustomize", "jsonnet", "kubernetes"} {
		if version := v.Tools[name]; version != "" {
			fmt.Fprintf(sh.Out, "%-10s %s\n", name, version)
		}
	}
}
