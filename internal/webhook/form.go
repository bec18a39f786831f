package webhook

import (
	"mime"
	"net/http"
	"net/url"
)

// payloadOf takes the JSON out of the body: GitHub sends it as it is, or as the field payload of a form.
func payloadOf(header http.Header, body []byte) ([]byte, error) {
	kind, _, err := mime.ParseMediaType(header.Get("Content-Type"))
	if err != nil || kind != "application/x-www-form-urlencoded" {
		return body, nil //nolint:nilerr // JSON under another name is still JSON
	}
	form, err := url.ParseQuery(string(body))
	if err != nil || form.Get("payload") == "" {
		return nil, &Error{http.StatusBadRequest, "the form has no field payload"}
	}
	return []byte(form.Get("payload")), nil
}
