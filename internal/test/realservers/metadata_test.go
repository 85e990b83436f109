// SPDX-License-Identifier: Apache-2.0

package realservers

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protojson"

	"github.com/pilotkit/pilotkit/internal/test/authority"
	"github.com/pilotkit/pilotkit/internal/test/routesim"
	"github.com/pilotkit/pilotkit/internal/test/tier"
)

// The parts of hostile calls: spellings of two methods, names of headers, and their values.
var (
	hostilePaths = []string{
		"/quotes.Quotes/Get", "/quotes.Quotes/Put", "quotes.Quotes/Put", "//quotes.Quotes/Put", "/quotes.Quotes//Put", "/quotes.Quotes/Put/", "/quotes.Quotes/%50ut",
		"/quotes.Quotes/%2550ut", "/quotes%2EQuotes/Put", "/quotes.Quotes%2FPut", "/quotes.Quotes/./Put", "/x/../quotes.Quotes/Put", "/quotes.Quotes/Put?x=1", "/quotes.Quotes/Put#x",
		"/quotes.Quotes/Put;x", `/quotes.Quotes\Put`, "/QUOTES.QUOTES/PUT", "/quotes.Quotes/put", "/quotes.Quotes/Put%00", "/quotes.Quotes/Put\x00", "/quotes.Quotes/P\u00fct",
		" /quotes.Quotes/Put", "/quotes.Quotes/Put ", "http://quotes.shop:9000/quotes.Quotes/Put", "/", "", "*", "/quotes.Quotes/a/b",
	}
	hostileNames = []string{
		"x-name", "X-Name", "X-NAME", "x-name ", "x_name", "x-name-bin", "X-Name-Bin", "host", "Host", ":authority", ":path", ":method", ":scheme", "path", "method", ":x-name", "",
		"x-forwarded-for", "x-forwarded-host", "x-forwarded-proto", "x-original-url", "x-envoy-original-path", "x-http-method-override", "te", "content-type", "user-agent",
		"grpc-timeout", "grpc-encoding", "grpc-previous-rpc-attempts", "grpc-name", "connection", "transfer-encoding", "content-length", "authorization", "cookie", "\u00e4",
	}
	hostileValues = []string{
		"one", "One", "two", "", " one", "one ", "one,two", "two,one", "one\x00", "one\r\nx-name: two", "\u00f6ne", "\xff\xfe", "b25l", "b25l,dHdv", "!", "POST", "GET", "PUT", "trailers",
		"quotes.shop:9000", "other.shop", "QUOTES.SHOP:9000", "quotes.shop:9000,other.shop", "/quotes.Quotes/Get", "/quotes.Quotes/Put", "127.0.0.9", "gzip", "application/grpc",
		"application/grpc+proto", "text/plain", "1S", strings.Repeat("one", 10000), "one" + strings.Repeat(" ", 20000),
	}
)

// hostileWords are the values of policies against such calls.
func hostileWords(port uint16) map[string][]string {
	words := wordsOf(port)
	for _, name := range []string{"x-name", "x-name-bin", ":authority", "x-forwarded-for", "te", "content-type", "user-agent", "grpc-name", "grpc-timeout", ":scheme", "authorization"} {
		words["request.headers["+name+"]"] = []string{"one", "o*", "*e", "*", "two", "trailers", "application/grpc", "127.0.0.9", "other.shop", "http", "b25l"}
	}
	words["paths"] = append(words["paths"], "/quotes.Quotes/Put", "/quotes.Quotes/Put", "/quotes.Quotes/Put*")
	return words
}

// hostileCall draws the header fields of a call. Some of the required fields are missing, repeated,
// in capitals, or have another value.
func (d dice) hostileCall() (out []field) {
	required := []field{
		{":method", "POST"},
		{":scheme", "http"},
		{":path", pick(d, "/quotes.Quotes/Get", "/quotes.Quotes/Put", pick(d, hostilePaths...))},
		{":authority", pick(d, "quotes.shop:9000", "other.shop")},
		{"content-type", "application/grpc"},
		{"te", "trailers"},
	}
	for _, f := range required {
		switch d.IntN(24) {
		case 0:
			continue
		case 1:
			out = append(out, f)
		case 2:
			f.value = pick(d, hostileValues...)
		case 3:
			f.name = strings.ToUpper(f.name)
		}
		out = append(out, f)
	}
	for range d.IntN(4) {
		f := field{pick(d, "x-name", "x-name", "x-name-bin", pick(d, hostileNames...)), pick(d, "one", "two", pick(d, hostileValues...))}
		out = append(out, f)
	}
	if d.IntN(6) == 0 {
		d.Shuffle(len(out), func(i, j int) { out[i], out[j] = out[j], out[i] })
	}
	return out
}

// seen returns a call as policies are to be read for it: what the method saw, and what was sent of
// headers that methods do not see.
func (v *view) seen(c *caller, sent []field) routesim.Call {
	call := place{base: routesim.Call{From: netip.MustParseAddr("127.0.0.1"), To: c.server}}.call("")
	call.Path = strings.NewReplacer("?", "\u00bf", "#", "\u00bf").Replace(v.Method) // there is no query
	for _, f := range sent {
		name := strings.ToLower(f.name)
		if before, ok := call.Headers[name]; ok {
			f.value = before + "," + f.value
		}
		call.Headers[name] = f.value
	}
	for name, values := range v.Metadata {
		call.Headers[name] = string(bytes.Join(values, []byte(",")))
	}
	call.Scheme = call.Headers[":scheme"]
	return call
}

// admits reports whether the policies admit a call as the method saw it. Where methods do not see
// the authority, servers may have taken any that was sent.
func (c *caller) admits(v *view, sent []field) (why string, admitted bool) {
	authorities := []field{{value: string(bytes.Join(v.Metadata[":authority"], []byte(",")))}}
	if len(v.Metadata[":authority"]) == 0 {
		authorities = slices.DeleteFunc(slices.Clone(sent), func(f field) bool { return f.name != ":authority" && f.name != "host" })
	}
	if len(authorities) == 0 {
		authorities = []field{{}}
	}
	for _, a := range authorities {
		call := v.seen(c, sent)
		call.Authority = a.value
		d := c.read.Decide(c.who, uint32(c.server.Port()), routesim.PlainText, call)
		if d.Admitted {
			return "", true
		}
		why = d.By
	}
	return why, false
}

// TestHostileMetadata: a method is served only if the policies admit the call as the method sees
// it, however the call is written.
func TestHostileMetadata(t *testing.T) {
	t.Parallel()
	eachKind(t, func(t *testing.T, k kind) {
		t.Helper()
		rounds := uint64(max(1, tier.Share(60)*k.random/2000)) //nolint:gosec // few
		served, refused := 0, 0
		for seed := range rounds {
			c := &caller{
				t: t, dice: dice{rand.New(rand.NewPCG(seed, 39))}, words: hostileWords, //nolint:gosec // repeatable
				read: &routesim.Server{Policies: &routesim.Authorization{TrustDomain: "cluster.local"}},
				who:  routesim.Proxy{Namespace: "shop", Labels: map[string]string{"app": "quotes"}},
			}
			s, f := c.besiege(k)
			served, refused = served+s, refused+f
		}
		t.Logf("%d calls are served, %d refused", served, refused)
		if served < 2*int(rounds) || refused < 2*int(rounds) { //nolint:gosec // few
			t.Error("the calls tell little")
		}
	})
}

// besiege makes hostile calls to a server with random policies.
func (c *caller) besiege(k kind) (served, refused int) {
	c.t.Helper()
	c.issuer = authority.New(c.t)
	address := freeAddresses(c.t, "127.0.0.1", 1)[0]
	c.server = netip.MustParseAddrPort(address)
	for c.draw(); !c.tells(); {
		c.draw()
	}
	text := workload(address, "") + mode("DISABLE")
	for _, of := range c.read.Policies.Policies {
		data, err := protojson.Marshal(of.AuthorizationPolicy)
		if err != nil {
			c.t.Fatal(err)
		}
		text += policy(of.Name, string(data))
	}
	p := startPlane(c.t, text)
	content, _ := bootstrap(c.t, p.Address, c.issuer)
	k.start(c.t, content, address)
	ready := &line{caller: c, client: plain(c.t, address)}
	ready.becomesReady()
	for range 80 {
		sent := c.hostileCall()
		v, err := rawCall(address, sent)
		if errors.Is(err, errRefused) {
			refused++
			continue
		}
		if err != nil {
			c.t.Fatalf("%q: %v", sent, err)
		}
		served++
		if why, ok := c.admits(v, sent); !ok {
			c.t.Errorf("%.300q is served by %s: %s", fmt.Sprint(sent), v.Method, why)
		}
	}
	if p.Accepted(); c.t.Failed() {
		c.t.Log(text)
		c.t.FailNow()
	}
	return served, refused
}
