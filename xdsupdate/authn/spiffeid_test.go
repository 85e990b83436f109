// SPDX-License-Identifier: Apache-2.0

package authn_test

import (
	"net/url"
	"strings"
	"testing"

	"github.com/pilotkit/pilotkit/xdsupdate/authn"
)

func TestParseSPIFFEID(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("a", 63)
	for text, want := range map[string]authn.Identity{
		"spiffe://example.org/ns/shop/sa/web":                            {TrustDomain: "example.org", Namespace: "shop", ServiceAccount: "web"},
		"spiffe://a_b-c.1/ns/0/sa/A.b_c-D":                               {TrustDomain: "a_b-c.1", Namespace: "0", ServiceAccount: "A.b_c-D"},
		"spiffe://" + long + "/ns/" + long + "/sa/" + long + long + long: {TrustDomain: long, Namespace: long, ServiceAccount: long + long + long},
	} {
		got, err := authn.ParseSPIFFEID(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
		}
		check(t, text, got, want)
		check(t, "its text", got.String(), text)
	}
}

func malformed() []string {
	const good = "spiffe://example.org/ns/shop/sa/web"
	out := []string{
		"", "web", "spiffe:", "spiffe://", "spiffe:///ns/shop/sa/web", "https://example.org/ns/shop/sa/web", "//example.org/ns/shop/sa/web",
		"SPIFFE://example.org/ns/shop/sa/web", "spiffe:/example.org/ns/shop/sa/web", "spiffe://Example.org/ns/shop/sa/web",
		"spiffe://example.org:80/ns/shop/sa/web", "spiffe://user@example.org/ns/shop/sa/web", "spiffe://[::1]/ns/shop/sa/web",
		"spiffe://ex%61mple.org/ns/shop/sa/web", "spiffe://exämple.org/ns/shop/sa/web",
		"spiffe://example.org/ns//sa/web", "spiffe://example.org/ns/shop/sa/", "spiffe://example.org//ns/shop/sa/web",
		"spiffe://example.org/ns/shop//sa/web", "spiffe://example.org/sa/web/ns/shop", "spiffe://example.org/NS/shop/sa/web",
		"spiffe://example.org/ns/shop", "spiffe://example.org/ns/shop/sa/web/more", "spiffe://example.org/x/ns/shop/sa/web",
		"spiffe://example.org/ns/sh%6Fp/sa/web", "spiffe://example.org/ns/a%2Fb/sa/web", "spiffe://example.org/ns/../sa/web",
		"spiffe://example.org/ns/shop/sa/..", "spiffe://example.org/ns/shop/sa/.", "spiffe://example.org/ns/Shop/sa/web",
		"spiffe://example.org/ns/-shop/sa/web", "spiffe://example.org/ns/shop-/sa/web", "spiffe://example.org/ns/a.b/sa/web",
		"spiffe://example.org/ns/shöp/sa/web", "spiffe://example.org/ns/shop\x00/sa/web", "spiffe://example.org/ns/shop/sa/we b",
		"spiffe://example.org/ns/shop/sa/*",
		"spiffe://example.org/ns/" + strings.Repeat("a", 64) + "/sa/web", "spiffe://" + strings.Repeat("a", 256) + "/ns/shop/sa/web",
		"spiffe://example.org/ns/shop/sa/" + strings.Repeat("a", 254), "spiffe://example.org/ns/shop/sa/" + strings.Repeat("a", 1<<20),
	}
	for _, end := range []string{"/", "?", "#", "?a=b", "#a", " ", "\n", "%20", "//", "/.", "@", ":"} {
		out = append(out, good+end)
	}
	for _, beginning := range []string{" ", "\t", "x-"} {
		out = append(out, beginning+good)
	}
	return out
}

func TestMalformedSPIFFEID(t *testing.T) {
	t.Parallel()
	for _, text := range malformed() {
		id, err := authn.ParseSPIFFEID(text)
		if err == nil || id != (authn.Identity{}) && id.String() == text {
			t.Errorf("%.100q is taken for %+v", text, id)
		}
		if err != nil && len(err.Error()) > 1000 {
			t.Errorf("%.100q: an error of %d bytes", text, len(err.Error()))
		}
	}
}

// FuzzParseSPIFFEID: a URL parser parses every accepted ID in the same way, and each ID has exactly
// one text.
func FuzzParseSPIFFEID(f *testing.F) {
	f.Add("spiffe://example.org/ns/shop/sa/web")
	for _, text := range malformed() {
		if len(text) < 1000 {
			f.Add(text)
		}
	}
	f.Fuzz(func(t *testing.T, text string) {
		id, err := authn.ParseSPIFFEID(text)
		if err != nil {
			return
		}
		if id.String() != text || len(text) > 2048 {
			t.Fatalf("%q is taken for %v", text, id)
		}
		u, err := url.Parse(text)
		if err != nil {
			t.Fatalf("%q is taken, and is no URL: %v", text, err)
		}
		rest := *u
		rest.Scheme, rest.Host, rest.Path = "", "", ""
		if rest != (url.URL{}) || u.Host != id.TrustDomain || u.Path != "/ns/"+id.Namespace+"/sa/"+id.ServiceAccount ||
			strings.ContainsAny(id.Namespace+id.ServiceAccount, "/%?#") || strings.Contains(id.Namespace, ".") {
			t.Fatalf("%q is taken for %+v, as a URL it is %+v", text, id, u)
		}
	})
}
