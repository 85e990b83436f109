// SPDX-License-Identifier: Apache-2.0

package xdsbuild

import (
	"math"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"
	networking "istio.io/api/networking/v1alpha3"
)

// unlimited is Istio 1.30's value of a limit that a policy does not set. Envoy's defaults, such as
// 3 concurrent retries, suit only small services.
const unlimited = math.MaxUint32

// Envoy's defaults of a retry budget.
const (
	retryBudgetPercent     = 20
	retryBudgetConcurrency = 3
)

// setPool sets timeouts, limits and keepalive of connections.
func (u *Upstream) setPool(c *clusterv3.Cluster) {
	tcp, http := u.Policy.GetConnectionPool().GetTcp(), u.Policy.GetConnectionPool().GetHttp()
	if d := positive(u.Mesh.GetConnectTimeout()); d != nil {
		c.ConnectTimeout = d
	}
	if d := positive(tcp.GetConnectTimeout()); d != nil {
		c.ConnectTimeout = d
	}
	c.CircuitBreakers = &clusterv3.CircuitBreakers{Thresholds: []*clusterv3.CircuitBreakers_Thresholds{{
		MaxConnections:     limit(tcp.GetMaxConnections()),
		MaxPendingRequests: limit(http.GetHttp1MaxPendingRequests()),
		MaxRequests:        limit(http.GetHttp2MaxRequests()),
		MaxRetries:         limit(http.GetMaxRetries()),
		RetryBudget:        retryBudget(u.Policy.GetRetryBudget()),
	}}}
	if keepalive := u.keepalive(); keepalive != nil {
		c.UpstreamConnectionOptions = &clusterv3.UpstreamConnectionOptions{TcpKeepalive: keepalive}
	}
}

// limit returns a limit. A number that is not positive means no limit.
func limit(n int32) *wrapperspb.UInt32Value {
	if n <= 0 {
		return wrapperspb.UInt32(unlimited)
	}
	return unsigned(n)
}

// unsigned returns n, or 0 if n is negative.
func unsigned(n int32) *wrapperspb.UInt32Value { return wrapperspb.UInt32(uint32(max(0, n))) }

func retryBudget(b *networking.TrafficPolicy_RetryBudget) *clusterv3.CircuitBreakers_Thresholds_RetryBudget {
	if b == nil {
		return nil
	}
	percent, concurrency := float64(retryBudgetPercent), uint32(retryBudgetConcurrency)
	if b.GetPercent() != nil {
		percent = b.GetPercent().GetValue()
	}
	if b.GetMinRetryConcurrency() != 0 {
		concurrency = b.GetMinRetryConcurrency()
	}
	return &clusterv3.CircuitBreakers_Thresholds_RetryBudget{
		BudgetPercent: boundedPercent(percent), MinRetryConcurrency: wrapperspb.UInt32(concurrency),
	}
}

// boundedPercent returns a percentage within the range that Envoy accepts.
func boundedPercent(p float64) *typev3.Percent { return &typev3.Percent{Value: min(100, max(0, p))} }

// keepalive returns the TCP keepalive. Each field of the policy overrides that of the mesh. The
// result is nil if neither sets any.
func (u *Upstream) keepalive() *core.TcpKeepalive {
	var out *core.TcpKeepalive
	for _, k := range []*networking.ConnectionPoolSettings_TCPSettings_TcpKeepalive{
		u.Mesh.GetTcpKeepalive(), u.Policy.GetConnectionPool().GetTcp().GetTcpKeepalive(),
	} {
		if k == nil {
			continue
		}
		if out == nil {
			out = &core.TcpKeepalive{}
		}
		if k.GetProbes() > 0 {
			out.KeepaliveProbes = wrapperspb.UInt32(k.GetProbes())
		}
		if k.GetTime() != nil {
			out.KeepaliveTime = seconds(k.GetTime())
		}
		if k.GetInterval() != nil {
			out.KeepaliveInterval = seconds(k.GetInterval())
		}
	}
	return out
}

func seconds(d *durationpb.Duration) *wrapperspb.UInt32Value {
	return wrapperspb.UInt32(uint32(min(math.MaxUint32, max(0, d.GetSeconds()))))
}

// positive returns a copy of a duration, nil if it is not above zero.
func positive(d *durationpb.Duration) *durationpb.Duration {
	if d == nil || d.AsDuration() <= 0 {
		return nil
	}
	return duration(d)
}
