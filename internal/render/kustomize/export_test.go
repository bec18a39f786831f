package kustomize

// Build is the text that Render reads its objects from.
var Build = build

// ParseRemote tells repository, folder and ref of a URL.
func ParseRemote(s string) (url, dir, ref string, ok bool) {
	r, ok := parseRemote(s)
	return r.url, r.dir, r.ref, ok
}
