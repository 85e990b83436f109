// SPDX-License-Identifier: Apache-2.0

package traffic_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	httprbac "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/rbac/v3"
	hcm "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/istio"
	"github.com/pilotkit/pilotkit/internal/test/histories"
	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic"
	"github.com/pilotkit/pilotkit/xdsupdate/xdstest"
)

// guardHistory is what the listeners of a router were to be guarded by, at each moment.
type guardHistory struct {
	mu sync.Mutex
	// moments have the guards by listener: the policies, each with its version.
	moments []map[string]string
	// seen are the moments that a client has seen the guards of, by listener.
	seen map[string]int
}

// guardsOf returns the policies that a listener asks of requests, and whether there is such a listener.
func guardsOf(l *listenerv3.Listener) (guards string, err error) {
	var names []string
	for _, f := range l.GetFilterChains()[0].GetFilters() {
		m := &hcm.HttpConnectionManager{}
		if f.GetTypedConfig().UnmarshalTo(m) != nil {
			continue
		}
		for _, h := range m.GetHttpFilters() {
			rbac := &httprbac.RBAC{}
			if h.GetTypedConfig().UnmarshalTo(rbac) != nil {
				continue
			}
			for name, p := range rbac.GetRules().GetPolicies() {
				path := p.GetPermissions()[0].GetUrlPath().GetPath().GetExact()
				if path == "" {
					return "", fmt.Errorf("%s has no path: %v", name, p)
				}
				names = append(names, name+path)
			}
		}
	}
	slices.Sort(names)
	return strings.Join(names, " "), nil
}

// check fails if the guards of a listener are those of no moment since the one that the client has seen.
func (h *guardHistory) check(name, guards string) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	for i := h.seen[name]; i < len(h.moments); i++ {
		if wanted, ok := h.moments[i][name]; ok && wanted == guards {
			h.seen[name] = i
			return nil
		}
	}
	return fmt.Errorf("%s is guarded by %q, as at no moment since %d of %d", name, guards, h.seen[name], len(h.moments))
}

func (h *guardHistory) add(moment map[string]string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.moments = append(h.moments, moment)
}

// guardModel is what is in the store: the ports that are served, and versions of policies by "namespace/name".
type guardModel struct {
	*rand.Rand
	ports    map[int]bool
	policies map[string]int
	version  int
}

func (m *guardModel) moment() map[string]string {
	var names []string
	for key, version := range m.policies {
		namespace, name, _ := strings.Cut(key, "/")
		if namespace != "other" {
			names = append(names, fmt.Sprintf("ns[%s]-policy[%s]-rule[0]/v%d", namespace, name, version))
		}
	}
	slices.Sort(names)
	out := make(map[string]string)
	for port := range m.ports {
		out[fmt.Sprintf("0.0.0.0_%d", port)] = strings.Join(names, " ")
	}
	return out
}

// change returns a batch: some ports and policies come, change and go.
func (m *guardModel) change(tb testing.TB) (batch []configstore.Mutation) {
	tb.Helper()
	put := func(text string) {
		batch = append(batch, configstore.Mutation{Op: configstore.OpUpsert, Config: *objectsOf(tb, text)[0]})
	}
	remove := func(kind configstore.GroupVersionKind, namespace, name string) {
		batch = append(batch, configstore.Mutation{Op: configstore.OpDelete, Config: configstore.Config{Meta: configstore.Meta{GroupVersionKind: kind, Namespace: namespace, Name: name}}})
	}
	for _, port := range []int{80, 81} {
		switch m.IntN(4) {
		case 0:
			if !m.ports[port] {
				m.ports[port] = true
				put(fmt.Sprintf(`Gateway ingress/g%d {"selector": {"app": "edge"}, "servers": [{"hosts": ["*"], "port": {"number": %[1]d, "name": "http", "protocol": "HTTP"}}]}`, port))
				put(fmt.Sprintf(`VirtualService ingress/v%d {"hosts": ["*"], "gateways": ["g%[1]d"], "http": [{"directResponse": {"status": 200}}]}`, port))
			}
		case 1:
			if m.ports[port] {
				delete(m.ports, port)
				remove(istio.Gateway, "ingress", fmt.Sprint("g", port))
				remove(istio.VirtualService, "ingress", fmt.Sprint("v", port))
			}
		}
	}
	for _, key := range []string{"ingress/a", "ingress/b", "istio-system/a", "other/a"} {
		namespace, name, _ := strings.Cut(key, "/")
		switch m.IntN(4) {
		case 0:
			m.version++
			m.policies[key] = m.version
			put(fmt.Sprintf(`AuthorizationPolicy %s {"action": "DENY", "rules": [{"to": [{"operation": {"paths": ["/v%d"]}}]}]}`, key, m.version))
		case 1:
			if m.policies[key] != 0 {
				delete(m.policies, key)
				remove(istio.AuthorizationPolicy, namespace, name)
			}
		}
	}
	m.Shuffle(len(batch), func(i, j int) { batch[i], batch[j] = batch[j], batch[i] })
	return batch
}

// TestPoliciesInAnyOrder: a listener is never sent but with the policies of one moment, in the order of moments, however
// they come, change and go, together with it or apart; also to a client that was away meanwhile, by both protocols.
func TestPoliciesInAnyOrder(t *testing.T) {
	t.Parallel()
	received := 0
	for _, seed := range histories.Seeds(t, 20) {
		s := stage(t, traffic.Options{}, nil, populate())
		m := &guardModel{Rand: rand.New(rand.NewPCG(seed, 27)), ports: map[int]bool{}, policies: map[string]int{}}
		h := &guardHistory{moments: []map[string]string{{}}, seen: map[string]int{}}
		node := s.numbered(edge())
		c := xdstest.NewClient(s.conn, xdstest.ClientOptions{Node: node, Delta: seed%2 == 0, Answer: func(r xdstest.Response) error {
			if r.TypeURL != envoy.ListenerType {
				return nil
			}
			for _, resource := range r.Resources {
				message, err := resource.Message()
				l, _ := message.(*listenerv3.Listener)
				guards := ""
				if err == nil {
					guards, err = guardsOf(l)
				}
				if err == nil {
					err = h.check(l.GetName(), guards)
				}
				if err != nil {
					t.Errorf("history %d: %v", seed, err)
				}
				received++
			}
			return nil
		}})
		s.must(c.Connect(t.Context()))
		s.must(c.Subscribe(envoy.ClusterType, "*"))
		s.must(c.Subscribe(envoy.ListenerType, "*"))
		away := false
		for range 60 {
			batch := m.change(t)
			h.add(m.moment())
			_, err := s.store.Apply(batch...)
			s.must(err)
			s.store.Drain() // and the server pushes when it likes
			switch {
			case m.IntN(8) == 0 && !away:
				c.Close()
				away = true
			case m.IntN(2) == 0 && away:
				s.must(c.Connect(t.Context()))
				away = false
			}
		}
		if away {
			s.must(c.Connect(t.Context()))
		}
		s.store.Drain()
		last := m.moment()
		s.await(c, func(state xdstest.State) bool {
			have := state.Resources(envoy.ListenerType)
			if len(have) != len(last) {
				return false
			}
			for name, r := range have {
				message, _ := r.Message()
				if guards, err := guardsOf(message.(*listenerv3.Listener)); err != nil || guards != last[name] {
					return false
				}
			}
			return true
		})
		c.Close()
		s.close()
	}
	if received == 0 { // how many a client sees of a history depends on how fast it is
		t.Error("no listeners were sent")
	}
}

// TestPolicyReaches: one policy that comes, and nothing else, changes the listeners of the proxies that it counts for: those of
// its namespace or, if that is the root namespace, of all.
func TestPolicyReaches(t *testing.T) {
	t.Parallel()
	s := stage(t, traffic.Options{}, nil, populate())
	apply := func(text string) {
		for _, c := range objectsOf(t, text) {
			_, err := s.store.Apply(configstore.Mutation{Op: configstore.OpUpsert, Config: *c})
			s.must(err)
		}
		s.store.Drain()
	}
	apply(`Gateway ingress/g {"selector": {"app": "edge"}, "servers": [{"hosts": ["*"], "port": {"number": 80, "name": "http", "protocol": "HTTP"}}]}`)
	apply(`VirtualService ingress/v {"hosts": ["*"], "gateways": ["g"], "http": [{"directResponse": {"status": 200}}]}`)
	c := xdstest.NewClient(s.conn, xdstest.ClientOptions{Node: s.numbered(edge())})
	defer c.Close()
	s.must(c.Connect(t.Context()))
	s.must(c.Subscribe(envoy.ListenerType, "*"))
	guardedBy := func(want string) {
		s.await(c, func(state xdstest.State) bool {
			r, there := state.Resources(envoy.ListenerType)["0.0.0.0_80"]
			if !there {
				return false
			}
			message, _ := r.Message()
			got, err := guardsOf(message.(*listenerv3.Listener))
			return err == nil && got == want
		})
	}
	guardedBy("")
	for i, namespace := range []string{"istio-system", "ingress"} {
		apply(fmt.Sprintf(`AuthorizationPolicy %s/a {"action": "DENY", "rules": [{"to": [{"operation": {"paths": ["/v%d"]}}]}]}`, namespace, i))
		m := &guardModel{ports: map[int]bool{80: true}, policies: map[string]int{}}
		for j, before := range []string{"istio-system/a", "ingress/a"}[:i+1] {
			m.policies[before] = j
		}
		guardedBy(m.moment()["0.0.0.0_80"])
	}
}
