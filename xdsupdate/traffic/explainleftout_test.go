// SPDX-License-Identifier: Apache-2.0

package traffic_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic"
	"github.com/pilotkit/pilotkit/xdsupdate/xdstest"
)

// TestExplainLeftOutAtServers: a policy with which a gRPC server refuses its listener is left out of what is explained, as of what the server is
// sent: it denies everything, or allows nothing, and is named. It is as it says for servers that do not refuse it.
func TestExplainLeftOutAtServers(t *testing.T) {
	t.Parallel()
	const name = "xds.istio.io/grpc/lds/inbound/10.0.0.1:8080"
	rules := func(action, header string) string {
		return `{"action": "` + action + `", "rules": [{"when": [{"key": "request.headers[` + header + `]", "values": ["1"]}]}]}`
	}
	const good = `AuthorizationPolicy shop/good {"rules": [{"to": [{"operation": {"paths": ["/pkg.Cart/Add"]}}]}]}`
	for action, want := range map[string]struct{ left, whole string }{
		"DENY": {
			"denied (PERMISSION_DENIED): a rule denies it (AuthorizationPolicy shop/bad, spec.rules[0]); identity none, token none",
			"allowed: a rule allows it (AuthorizationPolicy shop/good, spec.rules[0]); identity none, token none",
		},
		"ALLOW": {
			"allowed: a rule allows it (AuthorizationPolicy shop/good, spec.rules[0]); identity none, token none",
			"allowed: a rule allows it (AuthorizationPolicy shop/good, spec.rules[0]); identity none, token none",
		},
	} {
		t.Run(action, func(t *testing.T) {
			t.Parallel()
			s := decisionScene(t, good, "AuthorizationPolicy shop/bad "+rules(action, "x-refused"))
			node := at(in("grpc", "shop"), "10.0.0.1")
			view, other := s.view(node), s.view(at(in("grpc", "shop"), "10.0.0.2"))
			c := xdstest.NewClient(s.conn, xdstest.ClientOptions{Node: node, Answer: func(r xdstest.Response) error {
				for _, resource := range r.Resources {
					m, err := resource.Message()
					if err != nil || strings.Contains(m.(interface{ String() string }).String(), "x-refused") {
						return errors.Join(err, errors.New("no such header"))
					}
				}
				return nil
			}})
			s.must(c.Connect(t.Context()))
			t.Cleanup(c.Close)
			s.must(c.Subscribe(envoy.ListenerType, name))
			s.await(c, func(st xdstest.State) bool { return len(st.Resources(envoy.ListenerType)) > 0 })

			s.knowsLeftOut("AuthorizationPolicy/shop/bad")
			call := traffic.Call{Port: 8080, Inbound: true, Path: "/pkg.Cart/Add"}
			got := s.policies.Explain(view, call).String()
			if !strings.Contains(got, want.left) || !strings.Contains(got, "AuthorizationPolicy/shop/bad is left out of listener "+name) {
				t.Errorf("explained:\n%s", got)
			}
			if got = s.policies.Explain(other, traffic.Call{Port: 8080, Inbound: true, Path: "/pkg.Cart/Add", Principal: "td1/ns/a/sa/b"}).String(); strings.Contains(got, "left out") {
				t.Errorf("of a server that refuses nothing:\n%s", got)
			}
			s.change(objectsOf(t, "AuthorizationPolicy shop/bad "+rules(action, "x-taken")))
			s.applied()
			if got = s.policies.Explain(view, call).String(); !strings.Contains(got, want.whole) || strings.Contains(got, "left out") {
				t.Errorf("explained once it is mended:\n%s", got)
			}
		})
	}
}

// knowsLeftOut waits until the server has found the object with which a client refuses what it is sent.
func (s *scene) knowsLeftOut(object string) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), testTimeout)
	defer cancel()
	for {
		err := s.server.WaitApplied(ctx, nil)
		if err != nil && strings.Contains(err.Error(), object+" is left out") {
			return
		}
		if ctx.Err() != nil {
			s.t.Fatalf("%s is not left out: %v", object, err)
		}
	}
}
