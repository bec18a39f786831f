package api

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/lockstep-cd/lockstep/api/v1alpha1"
)

// refreshWithin bounds how long an answer waits for a refresh that it was asked for.
const refreshWithin = 30 * time.Second

func (a *API) applicationRoutes() []route {
	inApp := params("appNamespace: its namespace, if not the one of Lockstep", "project: its project; a name that does not exist is told only with it")
	return []route{
		{
			method: "GET", path: "/api/v1/applications", summary: "List applications, page by page if limit is given",
			needs: some("applications"), query: listParams(), answer: typeOf[applicationList](), handle: listApplications,
		},
		{
			method: "GET", path: "/api/v1/applications/{name}", summary: "Get an application",
			needs: on("applications", "get", theApplication), answer: typeOf[v1alpha1.Application](),
			query:  append(params("refresh: normal or hard looks at the sources first", "projects: as project", "resourceVersion: is accepted"), inApp...),
			handle: getApplication,
		},
	}
}

// theApplication is the application that the path names, as project/name. One that does not exist is refused like one that
// may not be seen, unless the caller names its project and may see that.
func theApplication(c *call) (string, error) {
	name := c.PathValue("name")
	given := first(slices.Concat(c.query["project"], c.query["projects"]))
	app := c.live.State.Application(name)
	if ns := c.query.Get("appNamespace"); ns != "" && ns != c.live.Namespace {
		app = nil
	}
	switch {
	case app != nil:
		c.app = app
		return objectOf(app), nil
	case given != "" && c.may(c.route.needs.resource, c.route.needs.action, given+"/"+name):
		return "", c.noApplication(name)
	}
	return "", denied()
}

func (c *call) noApplication(name string) *problem {
	return absent("applications.argoproj.io %q not found", shorten(name))
}

// objectOf is how policies name an application.
func objectOf(app *v1alpha1.Application) string { return projectOf(app) + "/" + app.Name }

func projectOf(app *v1alpha1.Application) string {
	if app.Spec.Project == "" {
		return "default"
	}
	return app.Spec.Project
}

func getApplication(c *call) (any, error) {
	app := c.app
	switch how := c.query.Get("refresh"); how {
	case "", "none":
	case "normal", "hard":
		ctx, cancel := context.WithTimeout(c.Context(), refreshWithin)
		defer cancel()
		fresh, err := c.live.Asker.Refresh(ctx, app.Name, how == "hard")
		if errors.Is(err, context.DeadlineExceeded) && c.Context().Err() == nil {
			return nil, &problem{504, 4, "application " + app.Name + ": the refresh is asked for and did not end within " + refreshWithin.String()}
		}
		if err != nil {
			return nil, err
		}
		app = fresh
	default:
		return nil, invalid("refresh is neither normal nor hard")
	}
	return shown(app), nil
}

// shown is an application as an answer: with its kind, which the cluster's lists leave out.
func shown(app *v1alpha1.Application) *v1alpha1.Application {
	out := *app
	out.APIVersion, out.Kind = v1alpha1.GroupVersion().String(), v1alpha1.ApplicationKind
	return &out
}

func first[T any](list []T) T {
	var zero T
	if len(list) == 0 {
		return zero
	}
	return list[0]
}
