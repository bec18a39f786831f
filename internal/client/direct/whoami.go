package direct

import (
	"context"
	"encoding/json"
)

// whoami asks the cluster under which name it knows the caller, so that an operation says who asked. An API server that
// does not tell leaves the name empty; an operation is not refused for that.
func (c *Client) whoami(ctx context.Context) string {
	const review = `{"apiVersion":"authentication.k8s.io/v1","kind":"SelfSubjectReview"}`
	raw, err := c.rest.Post().AbsPath("/apis/authentication.k8s.io/v1/selfsubjectreviews").
		SetHeader("Content-Type", "application/json").Body([]byte(review)).DoRaw(ctx)
	if err != nil {
		return ""
	}
	var answer struct {
		Status struct {
			UserInfo struct {
				Username string `json:"username"`
			} `json:"userInfo"`
		} `json:"status"`
	}
	if json.Unmarshal(raw, &answer) != nil {
		return ""
	}
	return answer.Status.UserInfo.Username
}
