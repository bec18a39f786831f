package helm

import "os"

// expand fills build variables in: $NAME and ${NAME}; $$ stands for a dollar sign, an unknown name for nothing.
func (s *source) expand(text string) string {
	return os.Expand(text, func(name string) string {
		if name == "$" {
			return "$"
		}
		return s.Env[name]
	})
}
