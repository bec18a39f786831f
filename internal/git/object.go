package git

import (
	"bytes"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"sort"
	"strconv"
	"strings"
	"time"

	"github.com/lockstep-cd/lockstep/internal/tree"
)

// header is the line that cat-file answers with before an object.
type header struct {
	hash, kind string
	size       int64
}

var (
	errMissing = errors.New("object is missing")
	errObject  = errors.New("object is malformed")
)

// parseHeader reads "<hash> <type> <size>", or "<name> missing" as errMissing.
func parseHeader(line string) (header, error) {
	f := strings.Split(strings.TrimSuffix(line, "\n"), " ")
	if len(f) == 2 && f[1] == "missing" {
		return header{}, fmt.Errorf("%s: %w", f[0], errMissing)
	}
	if len(f) != 3 || !fullHash(f[0]) {
		return header{}, fmt.Errorf("answer of cat-file: %w", errObject)
	}
	switch f[1] {
	case "blob", "tree", "commit", "tag":
	default:
		return header{}, fmt.Errorf("answer of cat-file: type: %w", errObject)
	}
	size, err := strconv.ParseInt(f[2], 10, 64)
	if err != nil || size < 0 {
		return header{}, fmt.Errorf("answer of cat-file: size: %w", errObject)
	}
	return header{hash: f[0], kind: f[1], size: size}, nil
}

// verify tells whether data is the object that the hash names.
func (h header) verify(data []byte) bool {
	sum := sha1.New()
	if len(h.hash) == 64 {
		sum = sha256.New()
	}
	_, _ = fmt.Fprintf(sum, "%s %d\x00", h.kind, len(data)) // a hash takes every write
	_, _ = sum.Write(data)
	return hex.EncodeToString(sum.Sum(nil)) == h.hash
}

// parseTree reads a tree object whose ids have hashLen bytes. Entries come sorted by name. A name that could lead out of
// the folder is an error.
func parseTree(data []byte, hashLen int) ([]tree.Entry, error) {
	var entries []tree.Entry
	seen := map[string]bool{}
	for len(data) > 0 {
		head, rest, ok := bytes.Cut(data, []byte{0})
		mode, name, sep := strings.Cut(string(head), " ")
		if !ok || !sep || len(rest) < hashLen || !validName(name) || seen[name] {
			return nil, fmt.Errorf("tree: %w", errObject)
		}
		seen[name] = true
		kind, ok := kindOf(mode)
		if !ok {
			return nil, fmt.Errorf("tree: mode %q of %q: %w", mode, name, errObject)
		}
		entries = append(entries, tree.Entry{Name: name, Kind: kind, Hash: hex.EncodeToString(rest[:hashLen]), Size: -1})
		data = rest[hashLen:]
	}
	// Git sorts folders as if their names ended with a slash.
	sort.Slice(entries, func(i, j int) bool { return entries[i].Name < entries[j].Name })
	return entries, nil
}

func validName(name string) bool {
	return name != "" && name != "." && name != ".." && !strings.Contains(name, "/")
}

func kindOf(mode string) (tree.Kind, bool) {
	m, err := strconv.ParseUint(mode, 8, 32)
	if err != nil {
		return 0, false
	}
	switch m & 0o170000 {
	case 0o040000:
		return tree.Dir, true
	case 0o100000:
		return tree.File, true
	case 0o120000:
		return tree.Link, true
	case 0o160000:
		return tree.Submodule, true
	}
	return 0, false
}

// Commit is what a commit says about itself.
type Commit struct {
	Hash string
	// Tree is the hash of its root folder.
	Tree    string
	Parents []string
	// Author and Email of who wrote the change, and Date, when, in the author's zone.
	Author, Email string
	Date          time.Time
	// Subject is the first paragraph of the message on one line, Message the whole of it.
	Subject, Message string
}

// parseCommit reads a commit object.
func parseCommit(id string, data []byte) (Commit, error) {
	c := Commit{Hash: id}
	text := strings.ToValidUTF8(string(data), "\uFFFD")
	head, message, _ := strings.Cut(text, "\n\n")
	for line := range strings.SplitSeq(head, "\n") {
		key, value, _ := strings.Cut(line, " ")
		switch key { // continuation lines of signatures start with a space, so their key is empty
		case "tree":
			c.Tree = value
		case "parent":
			c.Parents = append(c.Parents, value)
		case "author":
			c.Author, c.Email, c.Date = parsePerson(value)
		}
	}
	if !fullHash(c.Tree) {
		return Commit{}, fmt.Errorf("commit %s: %w", id, errObject)
	}
	c.Message = strings.TrimSpace(message)
	subject, _, _ := strings.Cut(c.Message, "\n\n")
	c.Subject = strings.Join(strings.Fields(subject), " ")
	return c, nil
}

// parsePerson reads "Name <mail> 1700000000 +0200". What can not be read stays zero: old commits hold anything.
func parsePerson(s string) (name, mail string, date time.Time) {
	open, end := strings.IndexByte(s, '<'), strings.LastIndexByte(s, '>')
	if open < 0 || end < open {
		return strings.TrimSpace(s), "", time.Time{}
	}
	name, mail = strings.TrimSpace(s[:open]), s[open+1:end]
	f := strings.Fields(s[end+1:])
	if len(f) == 0 {
		return name, mail, time.Time{}
	}
	sec, err := strconv.ParseInt(f[0], 10, 64)
	if err != nil {
		return name, mail, time.Time{}
	}
	date = time.Unix(sec, 0).UTC()
	if len(f) > 1 {
		if zone, err := time.Parse("-0700", f[1]); err == nil {
			date = date.In(zone.Location())
		}
	}
	return name, mail, date
}

// parseTag reads what an annotated tag stands for.
func parseTag(data []byte) (object, kind string, err error) {
	for line := range strings.Lines(string(data)) {
		key, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		switch {
		case key == "object":
			object = value
		case key == "type":
			kind = value
		case line == "\n":
			return "", "", fmt.Errorf("tag: %w", errObject)
		}
		if kind != "" && fullHash(object) {
			return object, kind, nil
		}
	}
	return "", "", fmt.Errorf("tag: %w", errObject)
}
