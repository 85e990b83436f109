// SPDX-License-Identifier: Apache-2.0

//go:build !unix

package ads_test

import "testing"

func reportCPU(*testing.B, string, int) (done func()) { return func() {} }
