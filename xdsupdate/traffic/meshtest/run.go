// SPDX-License-Identifier: Apache-2.0

package meshtest

import (
	"cmp"
	"fmt"
	"math"
	"strings"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic/route"
)

// Mesh is the configuration under test. traffic.Policies are one after the first push of their
// server, for example by Server.Flush.
type Mesh interface {
	Router(kind route.Kind, proxy *registry.Proxy) *route.Router
	Effects(key configstore.ConfigKey) ([]traffic.Effect, []traffic.Ineffective)
}

var _ Mesh = (*traffic.Policies)(nil)

// Result is the result of one case.
type Result struct {
	Case
	// Problems are empty if the case passes. Undecided says that nothing decides about the request,
	// so that the case tests nothing.
	Problems  []string
	Undecided bool
	// Decision is the decision in words.
	Decision string
	// Reached are the rules that have decided: Origin.String of package route.
	Reached []string
}

// Run evaluates cases, in order.
func Run(mesh Mesh, cases []Case) []Result {
	out := make([]Result, len(cases))
	for i, c := range cases {
		out[i] = run(mesh, c)
	}
	return out
}

func run(mesh Mesh, c Case) Result {
	r := Result{Case: c}
	if c.Expect.NoEffect != "" {
		r.noEffect(mesh)
		return r
	}
	router := mesh.Router(c.Kind, &c.Proxy)
	if router == nil {
		r.problem("nothing was pushed yet")
		return r
	}
	d := router.Route(c.Request)
	r.Decision = describe(d)
	for _, by := range []string{ruleOf(d).String(), d.Access.By.String()} {
		if by != "" {
			r.Reached = append(r.Reached, by)
		}
	}
	if r.Undecided = undecided(d) && c.Expect.Status == 0 && !c.Expect.Closed; r.Undecided {
		r.problem("nothing decides about the request: " + d.Reason.String())
		return r
	}
	if len(d.Access.Unknown) > 0 {
		r.problem("the result depends on what the case does not say: " + strings.Join(d.Access.Unknown, ", "))
	}
	r.compare(d)
	return r
}

func (r *Result) problem(text string) { r.Problems = append(r.Problems, text) }

// undecided reports whether nothing is about a request.
func undecided(d route.Decision) bool {
	switch d.Reason {
	case route.NoListener, route.NoFilterChain, route.NoVirtualHost, route.NoRule:
		return true
	default:
		return false
	}
}

func ruleOf(d route.Decision) route.Origin {
	if d.Rule == nil {
		return route.Origin{}
	}
	return d.Rule.Origin
}

// compare adds the problems of a decision.
func (r *Result) compare(d route.Decision) {
	e := r.Expect
	want := func(what, want, got string) {
		if want != "" && want != got {
			r.problem(fmt.Sprintf("%s: %q is expected, but %s", what, want, r.Decision))
		}
	}
	if e.Denied != "" && (d.Reason != route.Denied || !begins(denier(d), e.Denied)) {
		r.problem(fmt.Sprintf("denied: %q is expected, but %s", e.Denied, r.Decision))
	}
	if e.Denied == "" && d.Reason == route.Denied && e.Status == 0 && !e.Closed {
		r.problem(r.Decision)
		return
	}
	to := ""
	if d.Outcome == route.Forwarded && d.Destination != nil {
		to = destination(d.Destination)
	}
	want("to", e.To, to)
	if e.To != "" && d.Rule != nil && len(d.Rule.Destinations) > 1 {
		r.problem("to: there are several destinations; shares describe them")
	}
	want("path", e.Path, d.Path)
	want("host", e.Host, d.Authority)
	want("redirect", e.Redirect, d.Location)
	if e.Rule != "" && !begins(ruleOf(d).String(), e.Rule) {
		r.problem(fmt.Sprintf("rule: %q is expected, but %s", e.Rule, r.Decision))
	}
	if e.Status != 0 && e.Status != d.Status {
		r.problem(fmt.Sprintf("status: %d is expected, but %s", e.Status, r.Decision))
	}
	if e.Closed && d.Outcome != route.Closed {
		r.problem("closed is expected, but " + r.Decision)
	}
	r.compareShares(d)
}

// compareShares compares the shares of destinations, to a hundredth of a percent.
func (r *Result) compareShares(d route.Decision) {
	if len(r.Expect.Shares) == 0 {
		return
	}
	got, total := make(map[string]float64), 0.0
	if d.Rule != nil && d.Outcome == route.Forwarded {
		for _, to := range d.Rule.Destinations {
			total += float64(to.Weight)
		}
		for _, to := range d.Rule.Destinations {
			share := 100.0 // a single destination has no weight
			if len(d.Rule.Destinations) > 1 {
				share *= float64(to.Weight) / total
			}
			got[destination(&to)] += share
		}
	}
	same := func(a, b map[string]float64) bool {
		for to, share := range a {
			if math.Abs(b[to]-share) >= 0.01 {
				return false
			}
		}
		return true
	}
	if !same(got, r.Expect.Shares) || !same(r.Expect.Shares, got) {
		r.problem(fmt.Sprintf("shares: %v are expected, but they are %v", r.Expect.Shares, got))
	}
}

// begins reports whether a rule is the expected one, or a part of the expected object.
func begins(rule, want string) bool {
	rest, ok := strings.CutPrefix(rule, want)
	return ok && (rest == "" || rest[0] == ',' || rest[0] == ' ')
}

// denier returns the policy that denies.
func denier(d route.Decision) string {
	switch d.Access.Cause {
	case route.NoAllowRule:
		return "no ALLOW rule"
	case route.BadToken:
		return "token"
	case route.NoCertificate:
		return "certificate"
	default:
		return d.Access.By.String()
	}
}

// destination returns "HOST:PORT/SUBSET", or the name of another cluster.
func destination(d *route.Destination) string {
	if d.Host == "" {
		return d.Cluster
	}
	out := fmt.Sprintf("%s:%d", d.Host, d.Port)
	if d.Subset != "" {
		out += "/" + d.Subset
	}
	return out
}

// describe returns a decision in words.
func describe(d route.Decision) string {
	by := ""
	if rule := ruleOf(d).String(); rule != "" {
		by = " by " + rule
	}
	switch {
	case d.Reason == route.Denied:
		return fmt.Sprintf("the request is denied by %s (status %d)", cmp.Or(denier(d), "a policy"), d.Status)
	case d.Outcome == route.Closed:
		return "the connection is closed: " + d.Reason.String()
	case d.Location != "":
		return fmt.Sprintf("the request is redirected to %s%s", d.Location, by)
	case d.Outcome == route.Answered:
		return fmt.Sprintf("the request is answered with %d (%s)%s", d.Status, d.Reason, by)
	case d.Destination == nil:
		return "the server itself serves the request"
	default:
		return fmt.Sprintf("the request goes to %s as %s%s%s", destination(d.Destination), d.Authority, d.Path, by)
	}
}

// noEffect checks that an object has no effect.
func (r *Result) noEffect(mesh Mesh) {
	kind, name, ok := strings.Cut(r.Expect.NoEffect, " ")
	namespace, name, named := strings.Cut(name, "/")
	if !ok || !named {
		r.problem(fmt.Sprintf("noEffect: %q is not KIND NAMESPACE/NAME", r.Expect.NoEffect))
		return
	}
	key, known := kindOf(kind)
	if !known {
		r.problem(fmt.Sprintf("noEffect: %q is not a kind of the mesh", kind))
		return
	}
	does, not := mesh.Effects(configstore.ConfigKey{Kind: key, Namespace: namespace, Name: name})
	switch {
	case len(does) > 0:
		r.problem(fmt.Sprintf("noEffect: %s has an effect: %v", r.Expect.NoEffect, does[0]))
	case len(not) == 0:
		r.Undecided = true
		r.problem(fmt.Sprintf("noEffect: there is no %s", r.Expect.NoEffect))
	default:
		r.Decision = not[0].Reason
	}
}
