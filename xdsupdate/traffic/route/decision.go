// SPDX-License-Identifier: Apache-2.0

package route

import (
	"strings"
	"time"

	"github.com/pilotkit/pilotkit/registry"
)

// Outcome is the handling of a request.
type Outcome uint8

const (
	// Forwarded requests and connections go to Decision.Destination.
	Forwarded Outcome = iota
	// Answered requests get a response of the proxy itself: Decision.Status, Location, Body.
	Answered
	// Closed connections get no response.
	Closed
)

// Reason says why there is no destination, or why it is not an ordinary one.
type Reason uint8

const (
	// None is the reason for forwarded requests, redirects and direct responses of rules.
	None Reason = iota
	// NoListener means that the proxy does not listen on the port, or a client workload has no routes for it.
	NoListener
	// NoFilterChain means that no server of the listener is for the server name or the addresses.
	NoFilterChain
	// NotTLS means that the filter chain terminates TLS, and the connection has none.
	NotTLS
	// UnexpectedTLS means that the filter chain serves HTTP in plain text, and the connection begins with
	// a TLS handshake.
	UnexpectedTLS
	// BadRequest means that the request target or the host is not one that the proxy accepts.
	BadRequest
	// Denied means that a policy denies the request. See Decision.Access.
	Denied
	// RedirectedToTLS means that the host requires TLS.
	RedirectedToTLS
	// NoVirtualHost means that no virtual host has the authority.
	NoVirtualHost
	// NoRule means that no route of the virtual host matches.
	NoRule
	// NoCluster means that the destination of the rule does not exist for this proxy.
	NoCluster
	// LeftOut means that the resource that would serve the request cannot be sent, so that connections are
	// closed.
	LeftOut
	// Unsupported means that a resource has content that this package cannot evaluate, such as a filter of
	// the host. Decision.Detail names it.
	Unsupported
)

// String returns the reason as a word.
func (r Reason) String() string {
	words := [...]string{
		"none", "no listener", "no filter chain", "not TLS", "unexpected TLS", "bad request", "denied", "redirected to TLS", "no virtual host",
		"no rule", "no cluster", "left out", "unsupported",
	}
	if int(r) >= len(words) {
		return "unknown"
	}
	return words[r]
}

// Origin is the part of an object that a part of a resource was made of. It is zero if the resource
// has no such object, as the default route of a service.
type Origin struct {
	// Kind is the kind of the object, such as "VirtualService".
	Kind, Namespace, Name string
	// Field is the field, such as "spec.http[1]". HTTP rules are counted after the rules of
	// delegates replace the delegating rules.
	Field string
	// Rule is the name of the rule, if it has one.
	Rule string
}

// Object returns "namespace/name", or "" for the zero origin.
func (o Origin) Object() string {
	if o.Kind == "" {
		return ""
	}
	return o.Namespace + "/" + o.Name
}

// String returns "Kind namespace/name, field "rule"", or "" for the zero origin.
func (o Origin) String() string {
	if o.Kind == "" {
		return ""
	}
	out := o.Kind + " " + o.Object()
	if o.Field != "" {
		out += ", " + strings.TrimPrefix(o.Field, "spec.")
	}
	if o.Rule != "" {
		out += ` "` + o.Rule + `"`
	}
	return out
}

// Decision is the handling of one request. It shares immutable parts with the Router, which must
// not be modified.
type Decision struct {
	Outcome Outcome
	Reason  Reason
	// Status, Location and Body belong to an answer of the proxy itself.
	Status   int
	Location string
	Body     []byte
	// Access is the result of the policies. Without policies only Allowed is set.
	Access Access
	// VirtualHost is the name of the virtual host, and empty without one.
	VirtualHost string
	// Rule is the route that decides about a request, or a rule for connections. It is nil without
	// one.
	Rule *Rule
	// Destination is where the request goes, chosen among Rule.Destinations by Request.Random. It is
	// also set for the reason NoCluster. It is nil for other answers.
	Destination *Destination
	// Path and Authority belong to the forwarded request. They are normalized and rewritten.
	Path, Authority string
	// Request and Response are the changes of headers, to apply in order.
	Request, Response []HeaderChange
	// Detail describes an Unsupported part, or a bad request.
	Detail string
}

// Rule is the action of a route for the requests that it matches. It is immutable.
type Rule struct {
	Origin
	// Route is the name of the route in its resource. It may be empty.
	Route string
	// Destinations are all destinations of the rule. Requests are shared by Weight; a single
	// destination gets all.
	Destinations []Destination
	// Timeout ends a request, and its retries; 0 means never. With DeadlineOfCall the header
	// grpc-timeout of the client ends the request, too.
	Timeout        time.Duration
	DeadlineOfCall bool
	// Retries, Fault and CORS are nil if the rule has no such setting.
	Retries *Retries
	Fault   *Fault
	CORS    *CORS
	// Mirrors get copies of the request, whose responses are dropped.
	Mirrors []Mirror
	// Hash has the properties of the request that choose the endpoint, as far as the load balancing
	// of the destination is a consistent hash. See HashKey.
	Hash []HashPolicy
	// missing is the status of requests whose destination does not exist.
	missing int
}

// Destination is a cluster that a rule forwards to. It is immutable.
type Destination struct {
	// Cluster is the name of the cluster.
	Cluster string
	// Host, Subset and Port are the parts of the name. They are empty for clusters with other
	// names, such as PassthroughCluster.
	Host   registry.Hostname
	Subset string
	Port   uint32
	// Weight is the share of the requests, and 0 if there is only one destination.
	Weight uint32

	authority         string // replaces the authority, unless it is empty
	request, response []HeaderChange
}

// Retries is how failed requests are tried again.
type Retries struct {
	Attempts uint32
	// On are Envoy's conditions, separated by commas. Statuses are the retriable statuses, if the
	// conditions have "retriable-status-codes".
	On       string
	Statuses []uint32
	// PerTry is the timeout of one attempt, and 0 if there is none. Backoff is the base of the
	// pauses, and 0 for the default of the proxy.
	PerTry, Backoff time.Duration
	// OtherHosts: an attempt prefers endpoints that were not tried.
	OtherHosts bool
}

// Number returns the number of further attempts. It is 0 for nil.
func (r *Retries) Number() int {
	if r == nil {
		return 0
	}
	return int(r.Attempts)
}

// Fault is an injected fault. Shares are in millionths of the requests.
type Fault struct {
	Delay      time.Duration
	DelayShare uint32
	// AbortStatus is an HTTP status, or 0. AbortGRPC is a gRPC status if AbortStatus is 0.
	AbortStatus, AbortGRPC uint32
	AbortShare             uint32
}

// Mirror is a destination of copies.
type Mirror struct {
	Destination
	// Share is in millionths of the requests.
	Share uint32
}
