package git

import (
	"fmt"
	"strings"

	"github.com/lockstep-cd/lockstep/internal/tree"
)

// parseModules reads path and URL of each submodule in the text of a .gitmodules file (gitmodules(5)). What can not be
// read, and a path that leads out of the repository, names no submodule.
func parseModules(data []byte) map[string]string {
	places := map[string]string{}
	var at, url string
	in := false
	keep := func() {
		if clean, err := tree.Clean(at); err == nil && in && at != "" && clean != "." && url != "" {
			places[clean] = url
		}
		at, url = "", ""
	}
	for line := range strings.Lines(string(data)) {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "[") {
			keep()
			in = strings.HasPrefix(strings.ToLower(line), "[submodule ")
			continue
		}
		key, value, _ := strings.Cut(line, "=")
		switch strings.ToLower(strings.TrimSpace(key)) {
		case "path":
			at = configValue(value)
		case "url":
			url = configValue(value)
		}
	}
	keep()
	return places
}

// configValue is a value of git's configuration without quotes and comment.
func configValue(text string) string {
	var out strings.Builder
	quoted, escaped := false, false
	for _, c := range strings.TrimSpace(text) {
		switch {
		case escaped:
			out.WriteRune(c)
			escaped = false
		case c == '\\':
			escaped = true
		case c == '"':
			quoted = !quoted
		case (c == '#' || c == ';') && !quoted:
			return strings.TrimSpace(out.String())
		default:
			out.WriteRune(c)
		}
	}
	return strings.TrimSpace(out.String())
}

// against is the URL of a submodule: ./ and ../ count from the URL of the repository it is in, as git submodule has it.
func against(parent, raw string) (string, error) {
	if !strings.HasPrefix(raw, "./") && !strings.HasPrefix(raw, "../") {
		return raw, nil
	}
	base, rest, joint := strings.TrimRight(parent, "/"), raw, "/"
	for {
		if next, ok := strings.CutPrefix(rest, "./"); ok {
			rest = next
			continue
		}
		next, ok := strings.CutPrefix(rest, "../")
		if !ok {
			break
		}
		rest = next
		if i := strings.LastIndexByte(base, '/'); i > 0 && base[i-1] != '/' {
			base, joint = base[:i], "/"
		} else if i := strings.LastIndexByte(base, ':'); i > 0 && !strings.Contains(base, "://") {
			base, joint = base[:i], ":"
		} else {
			return "", refused(raw, fmt.Sprintf("leads above %s", hideUserinfo(parent)))
		}
	}
	return base + joint + rest, nil
}
