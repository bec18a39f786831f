//go:build !linux

package local

import "syscall"

// attributes are empty where a system can not end a child with its parent: Stop does.
func attributes() *syscall.SysProcAttr { return nil }
