// SPDX-License-Identifier: Apache-2.0

package envoyproxy

import (
	"fmt"
	"maps"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/protobuf/types/known/structpb"
)

// Node is who an Envoy says that it is. The zero value is a router.
type Node struct {
	// Kind is "router", the default, or "sidecar".
	Kind string
	// Name and Namespace identify the workload: "proxy" and "default" by default.
	Name, Namespace string
	// IP is that of the workload, by default one that no endpoint of a test has: an
	// Envoy with the address of an endpoint is that endpoint.
	IP       string
	Labels   map[string]string
	Locality *core.Locality
	// Metadata is added to the namespace and the labels.
	Metadata map[string]any
}

// ID returns the node id.
func (n Node) ID() string {
	n = n.withDefaults()
	return fmt.Sprintf("%s~%s~%s.%s~%s.svc.cluster.local", n.Kind, n.IP, n.Name, n.Namespace, n.Namespace)
}

func (n Node) withDefaults() Node {
	for field, value := range map[*string]string{&n.Kind: "router", &n.Name: "proxy", &n.Namespace: "default", &n.IP: "127.255.255.9"} {
		if *field == "" {
			*field = value
		}
	}
	return n
}

func (n Node) message() (*core.Node, error) {
	n = n.withDefaults()
	metadata := map[string]any{"NAMESPACE": n.Namespace}
	if len(n.Labels) > 0 {
		labels := make(map[string]any, len(n.Labels))
		for k, v := range n.Labels {
			labels[k] = v
		}
		metadata["LABELS"] = labels
	}
	maps.Copy(metadata, n.Metadata)
	m, err := structpb.NewStruct(metadata)
	if err != nil {
		return nil, err
	}
	return &core.Node{Id: n.ID(), Cluster: n.Name, Locality: n.Locality, Metadata: m}, nil
}
