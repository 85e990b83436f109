// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"

	"github.com/pilotkit/pilotkit/internal/test/testmain"
)

func TestMain(m *testing.M) { testmain.Verify(m) }

func Example_main() {
	main()
	// Output:
	// all to v1: map[v1:200]
	// a tester: map[v2:200]
	// all to v2: map[v2:200]
	// half and half: true
}
