// SPDX-License-Identifier: Apache-2.0

package realclients

import (
	"context"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/pilotkit/pilotkit/internal/test/tier"
	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
	"github.com/pilotkit/pilotkit/xdsupdate/xdstest"
)

// outage is how long all sources are away.
func outage() time.Duration {
	if tier.Full() {
		return time.Minute
	}
	return 2 * time.Second
}

// TestSourcesAway makes every source unavailable for a minute, and moves services in them
// meanwhile. Clients, some of them moved to another control plane then, lose no call and no
// resource, and when the sources are back they get exactly the moved services.
func TestSourcesAway(t *testing.T) {
	t.Parallel()
	one, two := startBackend(t, "one"), startBackend(t, "two")
	o := newOutside(t, one)
	first, second := startReplica(t, o), startReplica(t, o)
	address := first.listen(t, "")
	clients := make(map[string]*caller) // by host
	for _, source := range sources() {
		for _, host := range []string{movingHost(source), stayingHost(source)} {
			feed, send := startGoWith(t, bootstrap(t, address), "xds:///"+host+":80", 20*time.Millisecond)
			clients[host] = newCaller(t, feed, send)
		}
	}
	allFollow := func(moving string) {
		t.Helper()
		for _, source := range sources() {
			clients[movingHost(source)].follow(moving)
			clients[stayingHost(source)].follow("one")
		}
	}
	allFollow("one")
	envoyLike := watch(t, second.listen(t, ""))
	before := versionsOf(envoyLike.State())

	o.goAway()
	ends := time.Now().Add(outage())
	second.seesSourcesAway(t)
	o.move(o.goneDir(), two, one)
	allFollow("one")
	first.end()
	second.listen(t, address)
	for time.Now().Before(ends) {
		allFollow("one")
	}
	if diff := cmp.Diff(before, versionsOf(envoyLike.State())); diff != "" {
		t.Errorf("what a client has after the outage (-before +after):\n%s", diff)
	}
	answers := len(envoyLike.Responses())

	o.comeBack()
	allFollow("two")
	second.seesSources(t)
	var want []string
	for _, source := range sources() {
		want = append(want, "outbound|80||"+movingHost(source))
	}
	slices.Sort(want)
	await(t, envoyLike, func(s xdstest.State) bool {
		now := versionsOf(s)
		return !slices.ContainsFunc(want, func(name string) bool { return now[name] == before[name] })
	})
	got := make(map[string]bool)
	for _, r := range envoyLike.Responses()[answers:] {
		for _, resource := range r.Resources {
			got[resource.Name] = true
		}
		if r.TypeURL != envoy.LoadAssignmentType || len(r.Removed) > 0 {
			t.Errorf("sent %s, removed %v", r.TypeURL, r.Removed)
		}
	}
	if diff := cmp.Diff(want, slices.Sorted(maps.Keys(got))); diff != "" {
		t.Errorf("what was sent after the outage (-want +got):\n%s", diff)
	}
}

// watch returns a client of a control plane that is subscribed to all clusters and their
// assignments as an Envoy is, by delta, when it has those of all services.
func watch(t *testing.T, address string) *xdstest.Client {
	t.Helper()
	conn, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	client := xdstest.NewClient(conn, xdstest.ClientOptions{Delta: true})
	t.Cleanup(func() {
		client.Close()
		_ = conn.Close()
	})
	if err := client.Connect(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, typeURL := range []string{envoy.ClusterType, envoy.LoadAssignmentType} {
		if err := client.Subscribe(typeURL, "*"); err != nil {
			t.Fatal(err)
		}
	}
	var names []string
	for _, source := range sources() {
		names = append(names, "outbound|80||"+movingHost(source), "outbound|80||"+stayingHost(source))
	}
	await(t, client, func(s xdstest.State) bool {
		return s.Has(envoy.ClusterType, names...) && s.Has(envoy.LoadAssignmentType, names...)
	})
	return client
}

func await(t *testing.T, client *xdstest.Client, condition func(xdstest.State) bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := client.Await(ctx, condition); err != nil {
		t.Fatal(err)
	}
}

// versionsOf returns the versions of the assignments and, with "cluster " before the
// name, of the clusters that a client has.
func versionsOf(s xdstest.State) map[string]string {
	versions := make(map[string]string)
	for name, r := range s.Resources(envoy.ClusterType) {
		versions["cluster "+name] = r.Version
	}
	for name, r := range s.Resources(envoy.LoadAssignmentType) {
		versions[name] = r.Version
	}
	return versions
}
