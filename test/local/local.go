// Package local owns what tests, the demo, the try-out and the benchmark run on this machine: builds, the local cluster,
// and Lockstep as a process. Whatever it starts ends with the program that started it, however that ends.
//
// It imports nothing of ours.
package local

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Root is the folder of the module that the working directory lies in.
func Root() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for at := dir; ; at = filepath.Dir(at) {
		if _, err := os.Stat(script(at)); err == nil {
			return at, nil
		}
		if at == filepath.Dir(at) {
			return "", fmt.Errorf("%s: not in Lockstep's repository", dir)
		}
	}
}

func script(root string) string { return filepath.Join(root, "dev", "devcluster") }

// Tail is the end of a file, for a message about the process that wrote it.
func Tail(file string, lines int) string {
	data, err := os.ReadFile(file)
	if err != nil {
		return ""
	}
	all := strings.Split(string(bytes.TrimSpace(data)), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}

// run runs a program in dir and shows what it says on the error stream.
func run(cmd *exec.Cmd, dir string) error {
	cmd.Dir, cmd.Stderr = dir, os.Stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%s: %w", strings.Join(cmd.Args, " "), err)
	}
	return nil
}
