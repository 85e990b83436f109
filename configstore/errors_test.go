// SPDX-License-Identifier: Apache-2.0

package configstore_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/pilotkit/pilotkit/configstore"
)

func TestValidationError(t *testing.T) {
	err := error(&configstore.ValidationError{
		Key: configstore.ConfigKey{Kind: version("v1", "A"), Name: "a", Namespace: "ns"},
		Violations: []configstore.Violation{
			{Field: "spec.ports[1].number", Message: "must be 1–65535, is 70000"},
			{Message: "is odd as a whole"},
		},
	})
	const want = "A ns/a is invalid: spec.ports[1].number: must be 1–65535, is 70000; is odd as a whole"
	if got := err.Error(); got != want {
		t.Errorf("Error() = %q, want %q", got, want)
	}
	wrapped := fmt.Errorf("create A ns/a: %w", err)
	if !errors.Is(wrapped, configstore.ErrInvalid) {
		t.Error("a wrapped ValidationError is not ErrInvalid")
	}
	for _, other := range []error{
		configstore.ErrNotFound, configstore.ErrAlreadyExists, configstore.ErrConflict,
		configstore.ErrUnknownKind, configstore.ErrReadOnly, configstore.ErrCompacted,
	} {
		if errors.Is(wrapped, other) {
			t.Errorf("a ValidationError is %v", other)
		}
	}
	var invalid *configstore.ValidationError
	if !errors.As(wrapped, &invalid) || len(invalid.Violations) != 2 {
		t.Error("the violations cannot be reached through errors.As")
	}
}
