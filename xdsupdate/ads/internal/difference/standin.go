// SPDX-License-Identifier: Apache-2.0

package difference

import (
	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	"google.golang.org/protobuf/proto"

	"github.com/pilotkit/pilotkit/internal/xdsbuild"
	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate/ads/internal/index"
	"github.com/pilotkit/pilotkit/xdsupdate/ads/internal/resource"
	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
)

// StandIns returns a snapshot of the resources that a gRPC client may have when it comes back on a
// new stream, of a type whose responses list all resources (FullState). Its first response lists all listeners or
// clusters that it is to keep, and another server may have sent these. Routes and assignments are only removed with
// the resources that reference them. So for resources that do not exist, or are hidden from the
// client, the response has placeholders that are made of the name alone. Existing resources are
// sent in their present state, whether it differs from the placeholder or not. So a placeholder
// reveals no existing resource.
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

// standIn returns a listener or a cluster made of its name, or nil for a name that no listener of a
// client has: a server without its listener serves nobody.
func standIn(typeURL, name string) proto.Message {
	if typeURL == envoy.ClusterType {
		return &clusterv3.Cluster{
			Name:                 name,
			ClusterDiscoveryType: &clusterv3.Cluster_Type{Type: clusterv3.Cluster_EDS},
			EdsClusterConfig:     &clusterv3.Cluster_EdsClusterConfig{EdsConfig: xdsbuild.ADS(), ServiceName: name},
		}
	}
	number, host, ok := envoy.ParseListenerName(name)
	if _, inbound, _ := xdsbuild.ParseInboundName(name); inbound || !ok {
		return nil
	}
	if number == 0 {
		// The port is the service's default, which the name does not tell. With another port the
		// client finds no route until it gets the real listener.
		number = guessedPort
	}
	return xdsbuild.APIListener(name, &registry.Service{Hostname: host}, &registry.Port{Number: number})
}

const guessedPort = 80

// SotW has no response for a secret that does not exist, and Envoy waits for the secret: for 15
// seconds by default, together with the listener or cluster that references it and, after a change,
// with all other secrets of a listener. An unreadable secret ends the wait for all secrets, without
// any effect on secrets that Envoy has (Envoy 1.36 and 1.40: SdsApi::onConfigUpdateFailed). So an
// Envoy gets an unreadable secret under a missing name, after all existing secrets, and its NACK is
// expected. Until the secret exists, Envoy closes the connections that need it.

// SecretType is the type URL of secrets.
const SecretType = "type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.Secret" //nolint:gosec // a type URL

// untold returns markers for the missing names that a client does not know to be missing.
func (s State[H]) untold(from *resource.Snapshot) (out []resource.Edit) {
	for _, name := range Missing(s.Snapshot, s.Topics) {
		if from.Find(name) == nil {
			out = append(out, resource.Edit{Name: name, Resource: resource.NewMarker(s.TypeURL, name, resource.Absent)})
		}
	}
	return out
}

// unreadable returns a secret that every Envoy rejects.
func unreadable(name string) *resource.State {
	r := &resource.State{TypeURL: SecretType, Name: name, Marker: resource.Absent, Build: func() (proto.Message, error) {
		noKeys := &tlsv3.Secret_SessionTicketKeys{SessionTicketKeys: &tlsv3.TlsSessionTicketKeys{}} // one is required
		return &tlsv3.Secret{Name: name, Type: noKeys}, nil
	}}
	r.Exists()
	return r
}
