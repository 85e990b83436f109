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
	// three clusters [10.1.0.1 10.2.0.1 10.3.0.1]
	// west is replaced [10.1.0.1 10.2.0.9 10.3.0.1]
	// north is removed [10.1.0.1 10.2.0.9]
}
