// SPDX-License-Identifier: Apache-2.0

package ads_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	rbacv3 "github.com/envoyproxy/go-control-plane/envoy/config/rbac/v3"
	httprbac "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/rbac/v3"
	hcm "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/pilotkit/pilotkit/xdsupdate/ads"
	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
	"github.com/pilotkit/pilotkit/xdsupdate/xdstest"
)

// threads is how long routes wait for the threads of an Envoy that has accepted listeners.
const threads = 50 * time.Millisecond

// denying sets a listener that uses some route configurations, all of which deny paths.
func denying(name string, routes []string, paths ...string) change {
	return func(f *fixture) {
		f.t.Helper()
		rules := &rbacv3.RBAC{Action: rbacv3.RBAC_DENY, Policies: make(map[string]*rbacv3.Policy)}
		for _, path := range paths {
			rules.Policies[path] = &rbacv3.Policy{
				Permissions: []*rbacv3.Permission{{Rule: &rbacv3.Permission_Any{Any: true}}},
				Principals:  []*rbacv3.Principal{{Identifier: &rbacv3.Principal_Any{Any: true}}},
			}
		}
		config, err := anypb.New(&httprbac.RBAC{Rules: rules})
		if err != nil {
			f.t.Fatal(err)
		}
		var filters []proto.Message
		for _, r := range routes {
			m := &hcm.HttpConnectionManager{StatPrefix: name, RouteSpecifier: &hcm.HttpConnectionManager_Rds{
				Rds: &hcm.Rds{RouteConfigName: r, ConfigSource: adsSource()},
			}}
			if len(paths) > 0 {
				m.HttpFilters = []*hcm.HttpFilter{{Name: "rbac", ConfigType: &hcm.HttpFilter_TypedConfig{TypedConfig: config}}}
			}
			filters = append(filters, m)
		}
		listenerOf(name, filters...)(f)
	}
}

// TestTightened: routes come with the listeners that protect them: when these are in use if they
// reject more, and before them if they reject less. Routes of other listeners do not wait.
func TestTightened(t *testing.T) {
	begin := []change{clusters("a"), routes("r", "x", "a"), routes("s", "y", "a"), denying("l", []string{"r"}, "/old"), denying("k", []string{"s"})}
	policy := denying("l", []string{"r"}, "/old", "/new")
	phasesTest(t, ads.Options{}, begin, func(f *fixture, m *manual) {
		f.batch(policy, routes("r", "x", "a", "new", "a"), routes("s", "y", "a", "other", "a"))
		check(f.t, "a policy and routes", m.news(), []string{"LDS l", "RDS s"})
		check(f.t, "the others are accepted", m.accepts("RDS"), []string{})
		time.Sleep(time.Second)
		check(f.t, "the policy is not", m.news(), []string{})
		check(f.t, "the policy is accepted", m.accepts("LDS"), []string{})
		time.Sleep(threads - 1)
		check(f.t, "not by all threads", m.news(), []string{})
		time.Sleep(2 * time.Nanosecond)
		check(f.t, "by all threads", m.news(), []string{"RDS r"})
		m.acceptsAll()

		since := len(m.Responses())
		f.batch(denying("l", []string{"r"}, "/old"), routes("r", "x", "a"))
		check(f.t, "without both again", m.news(), []string{"LDS l", "RDS r"})
		check(f.t, "the first of them", received(m.Client, since)[0], "RDS r")
		m.acceptsAll()

		f.batch(policy)
		check(f.t, "a policy alone", m.news(), []string{"LDS l"})
		f.batch(routes("r", "x", "a", "new", "a"))
		check(f.t, "routes right behind it", m.news(), []string{})
		m.accepts("LDS")
		time.Sleep(threads + 1)
		check(f.t, "accepted", m.news(), []string{"RDS r"})
	})
}

// TestTightenedUnanswered: a listener that is not answered keeps routes back for
// Options.PhaseTimeout.
func TestTightenedUnanswered(t *testing.T) {
	for timeout, at := range map[time.Duration]time.Duration{0: 15 * time.Second, 2 * time.Second: 2 * time.Second, -1: 0} {
		t.Run(at.String(), func(t *testing.T) {
			begin := []change{clusters("a"), routes("r", "x", "a"), denying("l", []string{"r"})}
			phasesTest(t, ads.Options{PhaseTimeout: timeout}, begin, func(f *fixture, m *manual) {
				f.batch(denying("l", []string{"r"}, "/new"), routes("r", "x", "a", "new", "a"))
				news := m.news()
				if at > 0 {
					check(f.t, "at once", news, []string{"LDS l"})
					time.Sleep(at - 1)
					check(f.t, "before the time-out", m.news(), []string{})
					time.Sleep(2 * time.Nanosecond)
					news = append(news, m.news()...)
				}
				check(f.t, "in the end", news, []string{"LDS l", "RDS r"})
			})
		})
	}
}

// TestTightenedNewRoutes: a listener that rejects more and needs routes that the client does not
// have gets these at once, and only then is in use.
func TestTightenedNewRoutes(t *testing.T) {
	begin := []change{clusters("a"), routes("r", "x", "a"), denying("l", []string{"r"})}
	phasesTest(t, ads.Options{}, begin, func(f *fixture, m *manual) {
		f.batch(denying("l", []string{"r", "t"}, "/new"), routes("r", "x", "a", "new", "a"), routes("t", "y", "a"))
		check(f.t, "at once", m.news(), []string{"LDS l"})
		f.subscribe(m.Client, envoy.RouteType, "r", "s", "t")
		check(f.t, "what the listener needs", m.news(), []string{"RDS t"})
		check(f.t, "the listener waits for its routes", m.accepts("LDS"), []string{})
		time.Sleep(time.Second)
		check(f.t, "and nothing else comes", m.news(), []string{})
		m.accepts("RDS")
		time.Sleep(threads + 1)
		check(f.t, "the listener is in use", m.news(), []string{"RDS r"})
	})
}

// TestTightenedRefused: a client that rejects a stricter listener keeps the routes of that
// listener, without a time limit; WaitApplied does not wait for them, all other resources come, and
// the routes follow when the client accepts a state that is strict enough, or the policy is
// removed.
func TestTightenedRefused(t *testing.T) {
	for name, end := range map[string]change{
		"mended":     denying("l", []string{"r"}, "/new", "/more"),
		"taken back": denying("l", []string{"r"}),
	} {
		for protocol, delta := range protocols() {
			t.Run(name+"/"+protocol, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					f := serveDiscovery(t, ads.Options{}, nil)
					f.batch(clusters("a"), routes("r", "x", "a"), routes("s", "y", "a"), denying("l", []string{"r"}), denying("k", []string{"s"}))
					c := f.client(xdstest.ClientOptions{Delta: delta, Node: node("a", "shop"), Answer: func(r xdstest.Response) error {
						if slices.ContainsFunc(r.Resources, tooStrict) {
							return errors.New("l: not this one")
						}
						return nil
					}})
					f.subscribe(c, envoy.ClusterType)
					f.subscribe(c, envoy.ListenerType)
					f.subscribe(c, envoy.RouteType, "r", "s")
					f.waitApplied()
					since := len(c.Responses())
					f.batch(denying("l", []string{"r"}, "/new"), routes("r", "x", "a", "new", "a"))
					if err := f.WaitApplied(waiting(t), nil); !errors.Is(err, ads.ErrRejected) {
						t.Errorf("got %v, want %v", err, ads.ErrRejected)
					}
					f.batch(clusters("b"), routes("s", "y", "b"))
					time.Sleep(20 * time.Second) // longer than PhaseTimeout
					f.batch(clusters("c"), routes("s", "y", "c"))
					_ = f.WaitApplied(waiting(t), nil)
					check(t, "routes while it refuses", routesIn(received(c, since)), []string{"RDS s", "RDS s"})

					f.batch(end)
					if err := f.WaitApplied(waiting(t), nil); err != nil {
						t.Errorf("in the end: %v", err)
					}
					check(t, "routes in the end", routesIn(received(c, since)), []string{"RDS s", "RDS s", "RDS r"})
				})
			})
		}
	}
}

// tooStrict reports whether a resource is a listener that denies /new, and not /more.
func tooStrict(r xdstest.Resource) bool {
	value := string(r.Any.GetValue())
	return r.Name == "l" && strings.Contains(value, "/new") && !strings.Contains(value, "/more")
}

// waiting bounds a wait; time goes on in the bubble.
func waiting(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), testTimeout)
	t.Cleanup(cancel)
	return ctx
}

func routesIn(received []string) []string {
	return slices.DeleteFunc(received, func(s string) bool { return !strings.HasPrefix(s, "RDS") })
}
