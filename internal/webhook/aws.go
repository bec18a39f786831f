package webhook

import (
	"bytes"
	"net/url"
	"regexp"
	"strings"
)

// notice is what AWS sends: an event of EventBridge, or a message of SNS that holds one or a trigger of CodeCommit.
type notice struct {
	// Of EventBridge.
	Source  string `json:"source"`
	Account string `json:"account"`
	Region  string `json:"region"`
	Detail  struct {
		RepositoryName string `json:"repositoryName"`
		Reference      string `json:"referenceFullName"`
		// Of ECR.
		ECRName string `json:"repository-name"`
		Action  string `json:"action-type"`
		Result  string `json:"result"`
	} `json:"detail"`
	// Of SNS.
	Type         string `json:"Type"`
	Message      string `json:"Message"`
	TopicARN     string `json:"TopicArn"`
	SubscribeURL string `json:"SubscribeURL"`
	// Of a trigger.
	Records []struct {
		ARN        string `json:"eventSourceARN"`
		CodeCommit struct {
			References []struct {
				Ref string `json:"ref"`
			} `json:"references"`
		} `json:"codecommit"`
	} `json:"Records"`
}

func isAWS(r Request) bool {
	if r.Header.Get("X-Amz-Sns-Message-Type") != "" {
		return true
	}
	var n notice
	return (bytes.Contains(r.Body, []byte("aws.")) || bytes.Contains(r.Body, []byte("TopicArn"))) && sniff(r, &n) &&
		(strings.HasPrefix(n.Source, "aws.") || n.TopicARN != "")
}

func parseAWS(r Request) (Event, error) {
	var n notice
	if err := decode(r.Body, "an event of AWS", &n); err != nil {
		return Event{}, err
	}
	switch n.Type {
	case "":
	case "Notification":
		message := n.Message
		n = notice{}
		if err := decode([]byte(message), "a notification of CodeCommit or ECR", &n); err != nil {
			return Event{}, err
		}
	case "SubscriptionConfirmation":
		e := Event{Ignored: "the subscription of an SNS topic waits for its confirmation; the server's log has the address to open"}
		if u, err := url.Parse(n.SubscribeURL); err == nil && u.Scheme == "https" && u.User == nil && snsHost().MatchString(u.Host) {
			e.Confirm = u.String()
		}
		return e, nil
	default:
		return Event{Ignored: "SNS message " + clip(n.Type)}, nil
	}
	return n.event(), nil
}

func snsHost() *regexp.Regexp { return regexp.MustCompile(`^sns\.[a-z0-9-]+\.amazonaws\.com(\.cn)?$`) }

func (n notice) event() Event {
	switch {
	case n.Source == "aws.codecommit" && n.Detail.RepositoryName != "":
		return Event{RepoURLs: codeCommit(n.Region, n.Detail.RepositoryName), Refs: []string{n.Detail.Reference}}
	case n.Source == "aws.ecr" && n.Detail.Action == "PUSH" && n.Detail.ECRName != "":
		return Event{Artifacts: []string{n.Account + ".dkr.ecr." + n.Region + "." + domain(n.Region) + "/" + n.Detail.ECRName}}
	case len(n.Records) == 0:
		return Event{Ignored: "event of " + clip(n.Source)}
	}
	var e Event
	for _, r := range n.Records {
		// arn:aws:codecommit:REGION:ACCOUNT:NAME
		arn := strings.Split(r.ARN, ":")
		if len(arn) != 6 || arn[2] != "codecommit" {
			continue
		}
		e.RepoURLs = append(e.RepoURLs, codeCommit(arn[3], arn[5])...)
		for _, ref := range r.CodeCommit.References {
			e.Refs = append(e.Refs, ref.Ref)
		}
	}
	return e
}

// codeCommit are the forms of a repository's URL; https and ssh have one host.
func codeCommit(region, name string) []string {
	return []string{"https://git-codecommit." + region + "." + domain(region) + "/v1/repos/" + name}
}

func domain(region string) string {
	if strings.HasPrefix(region, "cn-") {
		return "amazonaws.com.cn"
	}
	return "amazonaws.com"
}
