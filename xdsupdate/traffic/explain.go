// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"cmp"
	"fmt"
	"net/http"
	"net/netip"
	"strings"

	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic/internal/hostname"
)

// Explanation describes the handling of a call and the objects that determine it. Its JSON is that of
// the debug pages.
type Explanation struct {
	// Sidecar is the Sidecar with the egress listener of the call ("namespace/name"). It is empty
	// if no Sidecar restricts the client's scope.
	Sidecar string `json:"sidecar,omitempty"`
	// Service is the called service ("namespace/host"). It is empty if the client sees no service
	// with this name.
	Service string `json:"service,omitempty"`
	// VirtualServices are the VirtualServices for the host, in the order of precedence, with the
	// reason against each. The last one may be the one that applies.
	VirtualServices []ConsideredVirtualService `json:"virtual_services,omitempty"`
	// VirtualService ("namespace/name") and Rule, such as `http[1] "canary"`, are the rule that
	// applies. They are empty if the default route applies, or none. Rules are counted after the
	// rules of delegates replace the delegating rules.
	VirtualService string `json:"virtual_service,omitempty"`
	Rule           string `json:"rule,omitempty"`
	// Outcome describes the handling of the request or connection. A denied call has no
	// VirtualServices and no Destinations.
	Outcome string `json:"outcome,omitempty"`
	// AuthorizationPolicies are the policies that a gateway evaluates before routing, as "ACTION
	// namespace/name", in the order of evaluation. Decision is their result.
	AuthorizationPolicies []string `json:"authorization_policies,omitempty"`
	// Decision is the result of the policies that protect the gateway, or the gRPC server of an
	// inbound call. It is nil if the callee has no protection or no listener.
	Decision *Decision `json:"decision,omitempty"`
	// Destinations are the clusters that the call can be routed to.
	Destinations []ExplainedDestination `json:"destinations,omitempty"`
}

// Outcomes of calls that are allowed without a route.
const (
	outcomeServed   = "served"
	outcomePassedOn = "the connection is passed on"
)

// ConsideredVirtualService is a VirtualService for the host of a call.
type ConsideredVirtualService struct {
	Name string `json:"name"` // "namespace/name"
	// Reason says why the VirtualService does not apply. It is empty if it applies.
	Reason string `json:"reason,omitempty"`
}

// ExplainedDestination is a cluster that a call can be routed to.
type ExplainedDestination struct {
	Cluster string `json:"cluster"`
	// Weight is the cluster's share of the calls. It is 0 if there is only one destination.
	Weight uint32 `json:"weight,omitempty"`
	// DestinationRules ("namespace/name") define the cluster's policy. The rules of users come
	// first, from the oldest to the newest, and then the rules generated from BackendTLSPolicies.
	// FoundIn is the step of the lookup that found them, such as "the client's namespace".
	DestinationRules []string `json:"destination_rules,omitempty"`
	FoundIn          string   `json:"found_in,omitempty"`
	// Missing says why the client has no such cluster. It is empty if the cluster exists.
	Missing string `json:"missing,omitempty"`
	// Endpoints are sorted by priority, the preferred ones first.
	Endpoints []ExplainedEndpoint `json:"endpoints"`
}

// ExplainedEndpoint is an endpoint of a destination.
type ExplainedEndpoint struct {
	Address  string `json:"address"`            // "ip:port", a host name with a port, or the path of a unix socket
	Locality string `json:"locality,omitempty"` // "region/zone/subzone"
	Priority uint32 `json:"priority"`
	Weight   uint32 `json:"weight"`
}

// String returns the explanation as lines of text.
func (e Explanation) String() string {
	var b strings.Builder
	line := linesOf(&b)
	if e.Sidecar != "" {
		line("Sidecar %s limits what the client sees", e.Sidecar)
	}
	if e.Service != "" {
		line("service %s", e.Service)
	}
	if len(e.AuthorizationPolicies) > 0 {
		line("AuthorizationPolicies are asked first: %s", strings.Join(e.AuthorizationPolicies, ", "))
	}
	if e.Decision != nil && !e.Decision.plain() {
		e.Decision.write(line)
	}
	for _, v := range e.VirtualServices {
		if v.Reason != "" {
			line("VirtualService %s does not count: %s", v.Name, v.Reason)
		}
	}
	switch {
	case e.Outcome == outcomeServed, e.Outcome == outcomePassedOn, e.Decision != nil && !e.Decision.Allowed:
		line("%s", e.Outcome)
	case e.VirtualService == "":
		line("no VirtualService decides: %s", e.Outcome)
	case e.Rule == "":
		line("VirtualService %s decides: %s", e.VirtualService, e.Outcome)
	default:
		line("VirtualService %s, %s: %s", e.VirtualService, e.Rule, e.Outcome)
	}
	for _, d := range e.Destinations {
		d.write(line)
	}
	return b.String()
}

func (d ExplainedDestination) write(line func(format string, args ...any)) {
	weight := ""
	if d.Weight > 0 {
		weight = fmt.Sprintf(", weight %d", d.Weight)
	}
	line("  to %s%s", d.Cluster, weight)
	if len(d.DestinationRules) > 0 {
		line("    DestinationRule %s, of %s", strings.Join(d.DestinationRules, " and "), d.FoundIn)
	}
	switch {
	case d.Missing != "":
		line("    missing: %s", d.Missing)
	case len(d.Endpoints) == 0:
		line("    no endpoints")
	}
	for _, e := range d.Endpoints {
		line("    priority %d: %s, weight %d, locality %q", e.Priority, e.Address, e.Weight, e.Locality)
	}
}

// Answers to denied callers (Decision.Answer), in addition to HTTP status codes such as "403".
const (
	// AnswerPermissionDenied is the status of a call that a gRPC server denies.
	AnswerPermissionDenied = "PERMISSION_DENIED"
	// AnswerClosed means that the connection is closed or the TLS handshake fails.
	AnswerClosed = "closed"
)

// noPolicy is the reason for a call that no policy applies to.
const noPolicy = "no policy is about it"

// Decision is the result of all AuthorizationPolicies, RequestAuthentications and
// PeerAuthentications for a call. It results from evaluating the listener as the client receives
// it.
type Decision struct {
	// Allowed says that no policy denies the call. The extension providers in Providers may still
	// deny it.
	Allowed bool `json:"allowed"`
	// Answer is the answer to a denied caller: an HTTP status code, AnswerPermissionDenied or
	// AnswerClosed. It is empty if the call is allowed.
	Answer string `json:"answer,omitempty"`
	// By is the rule that decides, or zero if no rule does.
	By PolicyRule `json:"by,omitzero"`
	// Reason describes the decision in words.
	Reason string `json:"reason"`
	// Identity is the caller's identity for policies, the principal of its certificate. It is empty
	// if policies know none.
	Identity string `json:"identity,omitempty"`
	// Token is the principal of the verified token, "issuer/subject", or empty.
	Token string `json:"token,omitempty"`
	// Providers are the extension providers that CUSTOM policies ask, in order, before all later
	// steps. Their answers are unknown.
	Providers []AskedProvider `json:"providers,omitempty"`
	// Audited lists the AUDIT rules that the call matches, only the first of each filter. They do
	// not affect the decision.
	Audited []PolicyRule `json:"audited,omitempty"`
	// DryRun lists the results of policies in dry-run mode. They do not affect the decision.
	DryRun []DryRunDecision `json:"dry_run,omitempty"`
	// Unknown lists the attributes, such as "source.ip", that rules evaluate and the call does not
	// specify. An unspecified attribute matches nothing, so the decision can differ for a call that
	// specifies it.
	Unknown []string `json:"unknown,omitempty"`
	// Problems lists the rules that deny more, or allow less, than their objects specify, with the
	// reasons.
	Problems []string `json:"problems,omitempty"`
}

// PolicyRule is a rule of a policy.
type PolicyRule struct {
	// Kind is "AuthorizationPolicy", "RequestAuthentication" or "PeerAuthentication".
	Kind string `json:"kind"`
	// Name is "namespace/name".
	Name string `json:"name"`
	// Rule is the field, such as "spec.rules[0]". It is empty for the whole object.
	Rule string `json:"rule,omitempty"`
}

// AskedProvider is an extension provider that decides about a call, with the rule that asks it.
type AskedProvider struct {
	Name string     `json:"name"`
	By   PolicyRule `json:"by,omitzero"`
}

// DryRunDecision is the combined result of the dry-run policies of one action.
type DryRunDecision struct {
	// Allows says that these policies would not deny the call.
	Allows bool `json:"allows"`
	// By is the rule that matches, or zero if no ALLOW rule does.
	By PolicyRule `json:"by,omitzero"`
}

// String returns "Kind namespace/name, field", or "" for the zero rule.
func (r PolicyRule) String() string {
	if r.Kind == "" {
		return ""
	}
	out := r.Kind + " " + r.Name
	if r.Rule != "" {
		out += ", " + r.Rule
	}
	return out
}

// plain reports whether the decision has no details worth printing.
func (d *Decision) plain() bool {
	return d.Allowed && d.Reason == noPolicy && d.Identity+d.Token == "" &&
		len(d.Providers)+len(d.Audited)+len(d.DryRun)+len(d.Unknown)+len(d.Problems) == 0
}

// String returns the decision as lines of text.
func (d *Decision) String() string {
	var b strings.Builder
	d.write(linesOf(&b))
	return b.String()
}

// linesOf returns a function that writes a formatted line.
func linesOf(b *strings.Builder) func(format string, args ...any) {
	return func(format string, args ...any) { fmt.Fprintf(b, format+"\n", args...) }
}

func (d *Decision) write(line func(format string, args ...any)) {
	what := "allowed: "
	if !d.Allowed {
		what = "denied (" + d.Answer + "): "
	}
	by := ""
	if d.By != (PolicyRule{}) {
		by = " (" + d.By.String() + ")"
	}
	line("%s%s%s; identity %s, token %s", what, d.Reason, by, cmp.Or(d.Identity, "none"), cmp.Or(d.Token, "none"))
	for _, p := range d.Providers {
		line("  provider %s decides, asked by %s", p.Name, p.By)
	}
	for _, a := range d.Audited {
		line("  audited by %s", a)
	}
	for _, t := range d.DryRun {
		line("  %s", t)
	}
	if len(d.Unknown) > 0 {
		line("  the call does not say %s", strings.Join(d.Unknown, ", "))
	}
	for _, p := range d.Problems {
		line("  %s", p)
	}
}

// String returns the result in words.
func (t DryRunDecision) String() string {
	switch {
	case t.Allows && t.By == (PolicyRule{}):
		return "dry run: no DENY policy would deny it"
	case t.Allows:
		return "dry run: " + t.By.String() + " would allow it"
	case t.By == (PolicyRule{}):
		return "dry run: no ALLOW policy would allow it"
	default:
		return "dry run: " + t.By.String() + " would deny it"
	}
}

// Call is an HTTP or gRPC request of a client, or a connection that a gateway forwards without
// parsing requests.
type Call struct {
	// Host is the authority without the port. It is also the server name of a TLS handshake, unless
	// ServerName is set.
	Host registry.Hostname
	// Port is the called port: the port of the service, or of the Gateway's server, or for an
	// inbound call the port of the workload.
	Port uint32
	// Inbound says that the client of the view receives the call as a gRPC server instead of making
	// it. Calls to a gateway are always inbound.
	Inbound bool
	// Method is in upper case. Its default is GET, or POST for an inbound call. Scheme is "http" or
	// "https", by default "http".
	Method, Scheme string
	// Path begins with "/" and may have a query. The default is "/". It is the path as the client
	// sends it: the gateway's path normalization (pathNormalization of the mesh configuration) is
	// applied before policies and routes are evaluated.
	Path string
	// Headers are keyed by name in lower case. The header "host" is the authority with its port.
	// Without it, the authority is Host.
	Headers map[string]string

	// The remaining fields are inputs of policies.

	// Principal is the identity in the caller's certificate,
	// "spiffe://DOMAIN/ns/NAMESPACE/sa/ACCOUNT", with or without the scheme. It is empty if the
	// caller has no certificate. Policies see it only where mutual TLS is accepted. There is one
	// principal, because certificates of workloads have exactly one (SPIFFE's X.509-SVIDs). For a
	// certificate with several identities, explain a call for each: a policy matches an identity if
	// one of them matches, but an exclusion applies to all of them together.
	Principal string
	// ServerName is the server name of the TLS handshake. The default is Host.
	ServerName string
	// Claims are the claims of the request's token, decoded as by encoding/json. The token is
	// assumed to be signed by a key of its issuer, and to be where the rules for its issuer look
	// for it. Nil means that the request has no token.
	Claims map[string]any
	// InvalidToken says that the request has a forged or malformed token, which no rule accepts.
	InvalidToken bool
	// Source is the peer address of the connection. Remote is the original client as trusted
	// proxies report it, by default Source. Destination is the local address of the connection, by
	// default the server's address for an inbound call. A zero address is unknown and in no range.
	Source, Remote, Destination netip.Addr
}

// complete returns the call with the defaults of its empty fields.
func (c Call) complete() Call {
	method := http.MethodGet
	if c.Inbound {
		method = http.MethodPost
	}
	c.Path, c.Method, c.Scheme = cmp.Or(c.Path, "/"), cmp.Or(c.Method, method), cmp.Or(c.Scheme, "http")
	c.ServerName = cmp.Or(c.ServerName, string(hostname.Lower(c.Host)))
	if c.Principal != "" && !strings.Contains(c.Principal, "://") {
		c.Principal = "spiffe://" + c.Principal
	}
	if !c.Remote.IsValid() {
		c.Remote = c.Source
	}
	return c
}
