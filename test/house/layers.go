package house

import "strings"

// layer is a floor of the house. Imports go from an earlier layer to a later one only.
type layer struct {
	name string
	// roots are folders of the module; a package belongs to the root that is its longest prefix.
	roots []string
	// siblings tells that roots of this layer may import each other.
	siblings bool
}

// layers from top to bottom, as docs/architecture.md shows them.
func layers() []layer {
	return []layer{
		{name: "commands", siblings: true, roots: []string{"cmd", "internal/cli"}},
		{name: "wiring", roots: []string{"internal/app"}},
		{name: "faces", roots: []string{"internal/server", "internal/api", "internal/client", "web"}},
		{name: "services", siblings: true, roots: []string{
			"internal/appset", "internal/delivery", "internal/promote", "internal/image", "internal/notify",
		}},
		{name: "loop", siblings: true, roots: []string{"internal/engine", "internal/lease", "internal/queue"}},
		{name: "inputs and rules", siblings: true, roots: []string{
			"internal/project", "internal/settings", "internal/secret", "internal/param", "internal/auth", "internal/store",
			"internal/webhook", "internal/metrics", "internal/event", "internal/repository",
			"internal/record", "internal/rendercache", "internal/spec", "internal/evidence",
		}},
		{name: "links", roots: []string{
			"internal/git", "internal/chart", "internal/resolve", "internal/render", "internal/cluster", "internal/compare",
			"internal/plan", "internal/apply", "internal/health", "internal/cause", "internal/assess", "internal/install", "internal/signature",
		}},
		{name: "values", siblings: true, roots: []string{
			"internal/tree", "internal/manifest", "internal/handover", "internal/field", "internal/steady", "internal/render/job", "internal/render/buildenv", "internal/filelock", "internal/sandbox", "internal/pressure",
			"api",
		}},
	}
}

// place is where a package stands: the number of its layer, counted from the top, and its root.
type place struct {
	layer int
	root  string
}

// placeOf finds the place of a package, given by its folder in the module.
func placeOf(rel string) (place, bool) {
	best, found := place{}, false
	for i, l := range layers() {
		for _, root := range l.roots {
			if below(rel, root) && (!found || len(root) > len(best.root)) {
				best, found = place{layer: i, root: root}, true
			}
		}
	}
	return best, found
}

// below tells whether folder rel is root or lies in it.
func below(rel, root string) bool { return rel == root || strings.HasPrefix(rel, root+"/") }

// beside are folders that hold no part of the product: they may hold clients and print.
func beside() []string { return []string{"test", "tools", "dev", "bench", "examples"} }

// arrow is an import that is forbidden although the layers would allow it, or that leads out of the module.
type arrow struct {
	// from are folders of the module; "" is every package.
	from []string
	// to are import paths, or folders of the module, with all that lies below.
	to []string
	// except are folders of the module that may.
	except []string
	reason string
}

func arrows() []arrow {
	pure := []string{
		"internal/compare", "internal/plan", "internal/health", "internal/assess", "internal/resolve", "internal/project",
		"internal/render/job", "internal/manifest", "internal/tree", "internal/field", "internal/steady", "internal/cause", "internal/handover", "internal/signature", "api",
	}
	return []arrow{
		{
			from: pure, to: []string{"os/exec", "net", "net/http", "syscall", "io/ioutil"},
			reason: "decisions are pure functions: what they need arrives as arguments",
		},
		{
			from: pure, to: []string{"os"}, except: []string{"internal/tree"},
			reason: "decisions are pure functions; only tree.Open reads a folder of this machine, for people who render their checkout",
		},
		{
			from:   pure,
			to:     clusterClients(),
			reason: "planning never holds a client; objects as plain data are fine",
		},
		{
			from: []string{""},
			to:   []string{"k8s.io/client-go/dynamic", "k8s.io/client-go/kubernetes", "k8s.io/client-go/metadata", "k8s.io/client-go/rest"},
			except: []string{
				"internal/apply",         // writes what applications declare
				"internal/install",       // writes our own CRDs and the default project
				"internal/cluster",       // watches and reads
				"internal/evidence",      // reads what explains
				"internal/engine",        // writes status and Events of the applications themselves
				"internal/lease",         // holds the Lease
				"internal/app",           // makes the clients and hands them out
				"internal/client/direct", // reads Applications and asks for operations on them
				"internal/cli",           // reads the kubeconfig
			},
			reason: "one package writes to clusters, and few may hold a client at all",
		},
		{
			from: []string{"internal/cli", "internal/client"}, to: []string{"internal/server", "internal/api"},
			reason: "the command line speaks through internal/client, so that it works the same with and without a server",
		},
		{
			from: []string{"internal/server"}, to: []string{"internal/cli", "github.com/spf13/cobra", "github.com/spf13/pflag"},
			reason: "options reach the server as a struct",
		},
		{
			from: []string{"internal", "api"}, to: []string{"github.com/spf13/cobra", "github.com/spf13/pflag"}, except: []string{"internal/cli"},
			reason: "flags are read in the command line only",
		},
		{
			from: []string{"internal", "api", "cmd"}, to: []string{"test", "dev", "bench", "tools"},
			reason: "the product does not depend on its tests and tools",
		},
		{
			from: []string{""}, to: []string{"log", "k8s.io/klog", "k8s.io/klog/v2"}, except: []string{"internal/app"},
			reason: "log/slog is passed in; app bridges the libraries",
		},
	}
}

func clusterClients() []string {
	const clientGo = "k8s.io/client-go/"
	names := []string{"dynamic", "kubernetes", "metadata", "rest", "discovery", "tools", "restmapper", "transport", "informers"}
	paths := make([]string, len(names))
	for i, name := range names {
		paths[i] = clientGo + name
	}
	return paths
}
