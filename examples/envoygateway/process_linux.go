// SPDX-License-Identifier: Apache-2.0

package main

import "syscall"

// attributes make the Envoy end with the program, however that ends. A signal from the terminal
// goes only to the program, which then ends the Envoy.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
}
