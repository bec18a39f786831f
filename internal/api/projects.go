package api

import (
	"cmp"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-cd/lockstep/api/v1alpha1"
)

// projectList is the answer to a question for projects.
type projectList struct {
	Metadata metav1.ListMeta        `json:"metadata"`
	Items    []*v1alpha1.AppProject `json:"items"`
}

func (a *API) projectRoutes() []route {
	return []route{
		{
			method: "GET", path: "/api/v1/projects", summary: "List projects", needs: some("projects"),
			query: params("name: of one project"), answer: typeOf[projectList](), handle: listProjects,
		},
		{
			method: "GET", path: "/api/v1/projects/{name}", summary: "Get a project",
			needs: on("projects", "get", theProject), answer: typeOf[v1alpha1.AppProject](),
			handle: func(c *call) (any, error) { return shownProject(c.project), nil },
		},
	}
}

// theProject is the project that the path names. One that does not exist is told to who may see it.
func theProject(c *call) (string, error) {
	name := c.PathValue("name")
	c.project = c.live.State.Project(name)
	if c.project != nil {
		return name, nil
	}
	if c.may(c.route.needs.resource, c.route.needs.action, name) {
		return "", absent("appprojects.argoproj.io %q not found", shorten(name))
	}
	return "", denied()
}

func listProjects(c *call) (any, error) {
	name := c.query.Get("name")
	out := projectList{Items: []*v1alpha1.AppProject{}}
	for _, p := range c.live.State.Projects() {
		if (name == "" || p.Name == name) && c.may("projects", "get", p.Name) {
			out.Items = append(out.Items, shownProject(p))
		}
	}
	slices.SortFunc(out.Items, func(a, b *v1alpha1.AppProject) int { return cmp.Compare(a.Name, b.Name) })
	return out, nil
}

// shownProject is a project as an answer.
func shownProject(p *v1alpha1.AppProject) *v1alpha1.AppProject {
	out := *p
	out.APIVersion, out.Kind, out.ManagedFields = v1alpha1.GroupVersion().String(), v1alpha1.AppProjectKind, nil
	return &out
}
