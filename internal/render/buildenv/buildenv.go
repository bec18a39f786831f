// Package buildenv owns the build variables ($ARGOCD_APP_NAME and the like) in the options of a source. Renderers share it;
// it imports nothing of ours and never reads the environment of the process.
package buildenv

import "os"

// Substitute replaces $NAME and ${NAME} by what value says (nil knows none), and $$ by one dollar sign.
func Substitute(s string, value func(name string) string) string {
	return os.Expand(s, func(name string) string {
		if name == "$" {
			return "$"
		}
		if value == nil {
			return ""
		}
		return value(name)
	})
}
