// SPDX-License-Identifier: Apache-2.0

package ads_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/pilotkit/pilotkit/xdsupdate/ads"
	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
	"github.com/pilotkit/pilotkit/xdsupdate/xdstest"
)

// exceeded collects which limits streams have exceeded.
type exceeded struct {
	ads.NoObserver
	limits chan ads.Limit
}

func (e exceeded) StreamClosed(_ ads.Stream, err error) { e.note(err) }

func (e exceeded) StreamRefused(_ ads.Stream, err error) { e.note(err) }

func (e exceeded) note(err error) {
	if limit, ok := errors.AsType[*ads.LimitError](err); ok {
		e.limits <- limit.Limit
	}
}

// TestLimits: a stream that exceeds a limit is ended with a text that names it, and
// others are not.
func TestLimits(t *testing.T) {
	limitOf := map[string]ads.Limit{
		"more than 1 streams": ads.LimitStreams, "more than 1 streams of node": ads.LimitStreamsPerNode,
		"more than 2 resources subscribed by name":                ads.LimitNames,
		"more than 3 resources subscribed by name by all clients": ads.LimitAllNames,
		"bytes, more than 400":                                    ads.LimitRequestBytes,
		"more than 0.001 requests a second":                       ads.LimitRequestsPerSecond,
	}
	for what, limits := range map[string]ads.Limits{
		"more than 1 streams":                                     {Streams: 1},
		"more than 1 streams of node":                             {StreamsPerNode: 1},
		"more than 2 resources subscribed by name":                {Names: 2},
		"more than 3 resources subscribed by name by all clients": {AllNames: 3},
		"bytes, more than 400":                                    {RequestBytes: 400},
		"more than 0.001 requests a second":                       {RequestsPerSecond: 0.001, RequestBurst: 6},
	} {
		for name, delta := range protocols() {
			t.Run(what+"/"+name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					told := exceeded{limits: make(chan ads.Limit, 10)}
					f := serve(t, ads.Options{Limits: limits, Observer: told}, service("a", "shop"), service("b", "shop"))
					f.flush()
					good := f.client(xdstest.ClientOptions{Delta: delta, Node: node("a", "shop")})
					f.subscribe(good, envoy.ClusterType, cluster("a"))
					f.await(good, envoy.ClusterType, cluster("a"))
					bad := f.client(xdstest.ClientOptions{Delta: delta, Node: node("a", "shop")})
					if limits.StreamsPerNode == 0 && limits.Streams == 0 {
						f.subscribe(bad, envoy.ClusterType, cluster("a"), cluster("b"))
						f.await(bad, envoy.ClusterType, cluster("a"), cluster("b"))
					}
					for i := range 10 { // until the stream has ended
						if err := bad.Subscribe(envoy.LoadAssignmentType, fmt.Sprint(i, strings.Repeat("x", 400))); err != nil {
							break
						}
					}
					for {
						if _, err := bad.Next(f.context()); err != nil {
							if got := status.Convert(err); status.Code(err) != codes.ResourceExhausted || !strings.Contains(got.Message(), what) {
								t.Errorf("the stream ended with %v, want %q", err, what)
							}
							break
						}
					}
					synctest.Wait()
					check(t, "streams that exceeded a limit", len(told.limits), 1)
					check(t, "the limit", <-told.limits, limitOf[what])
					f.define([]string{"a"}, service("b", "shop"))
					f.await(good, envoy.ClusterType)
				})
			})
		}
	}
}

// TestNamesAreCounted: the names of a stream after a request count; names that it has unsubscribed
// from do not.
func TestNamesAreCounted(t *testing.T) {
	for name, delta := range protocols() {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := serve(t, ads.Options{Limits: ads.Limits{Names: 2}}, service("a", "shop"))
				f.flush()
				c := f.client(xdstest.ClientOptions{Delta: delta, Node: node("a", "shop")})
				for _, names := range [][]string{{"a", "b"}, {"c"}, {"d"}} {
					f.subscribe(c, envoy.RouteType, names...)
					synctest.Wait()
					if err := c.Err(); err != nil {
						t.Fatalf("after %q: %v", names, err)
					}
					if err := c.Unsubscribe(envoy.RouteType, names...); err != nil {
						t.Fatal(err)
					}
					synctest.Wait()
				}
				for _, name := range []string{"a", "b", "c"} {
					f.subscribe(c, envoy.RouteType, name)
					synctest.Wait()
					if want := name == "c"; (c.Err() != nil) != want {
						t.Errorf("with name %q the stream has ended with %v", name, c.Err())
					}
				}
				check(t, "code", status.Code(c.Err()), codes.ResourceExhausted)
			})
		})
	}
}

// TestTypesAreCounted: a stream has as many types as the limit says, ten by default.
func TestTypesAreCounted(t *testing.T) {
	for what, test := range map[string]struct{ limit, most int }{"default": {0, 10}, "one": {1, 1}, "many": {30, 30}, "none": {-1, 1000}} {
		for name, delta := range protocols() {
			t.Run(what+"/"+name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					f := serve(t, ads.Options{Limits: ads.Limits{Types: test.limit}})
					c := f.client(xdstest.ClientOptions{Delta: delta, Node: node("a", "shop")})
					for i := range test.most {
						f.subscribe(c, fmt.Sprintf("example.com/v1/Kind%d", i), "*")
					}
					synctest.Wait()
					if err := c.Err(); err != nil {
						t.Fatalf("with %d types the stream has ended with %v", test.most, err)
					}
					if test.limit < 0 {
						return
					}
					f.subscribe(c, "example.com/v1/More", "*")
					synctest.Wait()
					want := fmt.Sprintf("more than %d resource types on one stream", test.most)
					if got := status.Convert(c.Err()); got.Code() != codes.ResourceExhausted || got.Message() != want {
						t.Errorf("the stream ended with %v, want %q", c.Err(), want)
					}
				})
			})
		}
	}
}

// TestStreamsThatEndedDoNotCount: when a client has left there is room for another.
func TestStreamsThatEndedDoNotCount(t *testing.T) {
	for what, limits := range map[string]ads.Limits{"all": {Streams: 1}, "of a node": {StreamsPerNode: 1}} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := serve(t, ads.Options{Limits: limits}, service("a", "shop"))
				for range 3 {
					c := f.client(xdstest.ClientOptions{Node: node("a", "shop")})
					f.subscribe(c, envoy.ClusterType)
					f.await(c, envoy.ClusterType, cluster("a"))
					c.Close()
					f.left()
				}
			})
		})
	}
}

// TestTypes: a request without a type, or for more types than there is any use for,
// ends its stream.
func TestTypes(t *testing.T) {
	for what, tt := range map[string]struct {
		types int
		more  string
		code  codes.Code
	}{
		"none":     {0, "", codes.InvalidArgument},
		"too many": {10, "type.googleapis.com/another", codes.ResourceExhausted},
	} {
		for name, delta := range protocols() {
			t.Run(what+"/"+name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					f := serve(t, ads.Options{}, service("a", "shop"))
					c := f.client(xdstest.ClientOptions{Delta: delta, Node: node("a", "shop")})
					for i := range tt.types {
						f.subscribe(c, fmt.Sprintf("type.googleapis.com/%d", i), "name")
					}
					synctest.Wait()
					if err := c.Err(); err != nil {
						t.Fatal(err)
					}
					f.subscribe(c, tt.more, "name")
					synctest.Wait()
					check(t, "code", status.Code(c.Err()), tt.code)
				})
			})
		}
	}
}

// TestAllNames: a name counts once for all clients, in all views, and when the last one
// unsubscribes there is room for another.
func TestAllNames(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := serve(t, ads.Options{Limits: ads.Limits{AllNames: 3}}, service("a", "shop"))
		f.flush()
		open := func(namespace string, names ...string) *xdstest.Client {
			c := f.client(xdstest.ClientOptions{Delta: true, Node: node(namespace, namespace)})
			f.subscribe(c, envoy.RouteType, names...)
			synctest.Wait()
			return c
		}
		var same []*xdstest.Client
		for i := range 10 {
			same = append(same, open(fmt.Sprint("n", i), "one"))
		}
		pair := open("shop", "two", "three")
		for _, c := range append(same, pair) {
			if err := c.Err(); err != nil {
				t.Fatal(err)
			}
		}
		check(t, "code with four names", status.Code(open("shop", "four").Err()), codes.ResourceExhausted)
		pair.Close()
		synctest.Wait()
		check(t, "code with two names", status.Code(open("shop", "four").Err()), codes.OK)
	})
}
