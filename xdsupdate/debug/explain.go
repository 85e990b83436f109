// SPDX-License-Identifier: Apache-2.0

package debug

import (
	"fmt"
	"slices"
	"strings"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/istio"
	"github.com/pilotkit/pilotkit/internal/excerpt"
	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate/ads"
	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic"
)

// explainPage explains one call.
type explainPage struct {
	// Asked reports whether the request has a host or asks for an inbound call. Otherwise the other
	// fields are empty.
	Asked bool `json:"asked"`
	// Client is the caller, or the called proxy if Inbound is set.
	Client  string `json:"client,omitempty"`
	Inbound bool   `json:"inbound,omitempty"`
	traffic.Explanation
	// Destinations are those of the Explanation with at most defaultLimit endpoints each.
	Destinations []destinationRow `json:"destinations,omitempty"`
	// Notes explain why the client does not see the host or a destination.
	Notes []string `json:"notes,omitempty"`
	// Refused are the resources that the proxy rejects. The proxy uses an older state of them.
	Faults []faultRow `json:"faults,omitempty"`
	// Ineffective are the parts of the VirtualServices, DestinationRules and policies concerned
	// that change nothing.
	Ineffective []effectlessRow `json:"ineffective,omitempty"`
}

// Bad reports whether the call fails according to the known state.
func (p *explainPage) Bad() bool {
	return len(p.Notes) > 0 || p.Fails() != "" || p.Decision != nil && !p.Decision.Allowed
}

// Fails returns why some or all destinations fail, "" if no destination is known to fail.
func (p *explainPage) Fails() string {
	failing, reason := 0, ""
	for _, d := range p.Destinations {
		switch {
		case d.Missing != "":
			failing, reason = failing+1, d.Missing
		case len(d.Endpoints) == 0:
			failing, reason = failing+1, d.Cluster+" has no endpoints"
		}
	}
	switch {
	case failing == 0:
		return ""
	case failing == 1 && len(p.Destinations) == 1:
		return "it fails: " + reason
	default:
		return fmt.Sprintf("it fails at %d of %d destinations", failing, len(p.Destinations))
	}
}

// askedPolicy is an AuthorizationPolicy that the proxy evaluates for a request.
type askedPolicy struct {
	Action string
	Object object
}

// Policies returns the AuthorizationPolicies as objects, for links to them.
func (p *explainPage) Policies() (out []askedPolicy) {
	for _, text := range p.AuthorizationPolicies {
		action, name, _ := strings.Cut(text, " ")
		namespace, name, _ := strings.Cut(name, "/")
		out = append(out, askedPolicy{action, object{Kind: istio.AuthorizationPolicy.Kind, Namespace: namespace, Name: name}})
	}
	return out
}

type destinationRow struct {
	traffic.ExplainedDestination
	// More is the number of endpoints that are not in Endpoints.
	More int `json:"more,omitempty"`
}

func (h *handler) explainCall(q *query) (any, error) {
	out := &explainPage{Asked: q.is("host") || q.is("inbound")}
	if !out.Asked {
		return out, nil
	}
	call, err := q.call()
	if err != nil {
		return nil, err
	}
	view, proxies, err := h.client(q, out)
	if err != nil {
		return nil, err
	}
	e := h.Policies.Explain(view, call)
	out.Explanation, out.Inbound = e, call.Inbound
	if d := e.Decision; d != nil {
		d.Reason, d.Problems = redactText(d.Reason), d.Problems[:min(len(d.Problems), defaultLimit)]
		for i, p := range d.Problems {
			d.Problems[i] = redactText(p)
		}
	}
	if e.Service == "" && e.Decision == nil && !call.Inbound {
		out.Notes = h.whyUnseen(view, call.Host, e.Sidecar)
	}
	for _, d := range e.Destinations {
		out.Destinations = append(out.Destinations, destinationRowOf(d))
		if _, _, host, ok := envoy.ParseSubsetClusterName(d.Cluster); ok && d.Missing != "" && host != call.Host {
			out.Notes = append(out.Notes, h.whyUnseen(view, host, e.Sidecar)...)
		}
	}
	out.Faults = h.faultRows(func(f ads.Fault) bool {
		return slices.ContainsFunc(proxies, func(p ads.ProxyStatus) bool { return p.Stream == f.Stream })
	})
	h.addIneffective(out)
	return out, nil
}

// addIneffective adds the ineffective parts of the objects that an explanation names.
func (h *handler) addIneffective(out *explainPage) {
	add := func(kind configstore.GroupVersionKind, name string) {
		namespace, name, _ := strings.Cut(name, "/")
		_, found := h.Policies.Effects(configstore.ConfigKey{Kind: kind, Namespace: namespace, Name: name})
		for _, i := range found[:min(len(found), defaultLimit)] {
			out.Ineffective = append(out.Ineffective, h.effectless(i))
		}
	}
	for _, kind := range []configstore.GroupVersionKind{istio.AuthorizationPolicy, istio.RequestAuthentication, istio.PeerAuthentication} {
		if out.Decision != nil && out.Decision.By.Kind == kind.Kind {
			add(kind, out.Decision.By.Name)
		}
	}
	for _, v := range out.VirtualServices {
		add(istio.VirtualService, v.Name)
	}
	seen := map[string]bool{}
	for _, d := range out.Destinations {
		for _, rule := range d.DestinationRules {
			if !seen[rule] {
				seen[rule] = true
				add(istio.DestinationRule, rule)
			}
		}
	}
}

func destinationRowOf(d traffic.ExplainedDestination) destinationRow {
	row := destinationRow{d, max(0, len(d.Endpoints)-defaultLimit)}
	if row.Endpoints = d.Endpoints[:min(len(d.Endpoints), defaultLimit)]; row.Endpoints == nil {
		row.Endpoints = []traffic.ExplainedEndpoint{} // a list in JSON
	}
	return row
}

// whyUnseen returns the possible reasons why a client does not see a host.
func (h *handler) whyUnseen(view ads.View, host registry.Hostname, sidecar string) (out []string) {
	if h.Services == nil {
		return nil
	}
	found := h.servicesNamed(host)
	if len(found) == 0 {
		return []string{fmt.Sprintf("No registry has a service %s. Names are compared as a whole: is the domain part of it?", host)}
	}
	for _, s := range found[:min(len(found), maxDefinitions)] {
		service := excerpt.Object("Service", s.Attributes.Namespace, string(s.Hostname))
		switch {
		case !s.VisibleIn(view.Namespace):
			out = append(out, fmt.Sprintf("%s exists, but the namespace %q does not see it: %s.", service, view.Namespace, exported(s)))
		case sidecar != "":
			out = append(out, fmt.Sprintf("%s exists and is exported to the namespace %q: Sidecar %s does not import it.", service, view.Namespace, sidecar))
		default:
			out = append(out, fmt.Sprintf("%s exists and is visible in the namespace %q. Has it been pushed yet?", service, view.Namespace))
		}
	}
	return out
}
