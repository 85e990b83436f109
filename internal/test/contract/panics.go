// SPDX-License-Identifier: Apache-2.0

package contract

// Panics reports whether f does.
func Panics(f func()) (yes bool) {
	defer func() { yes = recover() != nil }()
	f()
	return false
}
