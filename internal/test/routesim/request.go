// SPDX-License-Identifier: Apache-2.0

package routesim

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// Request is an HTTP request as a client's listener sees it.
type Request struct {
	// Port is the one that the request was sent to.
	Port uint32
	// TLS: it came over TLS.
	TLS                       bool
	Method, Authority, Scheme string
	// Path is without the query.
	Path string
	// Query has one value for each parameter.
	Query map[string]string
	// Headers have names in lower case and one value each.
	Headers map[string]string
	// Claims are the claims of the request's token: paths joined by dots, and the values of lists.
	Claims map[string][]string
}

// header returns a header or pseudo header.
func (r Request) header(name string) (value string, ok bool) {
	switch name = strings.ToLower(name); name {
	case ":method":
		return r.Method, true
	case ":authority":
		return r.Authority, true
	case ":scheme":
		return r.Scheme, true
	case ":path":
		return r.Path, true
	}
	value, ok = r.Headers[name]
	return value, ok
}

// host is the authority without its port, in lower case.
func (r Request) host() string {
	name, _ := r.split()
	return strings.ToLower(name)
}

// split returns the authority as the client wrote it: the name, and the port with its
// colon, if there is one.
func (r Request) split() (name, port string) {
	if i := strings.LastIndexByte(r.Authority, ':'); i > strings.LastIndexByte(r.Authority, ']') {
		return r.Authority[:i], r.Authority[i:]
	}
	return r.Authority, ""
}

// Outcome is the outcome of a request.
type Outcome struct {
	// Targets have the shares of clusters; none if the client answers itself.
	Targets map[string]uint32
	// Status is that of the client's own answer; 404 if there is no route.
	Status         uint32
	Body, Location string
	// Path and Host are those of the forwarded request. Compare hosts by HostOf.
	Path, Host string
	// Hosts are in place of Host for some targets.
	Hosts map[string]string
	// Timeout is the time limit for the response. Zero means no limit.
	Timeout time.Duration
	// Retries is how often a request is tried again, on the conditions RetryOn.
	Retries uint32
	RetryOn string
	// Mirrors have the shares of copies, in millionths.
	Mirrors map[string]uint32
	// Fault is the injected fault.
	Fault string
	// Headers are the operations on headers, with the cluster of each.
	Headers []string
}

// HostOf returns the host of a request that is forwarded to a cluster.
func (o Outcome) HostOf(cluster string) string {
	if h := o.Hosts[cluster]; h != "" {
		return h
	}
	return o.Host
}

// NoRoute is the outcome of requests without a matching route.
func NoRoute() Outcome { return Outcome{Status: 404} }

// String returns the outcome in one line.
func (o Outcome) String() string {
	var b strings.Builder
	for _, c := range slices.Sorted(maps.Keys(o.Targets)) {
		fmt.Fprintf(&b, "%s*%d ", c, o.Targets[c])
	}
	if o.Status != 0 {
		fmt.Fprintf(&b, "status %d %q %q ", o.Status, o.Location, o.Body)
	} else {
		fmt.Fprintf(&b, "as %s%s in %s, %d retries on %s, ", o.Host, o.Path, o.Timeout, o.Retries, o.RetryOn)
	}
	for _, c := range slices.Sorted(maps.Keys(o.Mirrors)) {
		fmt.Fprintf(&b, "mirror %s*%d ", c, o.Mirrors[c])
	}
	for _, c := range slices.Sorted(maps.Keys(o.Hosts)) {
		fmt.Fprintf(&b, "to %s as %s ", c, o.Hosts[c])
	}
	return b.String() + o.Fault + strings.Join(o.Headers, " ")
}
