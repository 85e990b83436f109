// SPDX-License-Identifier: Apache-2.0

package traffic_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/pilotkit/pilotkit/xdsupdate/traffic"
)

// TestHTTPKeyFetcher: answers are read as far as they may be, and only good ones are.
func TestHTTPKeyFetcher(t *testing.T) {
	t.Parallel()
	plain := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("keys")) }))
	t.Cleanup(plain.Close)
	mux := http.NewServeMux()
	mux.HandleFunc("/long", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(strings.Repeat("x", 11))) })
	mux.HandleFunc("/moved", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, plain.URL, http.StatusFound) })
	mux.HandleFunc("/machine", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "http://169.254.169.254/latest/meta-data", http.StatusFound)
	})
	mux.HandleFunc("/loop", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/loop", http.StatusFound) })
	mux.HandleFunc("/never", func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	secure := httptest.NewTLSServer(mux)
	t.Cleanup(secure.Close)
	trusting := traffic.HTTPKeyFetcher{}.DefaultClient()
	trusting.Transport = secure.Client().Transport
	for _, tc := range []struct {
		name, uri, wrong string
		client           *http.Client
	}{
		{"an answer", plain.URL, "", nil},
		{"a redirect", server.URL + "/moved", "", nil},
		{"a long answer", server.URL + "/long", "more than 10 bytes", nil},
		{"no page", server.URL + "/none", "404", nil},
		{"a redirect to the credentials of a machine", server.URL + "/machine", "are blocked", nil},
		{"redirects to itself", server.URL + "/loop", "redirects", nil},
		{"a server that nobody knows", secure.URL + "/long", "certificate", nil},
		{"a redirect to plain text", secure.URL + "/moved", "from HTTPS", trusting},
		{"no URI", "://", "missing protocol scheme", nil},
	} {
		data, err := traffic.HTTPKeyFetcher{Client: tc.client, MaxBytes: 10}.Fetch(t.Context(), tc.uri)
		if tc.wrong == "" && (err != nil || string(data) != "keys") || tc.wrong != "" && (err == nil || !strings.Contains(err.Error(), tc.wrong)) {
			t.Errorf("%s: %q, %v", tc.name, data, err)
		}
	}
	_, port, _ := strings.Cut(strings.TrimPrefix(plain.URL, "http://"), ":")
	loopback := traffic.HTTPKeyFetcher{Blocked: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128")}}
	for _, host := range []string{"127.0.0.1", "localhost", "[::ffff:127.0.0.1]", "169.254.169.254", "[fe80::1%25lo]", "100.100.100.200", "[fd00:ec2::254]", "[fd20:ce::254]"} {
		if _, err := loopback.Fetch(t.Context(), "http://"+host+":"+port); err == nil || !strings.Contains(err.Error(), "are blocked") {
			t.Errorf("%s: %v, want an error that its address is blocked", host, err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if _, err := (traffic.HTTPKeyFetcher{}).Fetch(ctx, server.URL+"/never"); err == nil {
		t.Error("no answer is no error")
	}
}
