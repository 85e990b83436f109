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
	// edge-1 [blue green]
	// edge-2 [blue]
	// edge-1 [green]
	// rejected: true
	// edge-1 [green]
}
