// SPDX-License-Identifier: Apache-2.0

package envoyproxy

import "syscall"

// endWithParent lets no Envoy outlive the tests, however they end.
func endWithParent() *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }
