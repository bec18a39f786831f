package api

import (
	"reflect"
	"slices"
	"strings"
)

// route is one line of the table.
type route struct {
	method, path string
	// summary says what it does, for the reference.
	summary string
	needs   permission
	// query are the parameters that it reads.
	query []param
	// body and answer are the types of what comes and goes, nil for none.
	body, answer reflect.Type
	// stream tells that answers come one after the other until one side ends.
	stream bool
	// ours are routes that Argo CD does not have: they refuse what they do not know.
	ours   bool
	handle func(*call) (any, error)
}

// param is a parameter of the query.
type param struct{ name, about string }

// permission is what a route needs. The zero value is none at all, and no route may have it.
type permission struct {
	scope scope
	// resource and action are those of the policy language, where scope is object.
	resource, action string
	// object finds what the action is asked for, and may put what it found into the call. An error of it is the answer.
	object func(*call) (string, error)
	// refine makes the action more precise, such as delete/apps/Deployment/shop/web; nil leaves it.
	refine func(*call) (string, error)
}

// scope tells how a permission is asked for.
type scope uint8

// The scopes.
const (
	// undeclared is the zero value.
	undeclared scope = iota
	// public is for everybody, signed in or not.
	public
	// filtered is for everybody who is let in; the handler leaves out what they may not see.
	filtered
	// object is for those who may do the action to the object.
	object
)

// on is the permission for an action on what find finds.
func on(resource, action string, find func(*call) (string, error)) permission {
	return permission{scope: object, resource: resource, action: action, object: find}
}

// some is the permission to ask for a list of what one may see.
func some(resource string) permission {
	return permission{scope: filtered, resource: resource, action: "get"}
}

// String is how the reference and tests name a permission.
func (p permission) String() string {
	switch p.scope {
	case public:
		return "none"
	case filtered:
		if p.resource == "" {
			return "signed in"
		}
		return p.resource + ", get (what may be seen)"
	case object:
		action := p.action
		if p.refine != nil {
			action += "/…"
		}
		return p.resource + ", " + action
	}
	return ""
}

// routes is the whole table.
func (a *API) routes() []route {
	return slices.Concat(a.applicationRoutes(), a.streamRoutes(), a.projectRoutes())
}

// typeOf is the type of a body or an answer.
func typeOf[T any]() reflect.Type { return reflect.TypeFor[T]() }

// params are parameters of a query, each as "name: what it does".
func params(texts ...string) []param {
	out := make([]param, 0, len(texts))
	for _, t := range texts {
		name, about, _ := strings.Cut(t, ": ")
		out = append(out, param{name, about})
	}
	return out
}

// crooked tells that a path, as it was sent, has parts that lead nowhere or elsewhere.
func crooked(path string) bool {
	for i, part := range strings.Split(path, "/") {
		switch strings.ToLower(part) {
		case ".", "..", "%2e", "%2e%2e", ".%2e", "%2e.":
			return true
		case "":
			if i != 0 {
				return true
			}
		}
	}
	return false
}
