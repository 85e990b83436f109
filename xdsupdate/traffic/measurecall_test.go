// SPDX-License-Identifier: Apache-2.0

package traffic_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/pilotkit/pilotkit/internal/test/routesim"
)

// mirrored is a request as a backend got it.
type mirrored struct {
	Host, Path string
	Headers    http.Header
}

// operatedHeaders are those that requests and answers have for operations to act on:
// rules of random meshes set the first, add to the second and remove the third.
func operatedHeaders() http.Header {
	return http.Header{"X-S": {"0"}, "X-D": {"1"}, "X-R": {"gone"}}
}

// startMirror starts a backend that answers with what it got.
func startMirror(t *testing.T) (address string) {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		path, _, _ := strings.Cut(r.RequestURI, "?")
		maps.Copy(w.Header(), operatedHeaders())
		_ = json.NewEncoder(w).Encode(mirrored{r.Host, path, r.Header})
	}))
	t.Cleanup(s.Close)
	return s.Listener.Addr().String()
}

// send writes a request exactly as it is and returns the answer.
func send(t *testing.T, address string, r routesim.Request) (*http.Response, string) {
	t.Helper()
	conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	target := r.Path
	for name, value := range r.Query {
		target += "?" + name + "=" + url.QueryEscape(value)
	}
	text := fmt.Sprintf("%s %s HTTP/1.1\r\nHost: %s\r\nContent-Length: 0\r\nConnection: close\r\n", r.Method, target, r.Authority)
	for name, value := range r.Headers {
		text += name + ": " + value + "\r\n"
	}
	for name, values := range operatedHeaders() {
		text += name + ": " + values[0] + "\r\n"
	}
	if _, err := io.WriteString(conn, text+"\r\n"); err != nil {
		t.Fatal(err)
	}
	response, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response, string(body)
}

// compare sends a request to a listener and returns how what becomes of it is not what
// the simulation says; "" if it is.
func (m *measurement) compare(address string, r routesim.Request, want routesim.Outcome) string {
	m.t.Helper()
	response, body := send(m.t, address, r)
	if want.Status != 0 {
		// What is said of a path holds for the query, too, which stays.
		location, _, _ := strings.Cut(response.Header.Get("Location"), "?")
		got := routesim.Outcome{Status: uint32(response.StatusCode), Location: location, Body: body}
		headers := operated(http.Header{}, want.Headers, "response ", "")
		return cmp.Diff(routesim.Outcome{Status: want.Status, Location: want.Location, Body: want.Body}, got) + differOperated(headers, response.Header)
	}
	cluster := response.Header.Get(clusterHeader)
	if response.StatusCode != http.StatusOK || want.Targets[cluster] == 0 {
		return fmt.Sprintf("status %d by cluster %q, want one of %v", response.StatusCode, cluster, want.Targets)
	}
	var got mirrored
	if err := json.Unmarshal([]byte(body), &got); err != nil {
		return fmt.Sprintf("%v: %s", err, body)
	}
	expected := mirrored{Host: want.HostOf(cluster), Path: want.Path}
	return cmp.Diff(expected, got, cmpopts.IgnoreFields(mirrored{}, "Headers")) +
		differOperated(operated(operatedHeaders(), want.Headers, "request ", cluster), got.Headers) +
		differOperated(operated(operatedHeaders(), want.Headers, "response ", cluster), response.Header)
}

// operated returns headers after the operations of an outcome on them: those that are
// for all clusters, and those for one.
func operated(headers http.Header, operations []string, what, cluster string) http.Header {
	for _, o := range operations {
		o, general := strings.CutPrefix(o, what)
		if !general {
			var own bool
			if o, own = strings.CutPrefix(o, cluster+" "+what); !own {
				continue
			}
		}
		verb, operand, _ := strings.Cut(o, " ")
		name, value, _ := strings.Cut(operand, "=")
		switch verb {
		case "set":
			headers.Set(name, value)
		case "add":
			headers.Add(name, value)
		case "remove":
			headers.Del(name)
		}
	}
	return headers
}

func differOperated(want, got http.Header) string {
	have := http.Header{}
	for name := range operatedHeaders() {
		if values := got.Values(name); len(values) > 0 {
			have[name] = slices.Clone(values)
		}
	}
	return cmp.Diff(want, have)
}
