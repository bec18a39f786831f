package health

import (
	"fmt"
	"io"
	"strings"

	"github.com/lockstep-cd/lockstep/internal/health/table"
)

// Describe writes docs/health.md: what decides the health of which kind, from the rules themselves.
func Describe(w io.Writer) {
	fmt.Fprint(w, preface)
	fmt.Fprint(w, "\n## Kinds of Kubernetes\n\n| Kind | Healthy when |\n|---|---|\n")
	for _, k := range kinds() {
		fmt.Fprintf(w, "| `%s` | %s |\n", strings.TrimSuffix(k.kind+"."+k.group, "."), k.words)
	}
	fmt.Fprint(w, form)
	fmt.Fprint(w, "\n## Custom resources\n\nThe first rule that holds decides. A * stands for any characters.\n")
	table.BuiltIn().Describe(w)
}

const preface = `# Health

<!-- Written by make generate from the rules themselves (internal/health); edit those. -->

Each object is Healthy, Progressing, Degraded, Suspended, Missing or Unknown, or has no health and counts as done. Who
knows the object first decides:

1. An object that is being deleted is Progressing.
2. Scripts in Lua, expressions in CEL, classes that give no address, and tables of your own, see below.
3. The rules of Kubernetes' own kinds, below.
4. The rules of custom resources, below.
5. For all other kinds the conventions of conditions: Stalled, Failed or Degraded that is True is Degraded; Ready, Available
   or Healthy that is not True, and Reconciling, are Progressing; a field suspend or paused in the spec is Suspended. An
   object without such conditions has no health.

A status that belongs to an older generation of the object is never Healthy but Progressing. The sentence beside the health
holds no counters, times or generated names, so that it changes only when the cause does.
`

const form = `
## Settings

They stand in ConfigMap argocd-cm and count at once, without a restart. What can not be used is told in the log and left out;
the rest counts.

| Key | Value |
|---|---|
| ` + "`resource.customizations.health.<group>_<Kind>`" + ` | a script in Lua over ` + "`obj`" + ` that returns ` + "`{status = …, message = …}`" + `, or nil for an object without health; it runs for 1 s at most |
| ` + "`resource.customizations.useOpenLibs.<group>_<Kind>`" + ` | ` + "`true`" + `: the script may use Lua's libraries |
| ` + "`resource.customizations`" + ` | the older form of both: a document of ` + "`<group>/<Kind>`" + ` with ` + "`health.lua`" + ` and ` + "`health.lua.useOpenLibs`" + ` |
| ` + "`health.cel.<group>_<Kind>`" + ` | an expression in CEL over ` + "`obj`" + `: a status, a map with status and message, or null |
| ` + "`health.withoutAddress`" + ` | classes whose Ingresses and LoadBalancer Services are well without an address: ` + "`internal, Ingress/nginx-*, Service/tailscale`" + ` |
| ` + "`health.table`, `health.table.<name>`" + ` | a table, as below |

A kind without group is ` + "`<Kind>`" + ` alone; ` + "`*`" + ` stands for any characters, and a name without it is asked first.

## Tables of your own

A table is a YAML list. What is not known is an error that names file and line.

` + "```yaml" + `
- project: Shop                      # whose kinds these are
  source: https://example.com/docs   # where the rules come from
  kinds: [Basket.shop.example.com, "*.pay.example.com"]   # Kind.group, * for any characters
  versions: [v1]                     # all without it
  where: [{field: spec.engine, exists: true}]             # only objects of which this holds
  conditions: status.conditions      # where the conditions are; this without it
  generation: status.observedGeneration   # the generation of the status; this without it, none: do not look at it
  reported: true                     # the generation is always written: without it there is no status yet
  detail: status.message             # added to sentences made from a field
  rules:                             # the first of which all clauses hold decides
    - when: [{condition: Ready, status: "False", reason: [Broken, "No*"]}]
      health: Degraded               # Healthy, Progressing, Degraded, Suspended, Missing, Unknown or None
      message: "it is broken: {condition.message}"        # the condition or the field in words without it
    - when: [{field: status.ready, below: spec.replicas, unset: 1}]
      health: Progressing
  otherwise: {health: Healthy}       # Progressing without it
` + "```" + `

A clause is about a condition (condition, with status, reason, severity and message; absent: true turns it round) or about a
field (field, with one of is, not, exists, below, atLeast and equals). In a path, ` + "`[]`" + ` is each element of a list and
` + "`[name]`" + ` a name with dots in it. In a message, {path} is a field, and {condition}, {condition.message} and
{condition.reason} are those of the condition that was found.
`
