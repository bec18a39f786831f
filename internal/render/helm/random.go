package helm

import (
	"regexp"

	chart "helm.sh/helm/v4/pkg/chart/v2"
)

// randomCall finds calls of functions that answer something else each time: random texts, certificates, the time. A name
// in a comment or a text costs a second rendering and changes nothing.
func randomCall() *regexp.Regexp {
	return regexp.MustCompile(`\b(rand(AlphaNum|Alpha|Numeric|Ascii|Bytes|Int)|uuidv4|shuffle|genPrivateKey|genCA(WithKey)?|genSelfSignedCert(WithKey)?|` +
		`genSignedCert(WithKey)?|htpasswd|bcrypt|encryptAES|now|ago|unixEpoch)\b`)
}

// callsRandom tells whether a template of the chart, or of a chart below it, calls such a function.
func callsRandom(c *chart.Chart) bool {
	call := randomCall()
	var any func(*chart.Chart) bool
	any = func(c *chart.Chart) bool {
		for _, t := range c.Templates {
			if call.Match(t.Data) {
				return true
			}
		}
		for _, d := range c.Dependencies() {
			if any(d) {
				return true
			}
		}
		return false
	}
	return any(c)
}
