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
	// shop: first.shop.example.com
	// shop, rotated: second.shop.example.com
	// bank: 0 certificates, removed: [kubernetes://shop-cert]
	// bank, which claims to be shop: PermissionDenied
}
