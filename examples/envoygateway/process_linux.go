// SPDX-License-Identifier: Apache-2.0

package main

import "syscall"

// attributes let no Envoy outlive the program, however that ends, and leave it to the
// program to end it when the terminal interrupts both.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
}
