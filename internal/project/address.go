package project

import (
	"net/url"
	"path"
	"regexp"
	"strings"
)

// matchURL matches with / as separator; a lone * matches everything. Both sides are brought into one form first, so that no
// other spelling of a repository gets around a rule.
func matchURL(pattern, repository string) bool {
	return pattern == "*" || globURL(address(pattern, false), address(repository, true))
}

// address is the one form of the spellings of a repository's URL: lower case, without user and default port, ssh:// for
// user@host:path, dots in the path resolved, no .git and no slash at the end. Escapes are resolved in a URL, not in a
// pattern.
func address(s string, unescape bool) string {
	s = strings.ToLower(strings.TrimSpace(s))
	scheme, rest, hasScheme := strings.Cut(s, "://")
	scpHost, scpPath, hasColon := strings.Cut(s, ":")
	switch {
	case hasScheme:
	case strings.HasPrefix(s, "/"):
		scheme, rest = "file", s
	case hasColon && !strings.Contains(scpHost, "/"):
		scheme, rest = "ssh", scpHost+"/"+scpPath
	default:
		return trimURL(s)
	}
	host, p, _ := strings.Cut(rest, "/")
	host = host[strings.LastIndex(host, "@")+1:]
	for name, port := range map[string]string{"https": ":443", "http": ":80", "ssh": ":22"} {
		if scheme == name {
			host = strings.TrimSuffix(host, port)
		}
	}
	if plain, err := url.PathUnescape(p); unescape && err == nil {
		p = strings.ToLower(plain)
	}
	return trimURL(scheme + "://" + host + path.Clean("/"+p))
}

func trimURL(s string) string {
	return strings.TrimSuffix(strings.TrimSuffix(s, "/"), ".git")
}

// globURL matches as Argo CD's patterns do: * and ? stop at a slash, ** does not; [a-z] and {a,b} are known. A pattern that
// is none matches itself only.
func globURL(pattern, s string) bool {
	if pattern == s {
		return true
	}
	re, err := regexp.Compile(`\A(?s:` + expression(pattern) + `)\z`)
	return err == nil && re.MatchString(s)
}

func expression(pattern string) string {
	var b strings.Builder
	depth := 0
	for i := 0; i < len(pattern); i++ {
		switch c := pattern[i]; {
		case strings.HasPrefix(pattern[i:], "**"):
			b.WriteString(".*")
			i++
		case c == '*':
			b.WriteString("[^/]*")
		case c == '?':
			b.WriteString("[^/]")
		case c == '{':
			depth++
			b.WriteString("(?:")
		case c == '}' && depth > 0:
			depth--
			b.WriteByte(')')
		case c == ',' && depth > 0:
			b.WriteByte('|')
		case c == '[' && strings.IndexByte(pattern[i:], ']') > 1:
			end := i + strings.IndexByte(pattern[i:], ']')
			b.WriteString("[" + strings.Replace(strings.ReplaceAll(pattern[i+1:end], `\`, `\\`), "!", "^", 1) + "]")
			i = end
		default:
			b.WriteString(regexp.QuoteMeta(pattern[i : i+1]))
		}
	}
	return b.String()
}
