// SPDX-License-Identifier: Apache-2.0

package xdsbuild

import (
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	tcp "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/tcp_proxy/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	"google.golang.org/protobuf/types/known/durationpb"
)

// TCPProxy configures the destination of connections.
type TCPProxy struct {
	// Cluster gets all connections if Shares is empty.
	Cluster string
	// Shares are the clusters that connections are distributed to by weight. Clusters of weight 0
	// get none.
	Shares []ClusterShare
	// IdleTimeout closes connections without traffic. Nil means Envoy's default, an hour.
	IdleTimeout *durationpb.Duration
	// MaxConnectionDuration closes connections after that time. Nil means never.
	MaxConnectionDuration *durationpb.Duration
	// HashSourceIP makes clusters with a hash select the endpoint by the client's address.
	HashSourceIP bool
}

// ClusterShare is a cluster and its weight.
type ClusterShare struct {
	Cluster string
	Weight  uint32
}

// Filter returns the network filter, nil if connections have no destination.
func (p TCPProxy) Filter() *listenerv3.Filter {
	m := &tcp.TcpProxy{IdleTimeout: duration(p.IdleTimeout), MaxDownstreamConnectionDuration: duration(p.MaxConnectionDuration)}
	if len(p.Shares) == 0 {
		m.StatPrefix = p.Cluster
		m.ClusterSpecifier = &tcp.TcpProxy_Cluster{Cluster: p.Cluster}
	} else {
		weighted := p.weighted()
		if len(weighted) > 0 {
			m.StatPrefix = weighted[0].GetName()
		}
		m.ClusterSpecifier = &tcp.TcpProxy_WeightedClusters{
			WeightedClusters: &tcp.TcpProxy_WeightedCluster{Clusters: weighted},
		}
	}
	if m.GetStatPrefix() == "" {
		return nil
	}
	if p.HashSourceIP {
		m.HashPolicy = []*typev3.HashPolicy{{
			PolicySpecifier: &typev3.HashPolicy_SourceIp_{SourceIp: &typev3.HashPolicy_SourceIp{}},
		}}
	}
	return NetworkFilter("envoy.filters.network.tcp_proxy", m)
}

func (p TCPProxy) weighted() []*tcp.TcpProxy_WeightedCluster_ClusterWeight {
	var out []*tcp.TcpProxy_WeightedCluster_ClusterWeight
	for _, s := range p.Shares {
		if s.Weight > 0 && s.Cluster != "" {
			out = append(out, &tcp.TcpProxy_WeightedCluster_ClusterWeight{Name: s.Cluster, Weight: s.Weight})
		}
	}
	return out
}
