// SPDX-License-Identifier: Apache-2.0

package xdstest

import (
	"strconv"
	"strings"

	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate"
)

// Call is one call of an updater. Fields that the kind does not have are zero.
type Call struct {
	// Kind is the name of the method: "EDSUpdate", "EDSDeltaUpdate" and so on.
	Kind      string
	Shard     xdsupdate.ShardKey
	Hostname  registry.Hostname
	Namespace string
	// Endpoints is the complete list of EDSUpdate and EDSCacheUpdate.
	Endpoints []*registry.Endpoint
	// Changes are the changes of EDSDeltaUpdate.
	Changes []xdsupdate.EndpointChange
	// Push is the push type that an EndpointIndex returns for the change.
	Push xdsupdate.PushType
	// Event is the event of SvcUpdate.
	Event registry.Event
	// Request is the request of ConfigUpdate.
	Request *xdsupdate.PushRequest
	// Cluster and IP are the arguments of ProxyUpdate.
	Cluster registry.ClusterID
	IP      string
}

// String returns the call in one line:
//
//	EDSUpdate External/c1 ns/a.example.com [1.1.1.1:80/http 1.1.1.2:80/http(UnHealthy)]
//	EDSDeltaUpdate External/c1 ns/a.example.com [+1.1.1.1:80/http -1.1.1.2:80/http ~1.1.1.3:80/http]
//	EDSCacheUpdate External/c1 ns/a.example.com []
//	SvcUpdate External/c1 ns/a.example.com add
//	ConfigUpdate full push of ServiceEntry/ns/a.example.com (service 1)
//	ProxyUpdate c1 1.1.1.1
//	RemoveShard External/c1
//
// An endpoint is written as its addresses, its port, the name of the service port, and its health
// unless that is unset or Healthy. "~" marks an endpoint that replaces one with the same key.
func (c Call) String() string {
	service := c.Shard.String() + " " + c.Namespace + "/" + string(c.Hostname)
	switch c.Kind {
	case "EDSUpdate", "EDSCacheUpdate":
		return c.Kind + " " + service + " " + list(c.Endpoints, endpointText)
	case "EDSDeltaUpdate":
		return c.Kind + " " + service + " " + list(c.Changes, changeText)
	case "SvcUpdate":
		return c.Kind + " " + service + " " + c.Event.String()
	case "ConfigUpdate":
		return c.Kind + " " + c.Request.String()
	case "ProxyUpdate":
		return c.Kind + " " + string(c.Cluster) + " " + c.IP
	case "RemoveShard":
		return c.Kind + " " + c.Shard.String()
	default:
		return c.Kind
	}
}

// texts returns the calls in the form of Call.String, nil if there are none.
func texts(calls []Call) []string {
	var out []string
	for _, c := range calls {
		out = append(out, c.String())
	}
	return out
}

// endpointText returns an endpoint in the form of Call.String.
func endpointText(e *registry.Endpoint) string {
	address := strings.Join(e.Addresses, "|")
	if strings.Contains(address, ":") {
		address = "[" + address + "]"
	}
	s := address + ":" + strconv.Itoa(int(e.EndpointPort)) + "/" + e.ServicePortName
	if e.HealthStatus > registry.Healthy {
		s += "(" + e.HealthStatus.String() + ")"
	}
	return s
}

func changeText(c xdsupdate.EndpointChange) string {
	switch {
	case c.Old == nil && c.New == nil:
		return "nothing"
	case c.Old == nil:
		return "+" + endpointText(c.New)
	case c.New == nil:
		return "-" + endpointText(c.Old)
	case registry.CompareEndpointKeys(c.Old, c.New) == 0:
		return "~" + endpointText(c.New)
	default:
		return "-" + endpointText(c.Old) + " +" + endpointText(c.New)
	}
}

// apply applies the call to an index.
func (c Call) apply(index *xdsupdate.EndpointIndex) xdsupdate.PushType {
	switch c.Kind {
	case "EDSUpdate", "EDSCacheUpdate":
		return index.UpdateServiceEndpoints(c.Shard, c.Hostname, c.Namespace, c.Endpoints)
	case "EDSDeltaUpdate":
		return index.UpdateEndpoints(c.Shard, c.Hostname, c.Namespace, c.Changes)
	case "SvcUpdate":
		if c.Event == registry.EventDelete {
			index.DeleteServiceShard(c.Shard, c.Hostname, c.Namespace)
		}
	case "RemoveShard":
		index.RemoveShard(c.Shard)
	default:
	}
	return xdsupdate.NoPush
}

func list[T any](values []T, format func(T) string) string {
	parts := make([]string, len(values))
	for i, v := range values {
		parts[i] = format(v)
	}
	return "[" + strings.Join(parts, " ") + "]"
}
