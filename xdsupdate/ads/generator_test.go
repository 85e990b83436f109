// SPDX-License-Identifier: Apache-2.0

package ads_test

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	"go.uber.org/atomic"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/pilotkit/pilotkit/xdsupdate"
	"github.com/pilotkit/pilotkit/xdsupdate/ads"
	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
	"github.com/pilotkit/pilotkit/xdsupdate/xdstest"
)

// scripted is a generator that runs a function of the test.
type scripted struct {
	name string
	mu   sync.Mutex
	do   func(view ads.View, push *ads.PushContext, out *ads.Resources) error
	only func(push *ads.PushContext) func(ads.View) bool
	runs atomic.Int64
}

func (g *scripted) Name() string { return g.name }

func (g *scripted) Generate(view ads.View, push *ads.PushContext, out *ads.Resources) error {
	g.runs.Inc()
	g.mu.Lock()
	do := g.do
	g.mu.Unlock()
	if do == nil {
		return nil
	}
	return do(view, push, out)
}

func (g *scripted) Affected(push *ads.PushContext) func(ads.View) bool {
	if g.only == nil {
		return ads.EveryView
	}
	return g.only(push)
}

func (g *scripted) next(do func(view ads.View, push *ads.PushContext, out *ads.Resources) error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.do = do
}

// lockedBuffer is a log that tests read.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *lockedBuffer) take() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	defer b.b.Reset()
	return b.b.String()
}

// other asks for a push of something that is no service.
func (f *fixture) other() {
	f.ConfigUpdate(&xdsupdate.PushRequest{Full: true, ConfigsUpdated: xdsupdate.KeySet(xdsupdate.ConfigKey{Name: "x"})})
}

// texts are the strings that a client has.
func texts(c *xdstest.Client) map[string]string {
	out := make(map[string]string)
	for name, r := range c.State().Resources(customType) {
		m, err := r.Message()
		if err == nil {
			out[name] = m.(*wrapperspb.StringValue).GetValue()
		}
	}
	return out
}

// byValue is a generator that cannot be compared: a struct, not a pointer, with a
// function in it.
type byValue struct {
	do func(view ads.View, push *ads.PushContext, out *ads.Resources) error
}

func (byValue) Name() string { return "by value" }

func (byValue) Affected(*ads.PushContext) func(ads.View) bool { return ads.EveryView }

func (g byValue) Generate(view ads.View, push *ads.PushContext, out *ads.Resources) error {
	return g.do(view, push, out)
}

// TestGeneratorByValue: a generator need not be comparable to change and to delete its resources.
func TestGeneratorByValue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		steps := &scripted{do: func(_ ads.View, _ *ads.PushContext, out *ads.Resources) error {
			out.Set(customType, "a", wrapperspb.String("a1"))
			out.Set(customType, "b", wrapperspb.String("b1"))
			return nil
		}}
		f := serve(t, ads.Options{Generators: []ads.Generator{byValue{steps.Generate}}})
		c := f.client(xdstest.ClientOptions{Delta: true, Node: node("a", "shop")})
		f.subscribe(c, customType, "a", "b")
		f.await(c, customType, "a", "b")
		steps.next(func(_ ads.View, _ *ads.PushContext, out *ads.Resources) error {
			for name := range out.Names(customType) {
				out.Delete(customType, name)
			}
			out.Set(customType, "a", wrapperspb.String("a2"))
			return nil
		})
		f.other()
		f.waitApplied()
		check(t, "what the client has", texts(c), map[string]string{"a": "a2"})
	})
}

// TestGeneratorByName: a resource of a generator stays until the generator changes or deletes it. A
// resource that is set again by the same pointer is not sent.
func TestGeneratorByName(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		same := wrapperspb.String("same")
		g := &scripted{name: "g", do: func(_ ads.View, _ *ads.PushContext, out *ads.Resources) error {
			out.Set(customType, "a", same)
			out.Set(customType, "b", wrapperspb.String("b1"))
			return nil
		}}
		f := serve(t, ads.Options{Generators: []ads.Generator{g}})
		c := f.client(xdstest.ClientOptions{Delta: true, Node: node("a", "shop")})
		f.subscribe(c, customType, "a", "b", "c")
		f.await(c, customType, "a", "b")
		f.waitApplied()
		since := len(c.Responses())
		g.next(func(_ ads.View, _ *ads.PushContext, out *ads.Resources) error {
			out.Set(customType, "a", same)
			out.Set(customType, "c", wrapperspb.String("c1"))
			return nil
		})
		f.other()
		f.waitApplied()
		check(t, "one more", received(c, since), []string{customType + " c"})
		g.next(func(_ ads.View, _ *ads.PushContext, out *ads.Resources) error {
			var had []string
			for name := range out.Names(customType) {
				had = append(had, name)
			}
			if len(had) != 3 {
				return fmt.Errorf("it had set %q", had)
			}
			out.Delete(customType, "b")
			out.Delete(customType, "never set")
			return nil
		})
		since = len(c.Responses())
		f.other()
		f.waitApplied()
		check(t, "deleted", received(c, since), []string{customType + " -b"})
	})
}

// TestLazyResources are built if a client is subscribed to them, and once.
func TestLazyResources(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var built atomic.Int64
		lazy := func(text string) func() (proto.Message, error) {
			return func() (proto.Message, error) {
				built.Inc()
				return wrapperspb.String(text), nil
			}
		}
		g := &scripted{name: "g", do: func(_ ads.View, _ *ads.PushContext, out *ads.Resources) error {
			for i := range 100 {
				out.SetLazy(customType, fmt.Sprint(i), lazy("first"))
			}
			return nil
		}}
		f := serve(t, ads.Options{Generators: []ads.Generator{g}})
		for i := range 3 {
			c := f.client(xdstest.ClientOptions{Delta: true, Node: node(fmt.Sprint(i), "shop")})
			f.subscribe(c, customType, "7", "8")
			f.await(c, customType, "7", "8")
		}
		check(t, "built", built.Load(), int64(2))
		g.next(func(_ ads.View, _ *ads.PushContext, out *ads.Resources) error {
			out.SetLazy(customType, "7", lazy("second"))
			out.SetLazy(customType, "9", lazy("second"))
			return nil
		})
		f.other()
		f.waitApplied()
		check(t, "built", built.Load(), int64(3))
	})
}

// TestGeneratorErrors: errors are reported with the generator's name, and the last good resources
// stay.
func TestGeneratorErrors(t *testing.T) {
	bad := &clusterv3.Cluster{} // its name must not be empty
	for what, do := range map[string]func(_ ads.View, _ *ads.PushContext, out *ads.Resources) error{
		"an error": func(_ ads.View, _ *ads.PushContext, out *ads.Resources) error {
			out.Set(customType, "a", wrapperspb.String("lost"))
			return errors.New("an error")
		},
		"a panic": func(_ ads.View, _ *ads.PushContext, out *ads.Resources) error {
			out.Set(customType, "a", wrapperspb.String("lost"))
			panic("a panic")
		},
		"set twice": func(_ ads.View, _ *ads.PushContext, out *ads.Resources) error {
			out.Set(customType, "d", wrapperspb.String("first"))
			out.Set(customType, "d", wrapperspb.String("second"))
			return nil
		},
		"taken by generator": func(_ ads.View, _ *ads.PushContext, out *ads.Resources) error {
			out.Set(customType, "other's", wrapperspb.String("mine"))
			return nil
		},
		"invalid Cluster.Name": func(_ ads.View, _ *ads.PushContext, out *ads.Resources) error {
			out.Set(envoy.ClusterType, "a", bad)
			return nil
		},
		"lazily: invalid Cluster.Name": func(_ ads.View, _ *ads.PushContext, out *ads.Resources) error {
			out.SetLazy(customType, "a", func() (proto.Message, error) {
				err := bad.ValidateAll()
				return bad, fmt.Errorf("lazily: %w", err)
			})
			return nil
		},
		"panic: lazily": func(_ ads.View, _ *ads.PushContext, out *ads.Resources) error {
			out.SetLazy(customType, "a", func() (proto.Message, error) { panic("lazily") })
			return nil
		},
		"invalid UTF-8": func(_ ads.View, _ *ads.PushContext, out *ads.Resources) error {
			out.Set(customType, "a", wrapperspb.String("\xff"))
			return nil
		},
		"without a name": func(_ ads.View, _ *ads.PushContext, out *ads.Resources) error {
			out.Set(customType, "", wrapperspb.String("x"))
			return nil
		},
	} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var log lockedBuffer
				g := &scripted{name: "the-generator", do: func(_ ads.View, _ *ads.PushContext, out *ads.Resources) error {
					out.Set(customType, "a", wrapperspb.String("good"))
					return nil
				}}
				other := ads.GenerateAll("other", customType, func(ads.View, *ads.PushContext) ([]ads.Resource, error) {
					return []ads.Resource{{Name: "other's", Message: wrapperspb.String("other's")}}, nil
				})
				f := serve(t, ads.Options{Generators: []ads.Generator{other, g}, Logger: slog.New(slog.NewTextHandler(&log, nil))})
				c := f.client(xdstest.ClientOptions{Delta: true, Node: node("a", "shop")})
				f.subscribe(c, customType, "a", "other's", "d")
				f.await(c, customType, "a", "other's")
				log.take()
				g.next(do)
				f.other()
				f.waitApplied()
				said := log.take()
				if !strings.Contains(said, what) || !strings.Contains(said, customType) && !strings.Contains(said, "the-generator") {
					t.Errorf("log: %q", said)
				}
				// Later clients are sent the last good ones too.
				late := f.client(xdstest.ClientOptions{Delta: true, Node: node("b", "shop")})
				f.subscribe(late, customType, "a", "other's", "d")
				if err := late.Await(f.context(), func(s xdstest.State) bool { return s.Has(customType, "a", "other's") }); err != nil {
					t.Fatal(err)
				}
				f.waitApplied()
				for client, got := range map[string]map[string]string{"early": texts(c), "late": texts(late)} {
					want := map[string]string{"a": "good", "other's": "other's"}
					if what == "set twice" {
						want["d"] = "first"
					}
					check(t, client, got, want)
				}
			})
		})
	}
}

// TestGeneratorsOfConcern: a push costs a generator nothing for views that it does
// not concern.
func TestGeneratorsOfConcern(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := &scripted{name: "g", only: func(push *ads.PushContext) func(ads.View) bool {
			for key := range push.Request.ConfigsUpdated {
				if key.Name == "x" {
					return func(v ads.View) bool { return v.Namespace == "shop" }
				}
			}
			return nil
		}}
		f := serve(t, ads.Options{Generators: []ads.Generator{g}}, service("a", "shop"))
		f.flush()
		for _, namespace := range []string{"shop", "other"} {
			c := f.client(xdstest.ClientOptions{Delta: true, Node: node("a", namespace)})
			f.subscribe(c, envoy.ClusterType)
			f.await(c, envoy.ClusterType, cluster("a"))
		}
		check(t, "new views", g.runs.Load(), int64(2))
		f.eds("a", "shop", endpoint("10.0.0.1", 80))
		f.flush()
		check(t, "a push that concerns no view", g.runs.Load(), int64(2))
		f.other()
		f.flush()
		check(t, "a push that concerns one view", g.runs.Load(), int64(3))
	})
}

// TestGeneratedListenersUnderAWildcard: an Envoy that subscribes to all listeners is sent those of
// generators, in the order of names, and no API listeners.
func TestGeneratedListenersUnderAWildcard(t *testing.T) {
	for name, delta := range protocols() {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := &scripted{name: "g", do: func(_ ads.View, _ *ads.PushContext, out *ads.Resources) error {
					for _, name := range []string{"b", "a"} {
						out.Set(envoy.ListenerType, name, &listenerv3.Listener{Name: name})
					}
					return nil
				}}
				f := serve(t, ads.Options{Generators: []ads.Generator{g}}, service("svc", "shop"))
				f.flush()
				c := f.client(xdstest.ClientOptions{
					Delta: delta, Node: node("a", "shop"), Answer: func(xdstest.Response) error { return nil }, // which are names only
				})
				f.subscribe(c, envoy.ListenerType)
				f.await(c, envoy.ListenerType, "a", "b")
				check(t, "in order", received(c, 0), []string{"LDS a", "LDS b"})
				g.next(func(_ ads.View, _ *ads.PushContext, out *ads.Resources) error {
					out.Delete(envoy.ListenerType, "a")
					out.Set(envoy.ListenerType, "c", &listenerv3.Listener{Name: "c"})
					return nil
				})
				f.other()
				f.await(c, envoy.ListenerType, "b", "c")
			})
		})
	}
}

// TestHiddenClusterComesBack: the assignment comes with the cluster, although the client does not
// subscribe again.
func TestHiddenClusterComesBack(t *testing.T) {
	for name, delta := range protocols() {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := &scripted{name: "g"}
				f := serve(t, ads.Options{Generators: []ads.Generator{g}}, service("a", "shop"), service("b", "shop"))
				f.eds("a", "shop", endpoint("10.0.0.1", 80))
				f.flush()
				c := f.client(xdstest.ClientOptions{Delta: delta, Node: node("a", "shop")})
				f.subscribe(c, envoy.ClusterType)
				f.await(c, envoy.ClusterType, cluster("a"), cluster("b"))
				f.subscribe(c, envoy.LoadAssignmentType, cluster("a"))
				f.await(c, envoy.LoadAssignmentType, cluster("a"))
				g.next(func(_ ads.View, _ *ads.PushContext, out *ads.Resources) error {
					out.Hide(envoy.ClusterType, cluster("a"))
					return nil
				})
				f.other()
				f.await(c, envoy.ClusterType, cluster("b"))
				f.waitApplied()
				since := len(c.Responses())
				g.next(func(_ ads.View, _ *ads.PushContext, out *ads.Resources) error {
					out.Delete(envoy.ClusterType, cluster("a"))
					return nil
				})
				f.other()
				f.await(c, envoy.ClusterType, cluster("a"), cluster("b"))
				f.waitApplied()
				got := received(c, since)
				if got[0] != "CDS "+cluster("a") || got[len(got)-1] != "EDS "+cluster("a") {
					t.Errorf("received %q", got)
				}
				check(t, "addresses", addressesOf(t, c, "a"), []string{"10.0.0.1"})
			})
		})
	}
}

// TestTwoGeneratorsOfOneName are a mistake of the program.
func TestTwoGeneratorsOfOneName(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("New does not panic")
		}
	}()
	ads.New(&services{}, ads.Options{Generators: []ads.Generator{&scripted{name: "g"}, &scripted{name: "g"}}})
}
