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
	// cart.example.com 200 one
	// cart.example.com 200 two
	// error: document 1, ServiceEntry shop/cart: line 8, column 50: spec.endpoints[0].ports.http: must be an integer from 0 to 4294967295, is "http"
	// cart.example.com 200 two
	// other.example.com 404 no service other.example.com
}
