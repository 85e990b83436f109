// SPDX-License-Identifier: Apache-2.0

package ads

import (
	"reflect"
	"slices"
	"testing"
)

// TestGuardedFields: the cache's mutex guards few fields, and all of them are in state.go.
func TestGuardedFields(t *testing.T) {
	const most = 30
	once := []string{"cache", "stream", "conn"}
	guarded := 0
	for _, of := range []any{state{}, selection{}, connection{}, subscription{}} {
		fields := reflect.TypeOf(of)
		for field := range fields.Fields() {
			if !slices.Contains(once, field.Name) {
				guarded++
			}
		}
	}
	if guarded > most {
		t.Errorf("%d fields, want %d at most", guarded, most)
	}
}
