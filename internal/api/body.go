package api

import (
	"errors"
	"io"
	"net/http"
	"reflect"
	"strings"

	kjson "sigs.k8s.io/json"
)

// mostUnknown bounds the fields that an answer names.
const mostUnknown = 10

// read reads the body into the type that the route declares. Names of fields are compared to the letter.
func (c *call) read() error {
	data, err := io.ReadAll(http.MaxBytesReader(c.w, c.Body, maxBody))
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		return &problem{http.StatusRequestEntityTooLarge, codeInvalid, "the body is larger than 8 MiB"}
	case err != nil:
		return invalid("the body can't be read")
	}
	into := reflect.New(c.route.body)
	if len(strings.TrimSpace(string(data))) > 0 {
		strict, err := kjson.UnmarshalStrict(data, into.Interface())
		if err != nil {
			return invalid("the body is no JSON of the expected form: %s", shorten(err.Error()))
		}
		for _, s := range strict[:min(len(strict), mostUnknown)] {
			text, isUnknown := strings.CutPrefix(s.Error(), "unknown ")
			if !isUnknown {
				return invalid("the body has a %s", shorten(s.Error()))
			}
			if err := c.unknown(shorten(text)); err != nil {
				return err
			}
		}
	}
	c.sent = into.Interface()
	return nil
}

// sent is the body of a call whose route declares T.
func sent[T any](c *call) *T {
	return c.sent.(*T) //nolint:forcetypeassert // read makes it of the type that the route declares
}
