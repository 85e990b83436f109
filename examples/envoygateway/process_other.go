// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package main

import "syscall"

// attributes returns nil, because only Linux can end a process with its parent.
func attributes() *syscall.SysProcAttr { return nil }
