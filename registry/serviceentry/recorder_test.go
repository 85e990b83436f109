// SPDX-License-Identifier: Apache-2.0

package serviceentry_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate"
)

// recorder is an updater that writes down what it is called with, one line per call, and
// keeps the endpoints as an index would. It takes complete lists only.
type recorder struct {
	t     *testing.T
	calls []string
	// endpoints holds what was reported last, by "namespace/hostname".
	endpoints map[string][]*registry.Endpoint
	// during is called for each call, if it is set.
	during func(call string)
	// resync: reports of endpoints may repeat what was reported before.
	resync bool
}

func newRecorder(t *testing.T) *recorder {
	t.Helper()
	return &recorder{t: t, endpoints: map[string][]*registry.Endpoint{}}
}

var _ xdsupdate.XDSUpdater = (*recorder)(nil)

func (r *recorder) record(format string, args ...any) {
	call := fmt.Sprintf(format, args...)
	r.calls = append(r.calls, call)
	if r.during != nil {
		r.during(call)
	}
}

func (r *recorder) EDSUpdate(_ xdsupdate.ShardKey, hostname registry.Hostname, namespace string, endpoints []*registry.Endpoint) {
	if !slices.IsSortedFunc(endpoints, registry.CompareEndpoints) {
		r.t.Errorf("EDSUpdate of %s/%s is not sorted", namespace, hostname)
	}
	key := namespace + "/" + string(hostname)
	r.report(key, endpoints)
	r.record("eds %s %s", key, brief(endpoints))
}

func (r *recorder) report(key string, endpoints []*registry.Endpoint) {
	if !r.resync && slices.EqualFunc(endpoints, r.endpoints[key], (*registry.Endpoint).Equal) {
		r.t.Errorf("endpoints of %s reported although they did not change: %s", key, brief(endpoints))
	}
	r.endpoints[key] = endpoints
}

func (r *recorder) EDSCacheUpdate(xdsupdate.ShardKey, registry.Hostname, string, []*registry.Endpoint) {
	r.t.Error("unexpected EDSCacheUpdate")
}

func (r *recorder) SvcUpdate(_ xdsupdate.ShardKey, hostname registry.Hostname, namespace string, event registry.Event) {
	if event == registry.EventDelete {
		delete(r.endpoints, namespace+"/"+string(hostname))
	}
	r.record("service %s/%s %s", namespace, hostname, event)
}

func (r *recorder) ConfigUpdate(req *xdsupdate.PushRequest) {
	if !req.Full || req.Forced || req.Start.IsZero() {
		r.t.Errorf("ConfigUpdate(%+v): want Full, not Forced, with a start", req)
	}
	var keys []string
	for k := range req.ConfigsUpdated {
		keys = append(keys, k.String())
	}
	slices.Sort(keys)
	var reasons []string
	for _, reason := range slices.Sorted(maps.Keys(req.Reason)) {
		reasons = append(reasons, string(reason))
	}
	r.record("config %s %s", strings.Join(reasons, ","), strings.Join(keys, " "))
}

func (r *recorder) ProxyUpdate(cluster registry.ClusterID, ip string) {
	r.record("proxy %s %s", cluster, ip)
}

func (r *recorder) RemoveShard(xdsupdate.ShardKey) { r.t.Error("unexpected RemoveShard") }

// take returns the calls since the last one and forgets them.
func (r *recorder) take() []string {
	calls := r.calls
	r.calls = nil
	return calls
}

// deltaRecorder also takes deltas, and checks that they fit what it was called with.
type deltaRecorder struct{ *recorder }

var _ xdsupdate.EndpointDeltaUpdater = deltaRecorder{}

func (r deltaRecorder) EDSDeltaUpdate(_ xdsupdate.ShardKey, hostname registry.Hostname, namespace string, changes []xdsupdate.EndpointChange) {
	key := namespace + "/" + string(hostname)
	list := slices.Clone(r.endpoints[key])
	for _, c := range changes {
		if c.Old != nil {
			i := slices.Index(list, c.Old)
			if i < 0 {
				r.t.Errorf("EDSDeltaUpdate of %s: the old endpoint %s was never reported", key, brief([]*registry.Endpoint{c.Old}))
				continue
			}
			list = slices.Delete(list, i, i+1)
		}
		if c.New != nil {
			list = append(list, c.New)
		}
	}
	slices.SortFunc(list, registry.CompareEndpoints)
	r.report(key, list)
	r.record("delta %s %s", key, brief(list))
}

// brief writes endpoints as "address:port", with the service port if it differs.
func brief(endpoints []*registry.Endpoint) string {
	var out []string
	for _, e := range endpoints {
		s := fmt.Sprintf("%s:%d", strings.Join(e.Addresses, "+"), e.EndpointPort)
		if e.EndpointPort != e.ServicePort {
			s += fmt.Sprintf("<%d", e.ServicePort)
		}
		out = append(out, s)
	}
	return "[" + strings.Join(out, " ") + "]"
}

func diff(t *testing.T, what string, got, want any) {
	t.Helper()
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("%s (-want +got):\n%s", what, d)
	}
}
