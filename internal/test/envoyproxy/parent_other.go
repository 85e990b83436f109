// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package envoyproxy

import "syscall"

// endWithParent: only Linux ends a process with its parent.
func endWithParent() *syscall.SysProcAttr { return nil }
