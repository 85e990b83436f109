// SPDX-License-Identifier: Apache-2.0

package options_test

import (
	"testing"

	"github.com/pilotkit/pilotkit/internal/options"
	"github.com/pilotkit/pilotkit/internal/test/testmain"
)

func TestMain(m *testing.M) { testmain.Verify(m) }

func TestOne(t *testing.T) {
	t.Parallel()
	if got := options.One[int]("New", nil); got != 0 {
		t.Errorf("without an argument: %d, want the zero value", got)
	}
	if got := options.One("New", []int{7}); got != 7 {
		t.Errorf("with one argument: %d, want 7", got)
	}
	defer func() {
		if got, want := recover(), "New: 2 arguments of the type int: pass one with all settings, they are not merged"; got != want {
			t.Errorf("panic %v, want %q", got, want)
		}
	}()
	options.One("New", []int{1, 2})
}
