// SPDX-License-Identifier: Apache-2.0

package topo_test

import (
	"testing"

	"github.com/pilotkit/pilotkit/internal/topo"
)

func TestLocality(t *testing.T) {
	for _, test := range []struct{ label, locality, region, zone, subzone string }{
		{"", "", "", "", ""},
		{"r", "r", "r", "", ""},
		{"r.z", "r/z", "r", "z", ""},
		{"r.z.s", "r/z/s", "r", "z", "s"},
		{"r.z.s.more", "r/z/s/more", "r", "z", "s"},
		{"r.1/z.2/s.3", "r.1/z.2/s.3", "r.1", "z.2", "s.3"},
		{"/z", "/z", "", "z", ""},
	} {
		locality := topo.FromLabel(test.label)
		if locality != test.locality {
			t.Errorf("FromLabel(%q) = %q, want %q", test.label, locality, test.locality)
		}
		if region, zone, subzone := topo.Split(locality); region != test.region || zone != test.zone || subzone != test.subzone {
			t.Errorf("Split(%q) = %q, %q, %q", locality, region, zone, subzone)
		}
	}
}
