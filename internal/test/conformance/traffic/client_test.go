// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/pilotkit/pilotkit/internal/envoycheck"
	"github.com/pilotkit/pilotkit/xdsupdate/ads"
	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
	"github.com/pilotkit/pilotkit/xdsupdate/xdstest"
)

var typeURLs = map[section]string{
	clusters: envoy.ClusterType, endpoints: envoy.LoadAssignmentType,
	listeners: envoy.ListenerType, routes: envoy.RouteType,
}

// client is a proxy of a scenario. It subscribes as its kind does.
type client struct {
	spec proxySpec
	sys  *system
	*xdstest.Client
	// routes are the routes that a sidecar's listeners reference. The host makes these listeners,
	// so the recording lists the routes.
	routes []string
	// subscribed are the names, by type; requests counts the requests for them.
	subscribed map[section]map[string]struct{}
	requests   int
	// checked counts the responses that were looked at.
	checked int
	// recorded are the names of the routes that were recorded of it in the steps so far.
	recorded map[string]struct{}
	// has are the bytes of the last sent resources, by section and name.
	has map[section]map[string]string
}

func newClient(spec proxySpec, sys *system, conn grpc.ClientConnInterface) *client {
	c := &client{spec: spec, sys: sys, recorded: make(map[string]struct{}), subscribed: make(map[section]map[string]struct{}), has: make(map[section]map[string]string)}
	for _, s := range sections {
		c.subscribed[s], c.has[s] = make(map[string]struct{}), make(map[string]string)
	}
	c.Client = xdstest.NewClient(conn, xdstest.ClientOptions{Node: spec.node(), Delta: true})
	return c
}

// node is the node of the proxy.
func (p proxySpec) node() *core.Node {
	kind := p.Kind
	if kind == kindGRPC {
		kind = kindSidecar
	}
	n := &core.Node{Id: fmt.Sprintf("%s~%s~%s.%s~%s.svc.cluster.local", kind, p.IP, p.Name, p.Namespace, p.Namespace)}
	labels := maps.Clone(p.Labels)
	if labels == nil {
		labels = map[string]string{}
	}
	locality := strings.Split(p.Locality, "/")
	locality = append(locality, "", "")[:3]
	given := false
	for i, key := range []string{"topology.kubernetes.io/region", "topology.kubernetes.io/zone", "topology.istio.io/subzone"} {
		given = given || labels[key] != "" && i < 2
	}
	for i, key := range []string{"topology.kubernetes.io/region", "topology.kubernetes.io/zone", "topology.istio.io/subzone"} {
		if given {
			locality[i] = labels[key]
		} else if locality[i] != "" && labels[key] == "" {
			labels[key] = locality[i]
		}
	}
	for key, value := range map[string]string{"topology.istio.io/network": p.Network, "topology.istio.io/cluster": clusterID} {
		if labels[key] == "" && value != "" {
			labels[key] = value
		}
	}
	if locality[0] != "" {
		n.Locality = &core.Locality{Region: locality[0], Zone: locality[1], SubZone: locality[2]}
	}
	fields := map[string]any{"NAMESPACE": p.Namespace, "CLUSTER_ID": clusterID, "INSTANCE_IPS": p.IP, "LABELS": anyMap(labels)}
	if p.Network != "" {
		fields["NETWORK"] = p.Network
	}
	if p.Kind == kindGRPC {
		fields["GENERATOR"] = "grpc"
		n.UserAgentName = "gRPC Go"
	}
	var err error
	if n.Metadata, err = structpb.NewStruct(fields); err != nil {
		panic(err)
	}
	return n
}

func anyMap(m map[string]string) map[string]any {
	out := make(map[string]any, len(m))
	for k, v := range m {
		out[k] = v
	}
	return out
}

// follow updates the client's subscriptions to those that its kind needs for its current resources,
// and reports whether they changed.
func (c *client) follow(ctx context.Context) (changed bool, err error) {
	have, err := c.resources()
	if err != nil {
		return false, err
	}
	want := c.wants(have)
	for _, s := range sections {
		now := make(map[string]struct{}, len(want[s]))
		var add, remove []string
		for _, n := range want[s] {
			if now[n] = struct{}{}; !has(c.subscribed[s], n) {
				add = append(add, n)
			}
		}
		for n := range c.subscribed[s] {
			if !has(now, n) {
				remove = append(remove, n)
				delete(c.has[s], n)
			}
		}
		c.subscribed[s] = now
		if err := c.subscribe(typeURLs[s], add, remove); err != nil {
			return false, err
		}
		changed = changed || len(add)+len(remove) > 0
	}
	return changed, c.sys.requests.wait(ctx, c.spec.node().GetId(), c.requests)
}

func has(set map[string]struct{}, name string) bool { _, ok := set[name]; return ok }

// everything is the name of a wildcard subscription.
const everything = "*"

func (c *client) subscribe(typeURL string, add, remove []string) error {
	slices.Sort(add)
	slices.Sort(remove)
	if len(add) > 0 {
		c.requests++
		if err := c.Subscribe(typeURL, add...); err != nil {
			return err
		}
	}
	if len(remove) > 0 {
		c.requests++
		return c.Unsubscribe(typeURL, remove...)
	}
	return nil
}

// wants returns the names that the proxy subscribes to, by type: README.md,
// section 2.
func (c *client) wants(have map[section]resources) map[section][]string {
	out := make(map[section][]string)
	switch c.spec.Kind {
	case kindGRPC:
		out[listeners] = c.spec.Listeners
		out[routes] = routesOf(have[listeners])
		out[clusters] = clustersOf(have[routes])
	case kindRouter:
		out[clusters], out[listeners] = []string{everything}, []string{everything}
		out[routes] = routesOf(have[listeners])
	default:
		out[clusters], out[routes] = []string{everything}, c.routes
	}
	for _, cluster := range have[clusters] {
		if text(cluster, "type") == "EDS" {
			out[endpoints] = append(out[endpoints], assignmentOf(cluster))
		}
	}
	return out
}

// assignmentOf returns the name of an EDS cluster's assignment.
func assignmentOf(cluster tree) string {
	if service := text(object(cluster, "edsClusterConfig"), "serviceName"); service != "" {
		return service
	}
	return text(cluster, "name")
}

// routesOf returns the route configurations that listeners refer to.
func routesOf(list resources) []string {
	var out []string
	for _, l := range list {
		each(l, func(o tree) {
			if n := text(o, "routeConfigName"); n != "" && !slices.Contains(out, n) {
				out = append(out, n)
			}
		})
	}
	return out
}

// clustersOf returns the clusters that routes lead to, mirrors left out.
func clustersOf(list resources) []string {
	var out []string
	add := func(n string) {
		if n != "" && !slices.Contains(out, n) {
			out = append(out, n)
		}
	}
	for _, config := range list {
		for _, vh := range objects(config, "virtualHosts") {
			for _, r := range objects(vh, "routes") {
				action := object(r, "route")
				add(text(action, "cluster"))
				for _, w := range objects(object(action, "weightedClusters"), "clusters") {
					add(text(w, "name"))
				}
			}
		}
	}
	return out
}

// resources returns the client's resources, in the recorded form.
func (c *client) resources() (map[section]resources, error) {
	state := c.State()
	out := make(map[section]resources)
	for _, s := range sections {
		held := state.Resources(typeURLs[s])
		for _, n := range slices.Sorted(maps.Keys(held)) {
			m, err := held[n].Message()
			if err != nil {
				return nil, err
			}
			if err := c.accepts(m); err != nil {
				return nil, err
			}
			r, err := canonical(s, m)
			if err != nil {
				return nil, err
			}
			if r != nil {
				out[s] = append(out[s], r)
			}
		}
	}
	return out, nil
}

// accepts returns why the client would refuse a resource.
func (c *client) accepts(m proto.Message) error {
	if c.spec.Kind == kindGRPC {
		return envoycheck.GRPC(m)
	}
	return envoycheck.Envoy(m)
}

// repeated returns the resources that were sent since the last call although the client had them.
// The assignment of a changed cluster is sent again, because Envoy waits for it.
func (c *client) repeated() []string {
	var out []string
	all := c.Responses()
	warming := make(map[string]struct{})
	for _, r := range all[c.checked:] {
		s := sections[slices.IndexFunc(sections, func(s section) bool { return typeURLs[s] == r.TypeURL })]
		for _, res := range r.Resources {
			value := string(res.Any.GetValue())
			if before, had := c.has[s][res.Name]; had && before == value && (s != endpoints || !has(warming, res.Name)) {
				out = append(out, fmt.Sprintf("%s %q was sent although it is unchanged", s, res.Name))
			}
			c.has[s][res.Name] = value
			if s == clusters {
				cluster := &clusterv3.Cluster{}
				_ = proto.Unmarshal(res.Any.GetValue(), cluster)
				warming[res.Name], warming[cluster.GetEdsClusterConfig().GetServiceName()] = struct{}{}, struct{}{}
			}
		}
		for _, n := range r.Removed {
			delete(c.has[s], n)
		}
	}
	c.checked = len(all)
	return out
}

// requestCounter counts the subscription requests that the server has handled, by
// node: a request that it has not read yet cannot be waited for otherwise.
type requestCounter struct {
	ads.NoObserver
	mu      sync.Mutex
	counts  map[string]int
	changed chan struct{}
}

func newRequestCounter() *requestCounter {
	return &requestCounter{counts: make(map[string]int), changed: make(chan struct{})}
}

// Request implements ads.Observer.
func (r *requestCounter) Request(s ads.Stream, e ads.RequestEvent) {
	if e.Nonce != "" {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.counts[s.Node]++
	close(r.changed)
	r.changed = make(chan struct{})
}

func (r *requestCounter) wait(ctx context.Context, node string, count int) error {
	for {
		r.mu.Lock()
		now, changed := r.counts[node], r.changed
		r.mu.Unlock()
		if now >= count {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return fmt.Errorf("the server has handled %d of %d requests: %w", now, count, ctx.Err())
		}
	}
}
