// SPDX-License-Identifier: Apache-2.0

package difference

import (
	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	"google.golang.org/protobuf/proto"

	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate/ads/internal/index"
	"github.com/pilotkit/pilotkit/xdsupdate/ads/internal/resource"
	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
)

// StandIns returns a snapshot with what a gRPC client may have that comes back on a
// new stream (SotW). Its first answer lists all listeners or clusters that it is to
// keep, and the server that sent them may be another one: what does not exist, or is
// hidden from the client, is therefore in the answer as the name alone says that it
// looks like. Of what exists the client is sent the present state, as it is another
// one, or the same. So a stand-in says nothing of what there is.
func StandIns[H comparable](typeURL string, topics []*index.Topic[H]) *resource.Snapshot {
	var list []*resource.State
	for _, t := range topics {
		r := &resource.State{TypeURL: typeURL, Name: t.Name, Build: func() (proto.Message, error) { return standIn(typeURL, t.Name), nil }}
		if r.Exists() {
			list = append(list, r)
		}
	}
	return resource.NewSnapshot(list)
}

// HasStandIns reports whether there are stand-ins for resources of a type: for those
// that a SotW response removes by not listing them. Routes and assignments are only
// removed with what points to them.
func HasStandIns(typeURL string) bool {
	return typeURL == envoy.ListenerType || typeURL == envoy.ClusterType
}

// standIn returns a listener or a cluster made of nothing but its name; nil for a
// name that no listener of a client has: a server without its listener serves nobody.
func standIn(typeURL, name string) proto.Message {
	if typeURL == envoy.ClusterType {
		return &clusterv3.Cluster{
			Name:                 name,
			ClusterDiscoveryType: &clusterv3.Cluster_Type{Type: clusterv3.Cluster_EDS},
			EdsClusterConfig:     &clusterv3.Cluster_EdsClusterConfig{EdsConfig: envoy.ADS(), ServiceName: name},
		}
	}
	number, host, ok := envoy.ParseListenerName(name)
	if _, inbound, _ := envoy.ParseInboundName(name); inbound || !ok {
		return nil
	}
	if number == 0 {
		// The port is the service's default, which the name does not say. With another
		// one the client finds no route until the true listener comes.
		number = guessedPort
	}
	return envoy.APIListener(name, &registry.Service{Hostname: host}, &registry.Port{Number: number})
}

const guessedPort = 80
