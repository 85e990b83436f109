// SPDX-License-Identifier: Apache-2.0

package ipaddr

import (
	"net/netip"
	"testing"
)

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

func TestParseBlock(t *testing.T) {
	for want, spellings := range map[string][]string{
		"::1/128":        {"::1", "0:0:0:0:0:0:0:1", "::0.0.0.1", "::1/128", "::1%eth0"},
		"2001:db8::/32":  {"2001:db8::/32", "2001:DB8:1::/32"},
		"10.0.0.1/32":    {"10.0.0.1", "::ffff:10.0.0.1", "::FFFF:0a00:1", "10.0.0.1/32", "::ffff:10.0.0.1/128"},
		"10.0.0.0/8":     {"10.0.0.0/8", "10.1.2.3/8", "::ffff:10.0.0.0/104"},
		"::/64":          {"::/64", "::ffff:10.0.0.1/64"},
		"invalid Prefix": {"", "a", "10.0.0.256", "10.0.0.1/33", "fe80::1%eth0/64"},
	} {
		for _, s := range spellings {
			if got, ok := ParseBlock(s); got.String() != want || ok != got.IsValid() {
				t.Errorf("ParseBlock(%q) = %s, %v, want %s", s, got, ok, want)
			}
		}
	}
}

// FuzzParseBlock: a block holds the address that it was written with.
func FuzzParseBlock(f *testing.F) {
	for _, s := range []string{"::1", "10.0.0.1/8", "::ffff:10.0.0.1/100", "::ffff:10.0.0.1/90", "fe80::1%a", "a/8", "::/0"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		addr, err := netip.ParseAddr(s)
		if prefix, prefixErr := netip.ParsePrefix(s); prefixErr == nil {
			addr, err = prefix.Addr(), nil
		}
		block, ok := ParseBlock(s)
		if ok != (err == nil) {
			t.Errorf("%q becomes %s, %v (%v)", s, block, ok, err)
		}
		if addr = addr.WithZone(""); ok && !block.Contains(addr) && !block.Contains(addr.Unmap()) {
			t.Errorf("%q becomes %s", s, block)
		}
	})
}

func TestCheckBind(t *testing.T) {
	for address, want := range map[string]bool{
		"10.0.0.1": true, "0.0.0.0": true, "::": true, "::1": true, "::ffff:10.0.0.1": true, "fe80::1": true, "127.0.0.1": true,
		"": false, "a": false, "10.0.0.1:80": false, "10.0.0.1\x00": false, "fe80::1%eth0": false,
		"224.0.0.1": false, "239.255.255.255": false, "::ffff:224.0.0.1": false, "ff02::1": false, "255.255.255.255": false,
	} {
		if err := CheckBind(address); (err == nil) != want {
			t.Errorf("%q: %v", address, err)
		}
	}
}
