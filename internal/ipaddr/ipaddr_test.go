// SPDX-License-Identifier: Apache-2.0

package ipaddr

import "testing"

func TestCanonical(t *testing.T) {
	for in, want := range map[string]string{
		"":                   "",
		"10.0.0.1":           "10.0.0.1",
		"::1":                "::1",
		"0:0:0:0:0:0:0:1":    "::1",
		"0000::0001":         "::1",
		"2001:DB8:0:0:1::1":  "2001:db8::1:0:0:1",
		"::ffff:10.0.0.1":    "10.0.0.1",
		"::FFFF:0A00:0001":   "10.0.0.1",
		"::ffff:0.0.0.0":     "0.0.0.0",
		"0:0:0:0:0:0:0:0":    "::",
		"fe80::0:1%eth0":     "fe80::1%eth0",
		"edge.example.com":   "edge.example.com",
		"unix:///run/0::1":   "unix:///run/0::1",
		"010.0.0.1":          "010.0.0.1",
		"10.0.0.1.":          "10.0.0.1.",
		"2001:db8::/32":      "2001:db8::/32",
		"[0:0:0:0:0:0:0:1]":  "[0:0:0:0:0:0:0:1]",
		"0:0:0:0:0:0:0:1:80": "0:0:0:0:0:0:0:1:80",
	} {
		if got := Canonical(in); got != want {
			t.Errorf("Canonical(%q) = %q, want %q", in, got, want)
		}
		if got := Canonical(Canonical(in)); got != want {
			t.Errorf("Canonical of Canonical(%q) = %q, want %q", in, got, want)
		}
	}
}
