// SPDX-License-Identifier: Apache-2.0

package traffic_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/codes"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"

	"github.com/pilotkit/pilotkit/configstore/istio"
	"github.com/pilotkit/pilotkit/internal/test/tier"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic"
)

// TestSubsetsOfRealCalls: calls go to the subset that the route names, a header to
// another; an endpoint that changes its labels changes sides without a failed call.
func TestSubsetsOfRealCalls(t *testing.T) {
	m := startMesh(t, traffic.Options{})
	one, two, other := m.start("one", "version=v1"), m.start("two", "version=v2"), m.start("other", "version=v2")
	m.place(one, two, other)
	m.apply(istio.DestinationRule, "quotes", `{"host":"`+host+`","subsets":[{"name":"v1","labels":{"version":"v1"}},{"name":"v2","labels":{"version":"v2"}}]}`)
	m.apply(istio.VirtualService, "quotes", `{"hosts":["`+host+`"],"http":[
		{"match":[{"headers":{"x":{"exact":"new"}}}],"route":[{"destination":{"host":"`+host+`","subset":"v2"}}]},
		{"route":[{"destination":{"host":"`+host+`","subset":"v1"}}]}]}`)
	client := m.client("r/z")
	if diff := cmp.Diff(map[string]int{"one": 50}, m.calls(client, 50, noHeader)); diff != "" {
		t.Errorf("v1 (-want +got):\n%s", diff)
	}
	if got := m.calls(client, 50, func(int) string { return "new" }); got["two"] == 0 || got["other"] == 0 || got["one"] > 0 {
		t.Errorf("v2: %v", got)
	}
	moved := newEndpoint([]string{"version=v1"})
	moved.Addresses, moved.EndpointPort = other.endpoint.Addresses, other.endpoint.EndpointPort
	other.endpoint = moved
	m.place(one, two, other)
	m.until("v1 to have two endpoints", func() bool { return m.calls(client, 10, noHeader)["other"] > 0 })
	m.until("v2 to have one endpoint", func() bool {
		got := m.calls(client, 20, func(int) string { return "new" })
		return got["two"] == 20
	})
	m.refused()
}

// TestRingHashOfRealCalls: calls with one value of the header go to one backend,
// those with others to others. Maglev, which gRPC clients refuse, does the same.
func TestRingHashOfRealCalls(t *testing.T) {
	for _, algorithm := range []string{`"ringHash":{"minimumRingSize":128}`, `"maglev":{"tableSize":101}`} {
		t.Run(algorithm, func(t *testing.T) {
			m := startMesh(t, traffic.Options{})
			m.place(m.start("a"), m.start("b"), m.start("c"))
			m.apply(istio.DestinationRule, "quotes", `{"host":"`+host+`","trafficPolicy":{"loadBalancer":{"consistentHash":{"httpHeaderName":"x",`+algorithm+`}}}}`)
			client := m.client("r/z")
			backends := make(map[string]bool)
			for i := range 30 {
				got := m.calls(client, 5, func(int) string { return fmt.Sprint("user-", i) })
				if len(got) != 1 {
					t.Errorf("user %d: %v", i, got)
				}
				for name := range got {
					backends[name] = true
				}
			}
			if len(backends) < 2 {
				t.Errorf("all users at %v", backends)
			}
			m.refused()
		})
	}
}

// TestOutlierEjectionOfRealCalls: an endpoint whose calls all fail gets none any
// more; without the option gRPC clients know no outlier detection.
func TestOutlierEjectionOfRealCalls(t *testing.T) {
	const rule = `{"host":"` + host + `","trafficPolicy":{"outlierDetection":{
		"consecutive5xxErrors":3,"interval":"0.050s","baseEjectionTime":"300s","maxEjectionPercent":100}}}`
	healthy := func(m *mesh, client healthpb.HealthClient) bool {
		for range 30 {
			if _, err := m.call(client, ""); err != nil {
				return false
			}
		}
		return true
	}
	t.Run("with it", func(t *testing.T) {
		m := startMesh(t, traffic.Options{OutliersForGRPC: true})
		good, bad := m.start("good"), m.start("bad")
		m.place(good, bad)
		m.apply(istio.DestinationRule, "quotes", rule)
		client := m.client("r/z")
		m.until("both", func() bool { return len(m.calls(client, 10, noHeader)) == 2 })
		bad.failing.Store(true)
		m.until("the bad endpoint to be ejected", func() bool { return healthy(m, client) })
		m.refused()
	})
	t.Run("without it", func(t *testing.T) {
		m := startMesh(t, traffic.Options{})
		good, bad := m.start("good"), m.start("bad")
		m.place(good, bad)
		m.apply(istio.DestinationRule, "quotes", rule)
		client := m.client("r/z")
		m.until("both", func() bool { return len(m.calls(client, 10, noHeader)) == 2 })
		bad.failing.Store(true)
		for range 20 {
			if healthy(m, client) {
				t.Fatal("ejected")
			}
		}
		m.refused()
	})
}

// TestCircuitBreakingOfRealCalls: with one request at a time the second call fails
// at once.
func TestCircuitBreakingOfRealCalls(t *testing.T) {
	m := startMesh(t, traffic.Options{})
	only := m.start("only")
	m.place(only)
	m.apply(istio.DestinationRule, "quotes", `{"host":"`+host+`","trafficPolicy":{"connectionPool":{"http":{"http2MaxRequests":1}}}}`)
	client := m.client("r/z")
	m.calls(client, 3, noHeader)
	done := make(chan error, 1)
	go func() {
		_, err := client.Check(m.ctx, &healthpb.HealthCheckRequest{Service: "hold"})
		done <- err
	}()
	<-only.held
	if _, err := m.call(client, ""); status.Code(err) != codes.Unavailable {
		t.Errorf("the second call: %v", err)
	}
	close(only.hold)
	if err := <-done; err != nil {
		t.Errorf("the first call: %v", err)
	}
	m.calls(client, 3, noHeader)
	m.refused()
}

// TestFailoverOfRealCalls: calls stay in the client's locality; when its backends
// die they go to the next, and come back, under load and without a failed call.
func TestFailoverOfRealCalls(t *testing.T) {
	m := startMesh(t, traffic.Options{})
	near, region, far := m.start("near", "locality=eu/a"), m.start("region", "locality=eu/b"), m.start("far", "locality=us/a")
	m.place(near, region, far)
	m.apply(istio.DestinationRule, "quotes", `{"host":"`+host+`","trafficPolicy":{"outlierDetection":{"consecutive5xxErrors":5}}}`)
	client := m.client("eu/a")
	if diff := cmp.Diff(map[string]int{"near": 50}, m.calls(client, 50, noHeader)); diff != "" {
		t.Errorf("in the own locality (-want +got):\n%s", diff)
	}
	failed := make(chan error, 1)
	enough, load := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(load)
		for {
			select {
			case <-enough:
				return
			default:
			}
			if _, err := m.call(client, ""); err != nil {
				failed <- err
				return
			}
		}
	}()
	answers := func(want string) func() bool {
		return func() bool {
			got := m.calls(client, 20, noHeader)
			return got[want] == 20
		}
	}
	address := func(b *backend) string { return fmt.Sprintf("%s:%d", b.endpoint.Addresses[0], b.endpoint.EndpointPort) }
	near.server.GracefulStop()
	m.until("the region to take over", answers("region"))
	region.server.GracefulStop()
	m.until("another region to take over", answers("far"))
	near.listen(m, address(near))
	m.until("the own locality to come back", answers("near"))
	m.place(near, far)
	m.until("the own locality to stay", answers("near"))
	close(enough)
	<-load
	select {
	case err := <-failed:
		t.Errorf("a call failed: %v", err)
	default:
	}
	m.refused()
}

// TestDistributionOfRealCalls: localities get the shares that a rule gives them.
func TestDistributionOfRealCalls(t *testing.T) {
	m := startMesh(t, traffic.Options{})
	m.place(m.start("near", "locality=eu/a"), m.start("far", "locality=us/a"), m.start("none", "locality=asia/a"))
	m.apply(istio.DestinationRule, "quotes", `{"host":"`+host+`","trafficPolicy":{"loadBalancer":{"localityLbSetting":{
		"distribute":[{"from":"eu/*","to":{"eu/*":80,"us/*":20}}]}}}}`)
	client := m.client("eu/a")
	// Until both are connected, the first one gets all calls.
	m.until("both localities to be connected", func() bool {
		got := m.calls(client, 20, noHeader)
		return got["near"] > 0 && got["far"] > 0
	})
	n := tier.Share(10_000)
	got := m.calls(client, n, noHeader)
	want := []float64{0.8 * float64(n), 0.2 * float64(n)}
	if got["none"] != 0 || !plausible([]int{got["near"], got["far"]}, want) {
		t.Errorf("%v, want about %v", got, want)
	}
	m.refused()
}

// plausible is a chi-square test of two classes: it fails once in a million runs.
func plausible(got []int, want []float64) bool {
	sum := 0.0
	for i := range got {
		d := float64(got[i]) - want[i]
		sum += d * d / want[i]
	}
	return sum < 23.93
}

// TestUnknownDestinationsOfRealCalls: a route to what does not exist fails its own
// calls and no others.
func TestUnknownDestinationsOfRealCalls(t *testing.T) {
	m := startMesh(t, traffic.Options{})
	m.place(m.start("one"))
	for _, destination := range []string{`"host":"nowhere.example.com"`, `"host":"` + host + `","subset":"none"`, `"host":"` + host + `","port":{"number":81}`} {
		m.apply(istio.VirtualService, "quotes", `{"hosts":["`+host+`"],"http":[
			{"match":[{"headers":{"x":{"exact":"lost"}}}],"route":[{"destination":{`+destination+`}}]},
			{"route":[{"destination":{"host":"`+host+`"}}]}]}`)
		client := m.client("r/z")
		m.calls(client, 10, noHeader)
		_, err := client.Check(withHeader(m.ctx, "lost"), &healthpb.HealthCheckRequest{})
		if status.Code(err) != codes.Unavailable {
			t.Errorf("%s: %v", destination, err)
		}
		m.calls(client, 10, noHeader)
	}
	m.refused()
}
