// SPDX-License-Identifier: Apache-2.0

package ads_test

import (
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

// TestLimits: a stream that exceeds a limit is ended with a text that names it, and
// others are not.
func TestLimits(t *testing.T) {
	for what, limits := range map[string]ads.Limits{
		"more than 1 streams":                      {Streams: 1},
		"more than 1 streams of node":              {StreamsPerNode: 1},
		"more than 2 resources subscribed by name": {Names: 2},
		"bytes, more than 400":                     {RequestBytes: 400},
		"more than 0.001 requests a second":        {RequestsPerSecond: 0.001, RequestBurst: 6},
	} {
		for name, delta := range protocols() {
			t.Run(what+"/"+name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					f := serve(t, ads.Options{Limits: limits}, service("a", "shop"), service("b", "shop"))
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
					f.define([]string{"a"}, service("b", "shop"))
					f.await(good, envoy.ClusterType)
				})
			})
		}
	}
}
