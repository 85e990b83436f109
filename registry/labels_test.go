// SPDX-License-Identifier: Apache-2.0

package registry_test

import (
	"testing"

	"github.com/pilotkit/pilotkit/registry"
)

func TestLabels(t *testing.T) {
	t.Parallel()
	a1, a2 := registry.Labels{"a": "1"}, registry.Labels{"a": "2"}
	ab := registry.Labels{"a": "1", "b": "2"}
	for _, test := range []struct {
		name   string
		l, of  registry.Labels
		subset bool
		equal  bool
	}{
		{"nil of nil", nil, nil, true, true},
		{"nil of empty", nil, registry.Labels{}, true, true},
		{"empty of some", registry.Labels{}, a1, true, false},
		{"some of empty", a1, nil, false, false},
		{"same", a1, registry.Labels{"a": "1"}, true, true},
		{"fewer", a1, ab, true, false},
		{"more", ab, a1, false, false},
		{"another value", a2, ab, false, false},
		{"another key", registry.Labels{"c": "1"}, ab, false, false},
		{"an empty value is a value", registry.Labels{"c": ""}, ab, false, false},
	} {
		if got := test.l.SubsetOf(test.of); got != test.subset {
			t.Errorf("%s: SubsetOf = %t, want %t", test.name, got, test.subset)
		}
		if got := test.l.Equal(test.of); got != test.equal {
			t.Errorf("%s: Equal = %t, want %t", test.name, got, test.equal)
		}
	}
	if got, want := (registry.Labels{"b": "2", "a": "1"}).String(), "a=1,b=2"; got != want {
		t.Errorf("String() = %q, want %q", got, want)
	}
}
