package cli

import (
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/lockstep-cd/lockstep/api/v1alpha1"
	"github.com/lockstep-cd/lockstep/internal/render/job"
)

// sourceFlags are options of the tools, laid over those of the source.
type sourceFlags struct {
	values    []string
	set       []string
	setString []string
	release   string
	skipCRDs  bool
	images    []string
	recurse   bool
	include   string
	exclude   string
	externals []string
	topLevel  []string
}

func (s *sourceFlags) bind(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringArrayVar(&s.values, "values", nil, "Helm: value file, from DIR; may be given several times, later ones win")
	flags.StringArrayVar(&s.set, "helm-set", nil, "Helm: KEY=VALUE, as --set takes it; may be given several times")
	flags.StringArrayVar(&s.setString, "helm-set-string", nil, "Helm: KEY=VALUE, and the value is text; may be given several times")
	flags.StringVar(&s.release, "release-name", "", "Helm: name of the release (default the application's)")
	flags.BoolVar(&s.skipCRDs, "helm-skip-crds", false, "Helm: leave out the crds folder")
	flags.StringArrayVar(&s.images, "kustomize-image", nil, "Kustomize: [OLD=]NAME:TAG or @DIGEST; may be given several times")
	flags.BoolVar(&s.recurse, "directory-recurse", false, "plain manifests: folders below too")
	flags.StringVar(&s.include, "directory-include", "", "plain manifests: only files that match this glob")
	flags.StringVar(&s.exclude, "directory-exclude", "", "plain manifests: no files that match this glob")
	flags.StringArrayVar(&s.externals, "jsonnet-ext-var", nil, "Jsonnet: external variable NAME=VALUE; may be given several times")
	flags.StringArrayVar(&s.topLevel, "jsonnet-tla", nil, "Jsonnet: top-level argument NAME=VALUE; may be given several times")
}

// lay puts the options over source. Only options that were given name a tool.
func (s *sourceFlags) lay(source *v1alpha1.ApplicationSource) error {
	if err := s.layHelm(source); err != nil {
		return err
	}
	if len(s.images) > 0 {
		if source.Kustomize == nil {
			source.Kustomize = &v1alpha1.ApplicationSourceKustomize{}
		}
		for _, image := range s.images {
			source.Kustomize.Images = append(source.Kustomize.Images, v1alpha1.KustomizeImage(image))
		}
	}
	return s.layDirectory(source)
}

func (s *sourceFlags) layHelm(source *v1alpha1.ApplicationSource) error {
	if len(s.values)+len(s.set)+len(s.setString) == 0 && s.release == "" && !s.skipCRDs {
		return nil
	}
	if source.Helm == nil {
		source.Helm = &v1alpha1.ApplicationSourceHelm{}
	}
	helm := source.Helm
	helm.ValueFiles = append(helm.ValueFiles, s.values...)
	helm.SkipCrds = helm.SkipCrds || s.skipCRDs
	if s.release != "" {
		helm.ReleaseName = s.release
	}
	for i, list := range [][]string{s.set, s.setString} {
		for _, text := range list {
			name, value, ok := strings.Cut(text, "=")
			if !ok || name == "" {
				return ofKind(errUsage, "--helm-set %s: it is KEY=VALUE", text)
			}
			helm.Parameters = append(helm.Parameters, v1alpha1.HelmParameter{Name: name, Value: value, ForceString: i == 1})
		}
	}
	return nil
}

func (s *sourceFlags) layDirectory(source *v1alpha1.ApplicationSource) error {
	if !s.recurse && s.include == "" && s.exclude == "" && len(s.externals)+len(s.topLevel) == 0 {
		return nil
	}
	if source.Directory == nil {
		source.Directory = &v1alpha1.ApplicationSourceDirectory{}
	}
	dir := source.Directory
	dir.Recurse = dir.Recurse || s.recurse
	if s.include != "" {
		dir.Include = s.include
	}
	if s.exclude != "" {
		dir.Exclude = s.exclude
	}
	for _, v := range []struct {
		flag string
		from []string
		to   *[]v1alpha1.JsonnetVar
	}{{"--jsonnet-ext-var", s.externals, &dir.Jsonnet.ExtVars}, {"--jsonnet-tla", s.topLevel, &dir.Jsonnet.TLAs}} {
		for _, text := range v.from {
			name, value, ok := strings.Cut(text, "=")
			if !ok || name == "" {
				return ofKind(errUsage, "%s %s: it is NAME=VALUE", v.flag, text)
			}
			*v.to = append(*v.to, v1alpha1.JsonnetVar{Name: name, Value: value})
		}
	}
	return nil
}

// buildVariables are what sources may use as $NAME. Without a cluster and a resolved revision those of them are empty.
func buildVariables(app *v1alpha1.Application, source *v1alpha1.ApplicationSource, path string, caps job.Capabilities) map[string]string {
	return map[string]string{
		"ARGOCD_APP_NAME":                   app.Name,
		"ARGOCD_APP_NAMESPACE":              app.Spec.Destination.Namespace,
		"ARGOCD_APP_PROJECT_NAME":           projectOf(app),
		"ARGOCD_APP_REVISION":               "",
		"ARGOCD_APP_REVISION_SHORT":         "",
		"ARGOCD_APP_REVISION_SHORT_8":       "",
		"ARGOCD_APP_SOURCE_PATH":            path,
		"ARGOCD_APP_SOURCE_REPO_URL":        source.RepoURL,
		"ARGOCD_APP_SOURCE_TARGET_REVISION": source.TargetRevision,
		"KUBE_VERSION":                      strings.TrimPrefix(caps.KubeVersion, "v"),
		"KUBE_API_VERSIONS":                 strings.Join(caps.APIVersions, ","),
	}
}

// readFile reads a file, or standard input for "-".
func (sh *shell) readFile(name string) ([]byte, error) {
	if name == "-" {
		data, err := io.ReadAll(sh.In)
		if err != nil {
			return nil, fmt.Errorf("standard input: %w", err)
		}
		return data, nil
	}
	return os.ReadFile(name)
}
