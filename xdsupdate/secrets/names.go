// SPDX-License-Identifier: Apache-2.0

package secrets

import (
	"iter"
	"maps"
	"slices"

	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	"google.golang.org/protobuf/proto"

	"github.com/pilotkit/pilotkit/xdsupdate"
	"github.com/pilotkit/pilotkit/xdsupdate/ads"
	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
)

// names are the resource names that proxies may subscribe to. It is immutable. The secrets are
// looked up when a proxy subscribes to a name.
type names struct {
	store *store
	of    map[string]struct{}
}

var _ ads.Provided = (*names)(nil)

// Names implements ads.Provided.
func (n *names) Names(view ads.View, typeURL string) (iter.Seq[string], bool) {
	if !serves(view, typeURL) {
		return nil, false
	}
	return maps.Keys(n.of), false
}

// Covers implements ads.Provided.
func (n *names) Covers(view ads.View, typeURL, name string) (covered, only bool) {
	_, covered = n.of[name]
	return covered && serves(view, typeURL), false
}

// serves reports whether proxies of a view may have resources of a type: gRPC clients have no SDS.
func serves(view ads.View, typeURL string) bool {
	return typeURL == Type && view.Client == envoy.ForEnvoy
}

// Lookup implements ads.Provided.
func (n *names) Lookup(view ads.View, typeURL, name string) ads.Answer {
	if covered, _ := n.Covers(view, typeURL, name); !covered {
		return ads.Answer{Next: true}
	}
	return ads.Answer{Share: view.Namespace, Build: func() (proto.Message, error) {
		m, err := n.store.message(view.Namespace, name)
		if m == nil {
			return nil, err
		}
		return m, nil
	}}
}

// message returns the resource for a name that a proxy of a namespace subscribes to, nil if there is
// none.
func (s *store) message(namespace, resource string) (*tlsv3.Secret, error) {
	r, ok := newRequest(namespace, resource)
	if !ok || !r.allowed(namespace, s.allowed) {
		return nil, nil
	}
	return r.message(resource, s)
}

// renamed returns the names that only one of two sets has.
func (n *names) renamed(next *names) (out []ads.ChangedName) {
	for _, sets := range [][2]*names{{n, next}, {next, n}} {
		for name := range sets[0].of {
			if _, both := sets[1].of[name]; !both {
				out = append(out, ads.ChangedName{TypeURL: Type, Name: name})
			}
		}
	}
	return out
}

// anyNamespace is a placeholder for the proxy's namespace where only names matter.
const anyNamespace = "*"

// used returns a function that reports whether some resource name may resolve to a secret, by the
// secret's name.
func (n *names) used() func(Name) bool {
	used := make(map[string]struct{})
	for resource := range n.of {
		r, _ := newRequest(anyNamespace, resource)
		for _, of := range r.of {
			used[of.Name] = struct{}{}
		}
	}
	return func(of Name) bool { _, ok := used[of.Name]; return ok }
}

// changed returns the resource names that may resolve to a secret in a push request, each in the
// views where it does.
func (n *names) changed(req *xdsupdate.PushRequest) (out []ads.ChangedName) {
	changed, named := make(map[Name]struct{}), make(map[string]struct{})
	for key := range req.ConfigsUpdated {
		if key.Kind == Kind() {
			changed[Name{key.Namespace, key.Name}], named[key.Name] = struct{}{}, struct{}{}
		}
	}
	if len(changed) == 0 {
		return nil
	}
	// Files without a namespace are for proxies of every namespace.
	isChanged := func(of Name) bool {
		_, own := changed[of]
		_, shared := changed[Name{Name: of.Name}]
		return own || shared
	}
	for resource := range n.of {
		r, _ := newRequest(anyNamespace, resource)
		if !slices.ContainsFunc(r.of, func(of Name) bool { _, ok := named[of.Name]; return ok }) {
			continue
		}
		out = append(out, ads.ChangedName{TypeURL: Type, Name: resource, In: func(v ads.View) bool {
			r, _ := newRequest(v.Namespace, resource)
			return slices.ContainsFunc(r.of, isChanged)
		}})
	}
	return out
}
