// SPDX-License-Identifier: Apache-2.0

package realenvoy

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"regexp"
	"strings"

	security "istio.io/api/security/v1beta1"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/internal/test/routesim"
)

// policyWords are the values for building calls that policies may match: the values of the
// policies, and others.
type policyWords struct {
	paths, hosts, methods, identities, values []string
	headers                                   []string
	addresses                                 []netip.Addr
}

// Values that clients can send unchanged.
var (
	plainPath   = regexp.MustCompile(`^(/[A-Za-z0-9_+-][A-Za-z0-9._+-]*)*/?$`)
	plainHost   = regexp.MustCompile(`^[A-Za-z0-9.-]+(:\d+)?$`)
	plainMethod = regexp.MustCompile(`^[A-Z]+$`)
	plainName   = regexp.MustCompile(`^[A-Za-z0-9-]+$`)
	plainValue  = regexp.MustCompile(`^[!-~]([ -~]*[!-~])?$`)
	plainID     = regexp.MustCompile(`^spiffe://[a-z0-9.-]+(/[A-Za-z0-9._-]+)+$`)
)

func newPolicyWords(policies []*configstore.Config) *policyWords {
	w := &policyWords{
		paths: []string{"/", "/other", "/exact", "/a/b/c"}, hosts: []string{"a.example.com", "other.test"}, methods: []string{"GET", "POST"},
		identities: []string{"spiffe://" + trustDomain + "/ns/shop/sa/web", "spiffe://" + trustAlias + "/ns/shop/sa/web", "spiffe://cluster.local/ns/shop/sa/web", "spiffe://other/ns/bill/sa/job"},
		values:     []string{"one", "two"}, headers: []string{"x-user"},
		addresses: []netip.Addr{netip.MustParseAddr("127.0.0.1"), netip.MustParseAddr("127.0.0.2")},
	}
	for _, c := range policies {
		for _, r := range c.Spec.(*security.AuthorizationPolicy).GetRules() {
			w.rule(r)
		}
	}
	return w
}

func (w *policyWords) rule(r *security.Rule) {
	for _, t := range r.GetTo() {
		o := t.GetOperation()
		add(&w.paths, plainPath, "", o.GetPaths(), o.GetNotPaths())
		add(&w.hosts, plainHost, "", o.GetHosts(), o.GetNotHosts())
		add(&w.methods, plainMethod, "", o.GetMethods(), o.GetNotMethods())
	}
	for _, f := range r.GetFrom() {
		s := f.GetSource()
		add(&w.identities, plainID, "spiffe://%s", s.GetPrincipals(), s.GetNotPrincipals())
		add(&w.identities, plainID, "spiffe://"+trustDomain+"/ns/%s/sa/web", s.GetNamespaces(), s.GetNotNamespaces())
		add(&w.identities, plainID, "spiffe://%s/ns/shop/sa/web", s.GetTrustDomains(), s.GetNotTrustDomains())
		w.addAddresses(s.GetIpBlocks(), s.GetNotIpBlocks(), s.GetRemoteIpBlocks(), s.GetNotRemoteIpBlocks())
	}
	for _, c := range r.GetWhen() {
		name := strings.TrimSuffix(strings.TrimPrefix(c.GetKey(), "request.headers["), "]")
		switch {
		case c.GetKey() == "source.principal":
			add(&w.identities, plainID, "spiffe://%s", c.GetValues(), c.GetNotValues())
		case c.GetKey() == "source.ip" || c.GetKey() == "remote.ip":
			w.addAddresses(c.GetValues(), c.GetNotValues())
		case plainName.MatchString(name) && name != "host":
			w.headers = append(w.headers, strings.ToLower(name))
			add(&w.values, plainValue, "", c.GetValues(), c.GetNotValues())
		}
	}
}

// add adds something for each value that has its form.
func add(to *[]string, form *regexp.Regexp, format string, lists ...[]string) {
	fill := strings.NewReplacer("{**}", "x/y", "{*}", "x", "*", "x")
	for _, list := range lists {
		for _, value := range list {
			text := strings.TrimPrefix(fill.Replace(value), "spiffe://")
			if form == plainPath && !strings.HasPrefix(text, "/") {
				text = "/" + text
			}
			if format != "" {
				text = fmt.Sprintf(format, text)
			}
			if form.MatchString(text) && len(text) < 200 {
				*to = append(*to, text)
			}
		}
	}
}

// addAddresses adds addresses of this machine that are in ranges.
func (w *policyWords) addAddresses(lists ...[]string) {
	for _, list := range lists {
		for _, value := range list {
			base, _, _ := strings.Cut(value, "/")
			if a, err := netip.ParseAddr(base); err == nil && a.Is4() && a.IsLoopback() {
				w.addresses = append(w.addresses, a)
				if next := a.Next(); next.IsLoopback() {
					w.addresses = append(w.addresses, next)
				}
			}
		}
	}
}

// call returns one that can be made: plain, with a client certificate, or a connection.
func (w *policyWords) call(r *rand.Rand, ports gatePorts) routesim.Call {
	c := routesim.Call{From: pickWord(r, w.addresses), To: netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), ports.http)}
	c.Client = c.From
	kind := r.IntN(10)
	if kind < 2 {
		c.To = netip.AddrPortFrom(c.To.Addr(), ports.tcp)
		return c
	}
	c.Request = &routesim.Request{
		Scheme: "http", Method: pickWord(r, w.methods), Authority: pickWord(r, w.hosts), Path: pickWord(r, w.paths), Headers: map[string]string{},
	}
	if r.IntN(2) == 0 {
		c.Client = pickWord(r, w.addresses)
		c.Headers["x-forwarded-for"] = c.Client.String()
	}
	if r.IntN(2) == 0 {
		c.Headers[pickWord(r, w.headers)] = pickWord(r, w.values)
	}
	if r.IntN(2) == 0 {
		c.Headers["x-let-in"] = "yes"
	}
	if kind < 7 {
		c.To, c.ServerName = netip.AddrPortFrom(c.To.Addr(), ports.https), "gate.example.com"
		c.Certificate = &routesim.Certificate{URIs: []string{pickWord(r, w.identities)}}
	}
	return c
}

func pickWord[T any](r *rand.Rand, from []T) T { return from[r.IntN(len(from))] }
