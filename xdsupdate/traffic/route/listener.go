// SPDX-License-Identifier: Apache-2.0

package route

import (
	"cmp"
	"net/netip"
	"slices"
	"strings"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
)

// Listener is a compiled listener. It is immutable and safe for concurrent use.
type Listener struct {
	// Bind is the address that it listens on. It is invalid for a Unix domain socket. Port is its
	// port.
	Bind netip.Addr
	Port uint32
	// TLS says that it reads the server name of TLS handshakes.
	TLS bool
	// api is the chain of the listener of a gRPC client.
	api          *lazy[*chain]
	destinations []addressed[*names]
}

// addressed is what connections of an address range get. The ranges of a list are sorted, the
// longest first. An invalid range contains every address.
type addressed[V any] struct {
	in netip.Prefix
	of V
}

// names are the filter chains of one destination range by server name.
type names struct {
	exact map[string]*sources
	// suffixes are the names behind wildcards, such as ".example.com".
	suffixes map[string]*sources
	others   *sources
}

// sources are the filter chains of one server name by source range. Chains that are restricted to
// application protocols come last.
type sources struct{ plain, protocols []addressed[*lazy[*chain]] }

// NewListener compiles a listener. Filter chains are compiled with their first connection. One that
// cannot be evaluated denies its connections (Unsupported). It returns nil for nil.
func NewListener(made Made) *Listener {
	l, _ := made.Message.(*listenerv3.Listener)
	if l == nil {
		return nil
	}
	out := &Listener{Port: l.GetAddress().GetSocketAddress().GetPortValue()}
	out.Bind, _ = netip.ParseAddr(l.GetAddress().GetSocketAddress().GetAddress())
	out.TLS = slices.ContainsFunc(l.GetListenerFilters(), func(f *listenerv3.ListenerFilter) bool {
		return f.GetName() == "envoy.filters.listener.tls_inspector"
	})
	if api := l.GetApiListener().GetApiListener(); api != nil {
		out.api = lazyChain(&listenerv3.FilterChain{Filters: []*listenerv3.Filter{{ConfigType: &listenerv3.Filter_TypedConfig{TypedConfig: api}}}}, Origin{})
	}
	for i, f := range l.GetFilterChains() {
		out.add(f, lazyChain(f, at(made.Chains, i)))
	}
	return out
}

func lazyChain(f *listenerv3.FilterChain, origin Origin) *lazy[*chain] {
	return newLazy(func() *chain { return newChain(f, origin) })
}

// add adds a filter chain for all of its matches.
func (l *Listener) add(f *listenerv3.FilterChain, c *lazy[*chain]) {
	m := f.GetFilterChainMatch()
	for _, d := range prefixes(m.GetPrefixRanges()) {
		at := put(&l.destinations, d, func() *names {
			return &names{exact: make(map[string]*sources), suffixes: make(map[string]*sources)}
		})
		for _, s := range at.named(m.GetServerNames()) {
			list := &s.plain
			if len(m.GetApplicationProtocols()) > 0 {
				list = &s.protocols
			}
			for _, source := range prefixes(m.GetSourcePrefixRanges()) {
				put(list, source, func() *lazy[*chain] { return c })
			}
		}
	}
}

// named returns the entries of server names, which it makes if necessary.
func (n *names) named(list []string) (out []*sources) {
	entry := func(of map[string]*sources, name string) {
		if of[name] == nil {
			of[name] = &sources{}
		}
		out = append(out, of[name])
	}
	for _, name := range list {
		if suffix, wildcard := strings.CutPrefix(name, "*"); wildcard {
			entry(n.suffixes, suffix)
		} else {
			entry(n.exact, name)
		}
	}
	if len(list) == 0 {
		if n.others == nil {
			n.others = &sources{}
		}
		out = append(out, n.others)
	}
	return out
}

// put returns the value of a range, which it makes if necessary.
func put[V any](list *[]addressed[V], in netip.Prefix, build func() V) V {
	i, found := slices.BinarySearchFunc(*list, in, func(a addressed[V], p netip.Prefix) int {
		return cmp.Or(cmp.Compare(p.Bits(), a.in.Bits()), p.Addr().Compare(a.in.Addr()))
	})
	if !found {
		*list = slices.Insert(*list, i, addressed[V]{in, build()})
	}
	return (*list)[i].of
}

// longest returns the value of the longest range with an address.
func longest[V any](list []addressed[V], c *call, a netip.Addr, attribute string) (v V, ok bool) {
	for _, e := range list {
		if !e.in.IsValid() || c.within(e.in, a, attribute) {
			return e.of, true
		}
	}
	return v, false
}

// prefixes returns ranges, or the range of all addresses if there are none.
func prefixes(list []*core.CidrRange) []netip.Prefix {
	if len(list) == 0 {
		return []netip.Prefix{{}}
	}
	out := make([]netip.Prefix, len(list))
	for i, r := range list {
		out[i] = prefixOf(r)
	}
	return out
}

// chainFor returns the filter chain that Envoy chooses for a connection: by destination address,
// then by server name, then by source address. The most specific match of each step counts, and
// Envoy does not backtrack to an earlier step. Nil means that the connection is closed.
func (l *Listener) chainFor(c *call) *lazy[*chain] {
	if l.api != nil {
		return l.api
	}
	at, ok := longest(l.destinations, c, c.Destination, "destination.ip")
	if !ok {
		return nil
	}
	s := at.find(c.ServerName)
	if s == nil {
		return nil
	}
	list := s.plain
	if len(list) == 0 {
		list = s.protocols
	}
	found, _ := longest(list, c, c.Source, "source.ip")
	return found
}

// find returns the entry of a server name: its own, or that of its longest suffix behind a
// wildcard, or that of all names.
func (n *names) find(name string) *sources {
	if name != "" {
		if s := n.exact[name]; s != nil {
			return s
		}
		if len(n.suffixes) > 0 {
			for i := 1; i < len(name); i++ {
				if s := n.suffixes[name[i:]]; s != nil {
					return s
				}
			}
		}
	}
	return n.others
}

// Route decides about a request of a connection to the listener. Routes returns the route
// configurations by name, or nil; it is called at most once. The port of the request is the
// listener's.
func (l *Listener) Route(r Request, routes func(name string) *Table) Decision {
	c := newCall(r)
	c.Port = l.Port
	if l.TLS {
		c.ServerName = asciiLower(c.ServerName)
	} else {
		c.ServerName = "" // nobody reads it
	}
	var d Decision
	if x := l.chainFor(c); x != nil {
		x.get().decide(c, &d, routes)
	} else {
		d.Outcome, d.Reason = Closed, NoFilterChain
	}
	d.Access.Unknown = append(c.unknown, d.Access.Unknown...)
	return d
}

// newCall returns a call with the defaults of the fields of its request.
func newCall(r Request) *call {
	c := &call{Request: r}
	c.Method, c.Path = cmp.Or(r.Method, "GET"), cmp.Or(r.Path, "/")
	if r.Scheme == "" {
		if c.Scheme = "http"; r.TLS {
			c.Scheme = "https"
		}
	}
	c.Source, c.Destination, c.Remote = r.Source.Unmap(), r.Destination.Unmap(), r.Remote.Unmap()
	if !c.Remote.IsValid() {
		c.Remote = c.Source
	}
	return c
}
