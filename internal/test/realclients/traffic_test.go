// SPDX-License-Identifier: Apache-2.0

package realclients

import (
	"fmt"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/istio"
	"github.com/pilotkit/pilotkit/internal/test/grpccall"
	"github.com/pilotkit/pilotkit/internal/test/testplane"
	"github.com/pilotkit/pilotkit/xdsupdate/ads"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic"
)

// trafficPlane starts a control plane with traffic policies.
func (s *scene) trafficPlane(configs ...configstore.Config) *plane {
	s.Helper()
	return startPlaneWith(s.T, testplane.Options{Server: func(p *testplane.Plane) ads.Options {
		return ads.Options{Providers: []ads.Provider{traffic.New(p.Configs)}}
	}}, configs...)
}

func policy[M proto.Message](s *scene, kind configstore.GroupVersionKind, text string, spec M) configstore.Config {
	s.Helper()
	if err := protojson.Unmarshal([]byte(text), spec); err != nil {
		s.Fatalf("%s: %v", text, err)
	}
	return configstore.Config{Meta: configstore.Meta{GroupVersionKind: kind, Name: "api", Namespace: "shop"}, Spec: spec}
}

// virtualService is one for the service that most scenarios are about.
func (s *scene) virtualService(http string) configstore.Config {
	s.Helper()
	return policy(s, istio.VirtualService, `{"hosts": ["`+host+`"], "http": [`+http+`]}`, &networking.VirtualService{})
}

// subsets is a DestinationRule with subsets by version.
func (s *scene) subsets(names ...string) configstore.Config {
	s.Helper()
	r := &networking.DestinationRule{Host: host}
	for _, n := range names {
		r.Subsets = append(r.Subsets, &networking.Subset{Name: n, Labels: map[string]string{"version": n}})
	}
	return configstore.Config{Meta: configstore.Meta{GroupVersionKind: istio.DestinationRule, Name: "api", Namespace: "shop"}, Spec: r}
}

// versions starts a backend for each version and returns them as the endpoints of
// the service.
func (s *scene) versions(names ...string) configstore.Config {
	s.Helper()
	var endpoints []*networking.WorkloadEntry
	for _, n := range names {
		endpoints = append(endpoints, &networking.WorkloadEntry{
			Address: "127.0.0.1", Ports: map[string]uint32{"grpc": startEcho(s.T, n).port}, Labels: map[string]string{"version": n},
		})
	}
	return entry(endpoints...)
}

// forwardTo forwards to a subset of the service.
func forwardTo(subset string) string {
	return `"route": [{"destination": {"host": "` + host + `", "subset": "` + subset + `"}}]`
}

func share(subset string, weight int) string {
	return fmt.Sprintf(`{"destination": {"host": %q, "subset": %q}, "weight": %d}`, host, subset, weight)
}

func (s *scene) asker(p *plane) *grpccall.Caller {
	s.Helper()
	return s.client.Start(s.T, bootstrap(s.T, p.Address))
}

// countAnswers makes n calls, some at a time, and returns how often each backend answered,
// or each code was the result.
func countAnswers(client *grpccall.Caller, n int) map[string]int {
	const batch = 250
	out := make(map[string]int)
	for range n / batch {
		calls := make([]grpccall.Call, batch)
		for i := range calls {
			calls[i] = grpccall.Call{Target: target, Path: "/s/M"}
		}
		for _, got := range client.Make(calls...) {
			if got.Code != 0 {
				got.Backend = got.Code.String()
			}
			out[got.Backend]++
		}
	}
	return out
}

// chiSquare is the statistic of Pearson's test of counts against shares.
func chiSquare(counts map[string]int, shares map[string]float64) float64 {
	total, known, sum := 0, 0, 0.0
	for _, n := range counts {
		total += n
	}
	for name, share := range shares {
		expected := share * float64(total)
		known += counts[name]
		sum += (float64(counts[name]) - expected) * (float64(counts[name]) - expected) / expected
	}
	if known != total {
		return float64(total) // Another backend answered.
	}
	return sum
}

// A correct client exceeds these once in a million times: with one and with two
// degrees of freedom.
const (
	chiSquareOne = 23.9
	chiSquareTwo = 27.6
)

// TestTrafficWeights: calls are shared by the weights of a route, regardless of their sum.
func TestTrafficWeights(t *testing.T) {
	eachClient(t, func(s *scene) {
		p := s.trafficPlane(s.versions("v1", "v2", "v3"), s.subsets("v1", "v2", "v3"),
			s.virtualService(`{"route": [`+share("v1", 7)+`,`+share("v2", 2)+`,`+share("v3", 1)+`]}`))
		client := s.asker(p)
		shares := map[string]float64{"v1": 0.7, "v2": 0.2, "v3": 0.1}
		if got := countAnswers(client, 10_000); chiSquare(got, shares) > chiSquareTwo {
			s.Errorf("of 10000 calls %v, want shares %v", got, shares)
		}
		p.Update(s.virtualService(`{"fault": {"abort": {"grpcStatus": "ABORTED", "percentage": {"value": 25}}}, ` + forwardTo("v3") + `}`))
		p.Applied()
		// The client has accepted the fault; soon its calls go by it.
		for calls := 0; client.Make(grpccall.Call{Target: target, Path: "/s/M"})[0].Code != codes.Aborted; calls++ {
			if calls == 10_000 {
				s.Fatal("no call was aborted")
			}
		}
		shares = map[string]float64{"v3": 0.75, "Aborted": 0.25}
		if got := countAnswers(client, 2_000); chiSquare(got, shares) > chiSquareOne {
			s.Errorf("of 2000 calls %v, want shares %v", got, shares)
		}
		p.Accepted()
	})
}

// TestTrafficRoutes: headers, methods, subsets, timeouts, retries, faults, and what
// gRPC clients cannot do, in one VirtualService.
func TestTrafficRoutes(t *testing.T) {
	eachClient(t, func(s *scene) {
		p := s.trafficPlane(s.versions("v1", "v2"), s.subsets("v1", "v2", "empty"), s.virtualService(`
			{"match": [{"headers": {"x-version": {"exact": "2"}}, "uri": {"prefix": "/s/"}}], `+forwardTo("v2")+`},
			{"match": [{"uri": {"exact": "/s.S/Two"}}], `+forwardTo("v2")+`},
			{"match": [{"uri": {"prefix": "/slow/"}}], "timeout": "2s", `+forwardTo("v1")+`},
			{"match": [{"uri": {"prefix": "/retried/"}}], "retries": {"attempts": 3, "retryOn": "unavailable"}, `+forwardTo("v1")+`},
			{"match": [{"uri": {"prefix": "/once/"}}], "retries": {"attempts": 0}, `+forwardTo("v1")+`},
			{"match": [{"uri": {"prefix": "/abort/"}}], "fault": {"abort": {"grpcStatus": "NOT_FOUND", "percentage": {"value": 100}}}, `+forwardTo("v1")+`},
			{"match": [{"uri": {"prefix": "/delay/"}}], "fault": {"delay": {"fixedDelay": "0.5s", "percentage": {"value": 100}}}, `+forwardTo("v1")+`},
			{"match": [{"uri": {"prefix": "/moved/"}}], "redirect": {"uri": "/s/"}},
			{"match": [{"uri": {"prefix": "/gone/"}}], "directResponse": {"status": 503}},
			{"match": [{"uri": {"prefix": "/empty/"}}], `+forwardTo("empty")+`},
			{"match": [{"uri": {"prefix": "/unknown/"}}], `+forwardTo("unknown")+`},
			{"match": [{"uri": {"prefix": "/nowhere/"}}], "route": [{"destination": {"host": "nowhere.example.com"}}]},
			{"match": [{"withoutHeaders": {"x-canary": {"exact": "yes"}}}], `+forwardTo("v1")+`},
			{"mirror": {"host": "`+host+`", "subset": "v1"}, `+forwardTo("v2")+`}`))
		client := s.asker(p)
		for _, c := range []struct {
			grpccall.Call
			want     string
			code     codes.Code
			at, most time.Duration
		}{
			{Call: grpccall.Call{Path: "/s/M"}, want: "v1"},
			{Call: grpccall.Call{Path: "/s/M", Headers: h{"x-version": "2"}}, want: "v2"},
			{Call: grpccall.Call{Path: "/t/M", Headers: h{"x-version": "2"}}, want: "v1"},
			{Call: grpccall.Call{Path: "/s.S/Two"}, want: "v2"},
			{Call: grpccall.Call{Path: "/slow/M", Headers: h{"wait": "9000"}}, code: codes.DeadlineExceeded},
			{Call: grpccall.Call{Path: "/retried/M", Headers: h{"fail": "3"}}, want: "v1"},
			{Call: grpccall.Call{Path: "/retried/M", Headers: h{"fail": "4"}}, code: codes.Unavailable},
			{Call: grpccall.Call{Path: "/once/M", Headers: h{"fail": "1"}}, code: codes.Unavailable},
			{Call: grpccall.Call{Path: "/abort/M"}, code: codes.NotFound},
			{Call: grpccall.Call{Path: "/delay/M"}, want: "v1", at: 500 * time.Millisecond},
			{Call: grpccall.Call{Path: "/moved/M"}, code: codes.Unknown},
			{Call: grpccall.Call{Path: "/gone/M"}, code: codes.Unavailable},
			{Call: grpccall.Call{Path: "/empty/M"}, code: codes.Unavailable, most: 10 * time.Second},
			{Call: grpccall.Call{Path: "/unknown/M"}, code: codes.Unavailable, most: 10 * time.Second},
			{Call: grpccall.Call{Path: "/nowhere/M"}, code: codes.Unavailable, most: 10 * time.Second},
			{Call: grpccall.Call{Path: "/s/M", Headers: h{"x-canary": "yes"}}, want: "v2"},
			{Call: grpccall.Call{Path: "/s/M", Headers: h{"x-canary": "no"}}, want: "v1"},
		} {
			c.Target = target
			got := client.Make(c.Call)[0]
			took := time.Duration(got.Micros) * time.Microsecond
			if got.Backend != c.want || got.Code != c.code || took < c.at || c.most > 0 && took > c.most {
				s.Errorf("%s %v: answered by %q with %s (%s) in %s, want %q with %s in %s–%s",
					c.Path, c.Headers, got.Backend, got.Code, got.Error, took, c.want, c.code, c.at, c.most)
			}
		}
		p.Accepted()
	})
}

// TestTrafficShiftsUnderLoad: no call fails while traffic shifts between versions
// that the client knows, because some route leads to each of them.
func TestTrafficShiftsUnderLoad(t *testing.T) {
	eachClient(t, func(s *scene) {
		version := func(n string) string {
			return `{"match": [{"headers": {"x-version": {"exact": "` + n + `"}}}], ` + forwardTo(n) + `}`
		}
		shares := func(one, two int) configstore.Config {
			return s.virtualService(version("v1") + "," + version("v2") + `, {"route": [` + share("v1", one) + `,` + share("v2", two) + `]}`)
		}
		p := s.trafficPlane(s.versions("v1", "v2"), s.subsets("v1", "v2"), shares(100, 0))
		c := s.call(p, target)
		c.follow("v1")
		for range 5 {
			p.Update(shares(50, 50))
			c.follow("v1", "v2")
			p.Update(shares(0, 100))
			c.follow("v2")
			p.Update(shares(100, 0))
			c.follow("v1")
		}
		p.Accepted()
	})
}

// TestTrafficChangesUnderLoad: no call fails while policies come, change and go, but
// for what naming says of grpc-go.
func TestTrafficChangesUnderLoad(t *testing.T) {
	eachClient(t, func(s *scene) {
		p := s.trafficPlane(s.versions("v1", "v2"))
		c := s.call(p, target)
		c.follow("v1", "v2")
		for range 3 {
			p.Create(s.subsets("v1", "v2"))
			p.Create(s.virtualService(`{` + forwardTo("v1") + `}`))
			c.follow("v1")
			p.Update(s.virtualService(`{"route": [` + share("v1", 1) + `,` + share("v2", 1) + `]}`))
			c.follow("v1", "v2")
			p.Update(s.virtualService(`{"match": [{"headers": {"no": {"exact": "one"}}}], "redirect": {"uri": "/"}}, {` + forwardTo("v2") + `}`))
			c.follow("v2")
			p.remove(s.virtualService(`{` + forwardTo("v1") + `}`))
			c.follow("v1", "v2")
			p.remove(s.subsets("v1"))
		}
		c.follow("v1", "v2")
		p.Accepted()
	})
}
