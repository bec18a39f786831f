package git

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// ssh prepares the one ssh command: no configuration, no agent and no known hosts but ours.
func (n *session) ssh(s *Store, c Credentials) error {
	n.set("protocol.file.allow", "never")
	if c.Proxy != "" {
		return fmt.Errorf("a proxy is configured, and proxies work for https and http only")
	}
	hosts, err := n.put(s, "known_hosts", c.KnownHosts)
	if err != nil {
		return err
	}
	check := "yes"
	if c.InsecureIgnoreHostKey {
		check = "no"
	}
	options := []string{
		"BatchMode=yes", "IdentitiesOnly=yes", "IdentityAgent=none", "StrictHostKeyChecking=" + check,
		`UserKnownHostsFile="` + filepath.ToSlash(hosts) + `"`, "GlobalKnownHostsFile=" + filepath.ToSlash(os.DevNull), "UpdateHostKeys=no",
		"ConnectTimeout=20", "ServerAliveInterval=20", "ServerAliveCountMax=3", "ForwardAgent=no", "ClearAllForwardings=yes",
		"ControlMaster=no", "ControlPath=none", "LogLevel=ERROR",
	}
	if n.addr.user == "" {
		user := c.Username
		if user == "" {
			user = "git"
		}
		options = append(options, "User="+user)
	}
	key := "none"
	if c.SSHPrivateKey != "" {
		file, err := n.put(s, "id", strings.ReplaceAll(strings.TrimSpace(c.SSHPrivateKey), "\r\n", "\n"))
		if err != nil {
			return err
		}
		key = `"` + filepath.ToSlash(file) + `"`
		n.hide(c.SSHPrivateKey)
	}
	line := "ssh -F none"
	for _, o := range append(options, "IdentityFile="+key) {
		line += " -o " + shellQuote(o)
	}
	n.env = append(n.env, "GIT_SSH_COMMAND="+line, "GIT_SSH_VARIANT=ssh")
	return nil
}

func shellQuote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }
