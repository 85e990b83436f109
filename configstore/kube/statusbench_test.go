// SPDX-License-Identifier: Apache-2.0

package kube_test

import (
	"fmt"
	"testing"

	"google.golang.org/protobuf/types/known/structpb"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/kube"
)

// BenchmarkStatuses is the number of statuses per second that a real API server accepts, from the
// host's report until the cache has all of them.
func BenchmarkStatuses(b *testing.B) {
	const objects = 500
	server := apiserver.Server(b)
	schemas := limits("statuses.example.com")
	kind := schemas.All()[0].GroupVersionKind
	server.ApplyCRDs(b, crdsOf(schemas))
	ns := server.Namespace(b)
	fill(b, server, schemas, ns, objects)
	const unlimited = 1e6
	for i, opts := range []kube.StatusOptions{
		{}, {Rate: unlimited, Workers: 1}, {Rate: unlimited}, {Rate: unlimited, Workers: 8}, {Rate: unlimited, Workers: 16},
	} {
		rate, workers := opts.Rate, opts.Workers
		if rate == 0 {
			rate = 100
		}
		if workers == 0 {
			workers = 4
		}
		b.Run(fmt.Sprintf("rate=%g/workers=%d", rate, workers), func(b *testing.B) {
			c := newCache(b, restConfig(server.Config()), schemas, kube.Options{})
			runSynced(b, c)
			w, err := kube.NewStatusWriter(c, restConfig(server.Config()), opts)
			if err != nil {
				b.Fatal(err)
			}
			runAny(b, w.Run)
			shown := make(chan string, objects)
			c.RegisterEventHandler(kind, func(_, o configstore.Config, _ configstore.Event) { shown <- message(&o, "Round") })
			say := func(text string) {
				for j := range objects {
					key := configstore.ConfigKey{Kind: kind, Namespace: ns, Name: fmt.Sprintf("o-%d", j)}
					w.Report(key, kube.Condition{Type: "Round", True: true, Reason: "Next", Message: text})
				}
				for said := 0; said < objects; {
					if <-shown == text {
						said++
					}
				}
			}
			say(fmt.Sprint("before ", i))
			for round := 0; b.Loop(); round++ {
				say(fmt.Sprint(i, " ", round))
			}
			b.ReportMetric(float64(objects)*float64(b.N)/b.Elapsed().Seconds(), "statuses/s")
		})
	}
}

// message returns the message of a condition of an object.
func message(c *configstore.Config, condition string) string {
	status, _ := c.Status.(*structpb.Struct)
	for _, v := range status.GetFields()["conditions"].GetListValue().GetValues() {
		if fields := v.GetStructValue().GetFields(); fields["type"].GetStringValue() == condition {
			return fields["message"].GetStringValue()
		}
	}
	return ""
}
