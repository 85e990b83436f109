// SPDX-License-Identifier: Apache-2.0

package contract_test

import (
	"testing"

	"github.com/pilotkit/pilotkit/internal/test/contract"
)

func TestPanics(t *testing.T) {
	if !contract.Panics(func() { panic("on purpose") }) {
		t.Error("a panic was not noticed")
	}
	if contract.Panics(func() {}) {
		t.Error("a function that returns is said to panic")
	}
}
