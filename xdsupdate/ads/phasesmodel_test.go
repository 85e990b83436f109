// SPDX-License-Identifier: Apache-2.0

package ads_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	"google.golang.org/protobuf/reflect/protopath"
	"google.golang.org/protobuf/reflect/protorange"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/pilotkit/pilotkit/internal/test/histories"
	"github.com/pilotkit/pilotkit/xdsupdate/ads"
	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
	"github.com/pilotkit/pilotkit/xdsupdate/xdstest"
)

// TestPhasesModel follows clients through random histories, in which they answer at random times,
// come back, and reject clusters. No time-out ends a phase. A client never gets a listener or a
// route that references an existing cluster which it has not accepted, nor loses a cluster that one
// of its accepted listeners or routes references; and in the end it has everything. A NACK ends the
// waiting: then only removals are checked.
func TestPhasesModel(t *testing.T) {
	for protocol, delta := range protocols() {
		for _, refuses := range []bool{false, true} {
			for _, seed := range histories.Seeds(t, 40) {
				t.Run(fmt.Sprintf("%s/refuses=%t/%d", protocol, refuses, seed), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) { runPhasesModel(t, seed, delta, refuses) })
				})
			}
		}
	}
}

func runPhasesModel(t *testing.T, seed uint64, delta, refuses bool) {
	t.Helper()
	random := rand.New(rand.NewPCG(seed, 22))
	f := serveDiscovery(t, ads.Options{}, nil)
	w := &phasesWorld{fixture: f, random: random, refuses: refuses, clusters: make(map[string]int), refs: make(map[string][]string)}
	var all []*watched
	for range 2 {
		w.step()
		all = append(all, w.watch(delta))
	}
	for range 150 {
		if random.IntN(3) == 0 {
			w.step()
		}
		c := all[random.IntN(len(all))]
		switch random.IntN(20) {
		case 0:
			c.reconnect()
		case 1:
			time.Sleep(time.Duration(random.IntN(10)) * time.Millisecond)
		default:
			c.answer()
		}
		for _, c := range all {
			c.follow()
		}
	}
	for _, c := range all {
		c.finish()
	}
}

// phasesWorld is the state of a server, in which all references exist.
type phasesWorld struct {
	*fixture
	random   *rand.Rand
	refuses  bool
	clusters map[string]int // their states
	state    int
	refs     map[string][]string // the clusters that routes and listeners name
}

const (
	modelClusters  = 6
	modelRoutes    = 3
	modelListeners = 3
)

func modelNames(kind string, n int) []string {
	out := make([]string, n)
	for i := range out {
		out[i] = fmt.Sprint(kind, i)
	}
	return out
}

// step adds, changes or removes some clusters, and moves all references to the removed ones, and
// some others.
func (w *phasesWorld) step() {
	w.t.Helper()
	w.together(func() {
		for _, name := range modelNames("c", modelClusters) {
			if w.random.IntN(3) == 0 {
				w.changeCluster(name)
			}
		}
		if len(w.clusters) == 0 {
			w.setCluster("c0")
		}
		for _, name := range modelNames("r", modelRoutes) {
			w.changeRoutes(name)
		}
		for _, name := range modelNames("l", modelListeners) {
			w.changeListener(name)
		}
	})
	w.flush()
	synctest.Wait()
}

func (w *phasesWorld) changeCluster(name string) {
	if w.random.IntN(2) == 0 {
		delete(w.clusters, name)
		noClusters(name)(w.fixture)
		return
	}
	w.setCluster(name)
}

func (w *phasesWorld) setCluster(name string) {
	w.t.Helper()
	w.state++
	w.clusters[name] = w.state
	c := edsCluster(name)
	c.ConnectTimeout = durationpb.New(time.Duration(w.state) * time.Second)
	w.setResource(name, c)
	endpoints(name, uint32(w.state))(w.fixture)
}

// cluster returns one that exists.
func (w *phasesWorld) cluster() string {
	all := slices.Sorted(maps.Keys(w.clusters))
	return all[w.random.IntN(len(all))]
}

// stays reports whether a resource that references clusters may stay as it is.
func (w *phasesWorld) stays(name string) bool {
	refs, ok := w.refs[name]
	return ok && w.random.IntN(4) > 0 && !slices.ContainsFunc(refs, func(c string) bool { return w.clusters[c] == 0 })
}

func (w *phasesWorld) changeRoutes(name string) {
	w.t.Helper()
	if w.stays(name) {
		return
	}
	w.refs[name] = nil
	var pairs []string
	for _, domain := range modelNames(name+"-", 1+w.random.IntN(2)) {
		to := w.cluster()
		pairs, w.refs[name] = append(pairs, domain, to), append(w.refs[name], to)
	}
	routes(name, pairs...)(w.fixture)
}

func (w *phasesWorld) changeListener(name string) {
	w.t.Helper()
	if w.stays(name) {
		return
	}
	delete(w.refs, name)
	switch w.random.IntN(4) {
	case 0:
		without(envoy.ListenerType, name)(w.fixture)
	case 1:
		httpListener(name, modelNames("r", 1+w.random.IntN(modelRoutes))...)(w.fixture)
	default:
		to := w.cluster()
		w.refs[name] = []string{to}
		tcpListener(name, to)(w.fixture)
	}
}

// watched is a client whose responses are checked.
type watched struct {
	*xdstest.Client
	w       *phasesWorld
	delta   bool
	read    int
	waiting []xdstest.Response // not answered
	// known are the resources that the server knows the client to have, by type and name: with SotW
	// those of this stream.
	known map[string]map[string]bool
}

func (w *phasesWorld) watch(delta bool) *watched {
	w.t.Helper()
	c := &watched{
		Client: w.client(xdstest.ClientOptions{Delta: delta, Node: node("a", "shop"), Manual: true}),
		w:      w, delta: delta, known: make(map[string]map[string]bool),
	}
	w.subscribe(c.Client, envoy.ClusterType)
	w.subscribe(c.Client, envoy.LoadAssignmentType, modelNames("c", modelClusters)...)
	w.subscribe(c.Client, envoy.ListenerType)
	w.subscribe(c.Client, envoy.RouteType, modelNames("r", modelRoutes)...)
	c.follow()
	return c
}

// follow checks the responses to the client since the last call.
func (c *watched) follow() {
	c.w.t.Helper()
	synctest.Wait()
	if err := c.Err(); err != nil {
		c.w.t.Fatal(err)
	}
	all := c.Responses()
	for _, r := range all[c.read:] {
		c.check(r)
		c.waiting = append(c.waiting, r)
	}
	c.read = len(all)
}

func (c *watched) check(r xdstest.Response) {
	c.w.t.Helper()
	switch r.TypeURL {
	case envoy.ClusterType:
		for name := range c.has(envoy.ClusterType) {
			gone := slices.Contains(r.Removed, name) || !c.delta && !slices.Contains(r.Names(), name)
			if users := c.users(name); gone && len(users) > 0 {
				c.w.t.Errorf("cluster %s goes while %q lead to it", name, users)
			}
		}
	case envoy.ListenerType, envoy.RouteType:
		for _, res := range r.Resources {
			had, ok := c.has(r.TypeURL)[res.Name]
			if ok && slices.Equal(had.Any.GetValue(), res.Any.GetValue()) {
				continue
			}
			for _, name := range clustersIn(c.w.t, res) {
				_, accepted := c.has(envoy.ClusterType)[name]
				if !accepted && c.w.clusters[name] > 0 && !c.w.refuses {
					c.w.t.Errorf("%s leads to %s, which is not accepted", res.Name, name)
				}
			}
		}
	}
}

// has returns the resources of a type that the client has accepted on this stream, or has listed.
func (c *watched) has(typeURL string) map[string]xdstest.Resource {
	out := c.State().Resources(typeURL)
	if !c.delta {
		maps.DeleteFunc(out, func(name string, _ xdstest.Resource) bool { return !c.known[typeURL][name] })
	}
	return out
}

// knows records the resources that the client has accepted.
func (c *watched) knows(r xdstest.Response) {
	for _, name := range r.Names() {
		if c.known[r.TypeURL] == nil {
			c.known[r.TypeURL] = make(map[string]bool)
		}
		c.known[r.TypeURL][name] = true
	}
}

// users returns the listeners and routes that the client has accepted and that name a
// cluster.
func (c *watched) users(cluster string) (out []string) {
	c.w.t.Helper()
	for _, typeURL := range []string{envoy.ListenerType, envoy.RouteType} {
		for name, r := range c.has(typeURL) {
			if slices.Contains(clustersIn(c.w.t, r), cluster) {
				out = append(out, name)
			}
		}
	}
	return out
}

// answer answers a response, if there is one: the first of any type.
func (c *watched) answer() {
	c.w.t.Helper()
	if len(c.waiting) == 0 {
		return
	}
	typeURL := c.waiting[c.w.random.IntN(len(c.waiting))].TypeURL
	i := slices.IndexFunc(c.waiting, func(r xdstest.Response) bool { return r.TypeURL == typeURL })
	r := c.waiting[i]
	c.waiting = slices.Delete(c.waiting, i, i+1)
	var err error
	if slices.ContainsFunc(r.Resources, c.refuses) {
		err = c.Nack(r, "bad")
	} else if err = c.Ack(r); err == nil {
		c.knows(r)
	}
	if err != nil {
		c.w.t.Fatal(err)
	}
	c.follow()
}

func (c *watched) refuses(r xdstest.Resource) bool {
	c.w.t.Helper()
	m, err := r.Message()
	if err != nil {
		c.w.t.Fatal(err)
	}
	cluster, ok := m.(*clusterv3.Cluster)
	return ok && c.w.refuses && cluster.GetConnectTimeout().GetSeconds()%4 == 3
}

// reconnect opens another stream. With SotW the server does not know the client's resources.
func (c *watched) reconnect() {
	c.w.t.Helper()
	c.Close()
	synctest.Wait()
	c.read = len(c.Responses())
	c.waiting = nil
	clear(c.known)
	if err := c.Connect(c.w.context()); err != nil {
		c.w.t.Fatal(err)
	}
	c.follow()
}

// finish answers all responses: then the client has all present resources.
func (c *watched) finish() {
	c.w.t.Helper()
	for n := 0; ; n++ {
		if n > endless {
			c.w.t.Fatal("there are always more responses")
		}
		if len(c.waiting) == 0 {
			time.Sleep(51 * time.Millisecond) // routes may wait for threads that switch listeners
			if c.follow(); len(c.waiting) == 0 {
				break
			}
		}
		c.answer()
	}
	if c.w.refuses {
		return
	}
	check(c.w.t, "clusters in the end", c.State().Names(envoy.ClusterType), slices.Sorted(maps.Keys(c.w.clusters)))
	for _, typeURL := range []string{envoy.ListenerType, envoy.RouteType} {
		for name, r := range c.State().Resources(typeURL) {
			check(c.w.t, "clusters of "+name+" in the end", clustersIn(c.w.t, r), c.w.refs[name])
		}
	}
}

// clustersIn returns the clusters that a resource names.
func clustersIn(tb testing.TB, r xdstest.Resource) (out []string) {
	tb.Helper()
	m, err := r.Message()
	if err == nil {
		err = protorange.Range(m.ProtoReflect(), func(p protopath.Values) error {
			last := p.Index(-1)
			if last.Step.Kind() != protopath.FieldAccessStep {
				return nil
			}
			switch last.Step.FieldDescriptor().FullName() {
			case "envoy.config.route.v3.RouteAction.cluster",
				"envoy.extensions.filters.network.tcp_proxy.v3.TcpProxy.cluster":
				out = append(out, last.Value.String())
			}
			return nil
		})
	}
	if err != nil {
		tb.Fatal(err)
	}
	return out
}
