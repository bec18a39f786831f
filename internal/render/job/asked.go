package job

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"
	"sync"

	"github.com/lockstep-cd/lockstep/internal/render/buildenv"
)

// Asked notes what a rendering asked of its surroundings: the cluster's capabilities and the build variables. What was not
// asked can change without changing the rendering (DESIGN.md §2.2). It is safe for use by several goroutines; a nil one
// notes nothing.
type Asked struct {
	mu sync.Mutex
	// KubeVersion tells that the cluster's version was asked for.
	KubeVersion bool `json:",omitempty"`
	// AllAPIs tells that the whole list of APIs was asked for, APIs which single ones.
	AllAPIs bool            `json:",omitempty"`
	APIs    map[string]bool `json:",omitempty"`
	// Env are the names of the build variables that were asked for, known or not.
	Env map[string]bool `json:",omitempty"`
}

// NoteKubeVersion notes that the cluster's version was asked for.
func (a *Asked) NoteKubeVersion() {
	a.note(func() { a.KubeVersion = true })
}

// NoteAPIs notes that the whole list of APIs was asked for.
func (a *Asked) NoteAPIs() {
	a.note(func() { a.AllAPIs = true })
}

// maxAPIs bounds how many single APIs are noted: a template that counts through names asks for all of them.
const maxAPIs = 1000

// NoteAPI notes that it was asked whether the cluster has one API.
func (a *Asked) NoteAPI(name string) {
	a.note(func() {
		if a.APIs == nil {
			a.APIs = map[string]bool{}
		}
		if a.APIs[name] = true; len(a.APIs) > maxAPIs {
			a.AllAPIs = true
			clear(a.APIs)
		}
	})
}

// NoteEnv notes that a build variable was asked for.
func (a *Asked) NoteEnv(name string) {
	a.note(func() {
		if a.Env == nil {
			a.Env = map[string]bool{}
		}
		a.Env[name] = true
	})
}

func (a *Asked) note(what func()) {
	if a == nil {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	what()
}

// Substitute fills the build variables of the input into s, and notes which they are.
func (in Input) Substitute(s string) string {
	return buildenv.Substitute(s, in.Variable)
}

// Variable is the value of a build variable, empty when there is none of that name; that it was asked for is noted.
func (in Input) Variable(name string) string {
	in.Asked.NoteEnv(name)
	return in.Env[name]
}

// Answers are what the surroundings said to what a rendering asked of them.
type Answers map[string]string

// The kinds of questions, as prefixes of the keys of Answers.
const (
	askedVersion = "version"
	askedAPIs    = "apis"
	askedAPI     = "api "
	askedEnv     = "env "
)

// Answers asks c and env what a asked.
func (a *Asked) Answers(c Capabilities, env map[string]string) Answers {
	if a == nil {
		return nil
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	out := Answers{}
	if a.KubeVersion {
		out[askedVersion] = ""
	}
	if a.AllAPIs {
		out[askedAPIs] = ""
	}
	for name := range a.APIs {
		out[askedAPI+name] = ""
	}
	for name := range a.Env {
		out[askedEnv+name] = ""
	}
	for question := range out {
		out[question] = ask(question, c, env)
	}
	return out
}

// Hold tells whether c and env give the same answers.
func (a Answers) Hold(c Capabilities, env map[string]string) bool {
	for question, answer := range a {
		if ask(question, c, env) != answer {
			return false
		}
	}
	return true
}

// HoldCluster tells whether c and those variables that come from the cluster give the same answers; the other variables are
// not looked at.
func (a Answers) HoldCluster(c Capabilities, env map[string]string) bool {
	for question, answer := range a {
		name, variable := strings.CutPrefix(question, askedEnv)
		if _, ours := env[name]; variable && !ours {
			continue
		}
		if ask(question, c, env) != answer {
			return false
		}
	}
	return true
}

// AskedEnv tells whether a build variable was asked for whose name begins with prefix.
func (a Answers) AskedEnv(prefix string) bool {
	for question := range a {
		if strings.HasPrefix(question, askedEnv+prefix) {
			return true
		}
	}
	return false
}

// ask is the answer to one question. Values that may be long are hashed.
func ask(question string, c Capabilities, env map[string]string) string {
	switch question {
	case askedVersion:
		return c.KubeVersion
	case askedAPIs:
		return hashOf(strings.Join(c.APIVersions, "\n"))
	}
	if name, ok := strings.CutPrefix(question, askedAPI); ok {
		if slices.Contains(c.APIVersions, name) {
			return "yes"
		}
		return "no"
	}
	value, known := env[strings.TrimPrefix(question, askedEnv)]
	if !known {
		return ""
	}
	return hashOf(value)
}

func hashOf(s string) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:12])
}
