// SPDX-License-Identifier: Apache-2.0

package gatewayapi

import (
	"maps"
	"slices"

	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
)

// view is how one result reads: what it reads, it depends on.
type view struct {
	c *Converter
	n node
}

func (v view) read(kind topicKind, key Key) { v.c.read(v.n, topic{kind, key}) }

func (v view) class(name string) *gatewayv1.GatewayClass {
	v.read(aClass, Key{Name: name})
	return v.c.classes[Key{Name: name}]
}

func (v view) gateway(key Key) *gatewayv1.Gateway {
	v.read(aGateway, key)
	return v.c.gateways[key]
}

func (v view) namespaceLabels(name string) (labels map[string]string, ok bool) {
	v.read(aNamespace, Key{Name: name})
	ns := v.c.namespaces[Key{Name: name}]
	if ns == nil {
		return nil, false
	}
	return ns.labels, true
}

// namespacesWhere returns the names of the namespaces whose labels are as asked, sorted.
func (v view) namespacesWhere(matches func(map[string]string) bool) []string {
	v.read(allNamespaces, Key{})
	var out []string
	for key, ns := range v.c.namespaces {
		if matches(ns.labels) {
			out = append(out, key.Name)
		}
	}
	slices.Sort(out)
	return out
}

func (v view) service(key Key) *service {
	v.read(aService, key)
	return v.c.services[key]
}

// endpointPorts returns the names of the ports at which a Service has endpoints.
func (v view) endpointPorts(key Key) map[string]bool {
	v.read(endpointsOf, key)
	ports := map[string]bool{}
	for at := range v.c.slicesOf[key] {
		for _, name := range v.c.slices[at].ports {
			ports[name] = true
		}
	}
	return ports
}

func (v view) secret(key Key) *secret {
	v.read(aSecret, key)
	return v.c.secrets[key]
}

func (v view) configMap(key Key) *configMap {
	v.read(aConfigMap, key)
	return v.c.configMaps[key]
}

func (v view) serviceEntry(key Key) *ServiceEntry {
	v.read(aServiceEntry, key)
	return v.c.serviceEntries[key]
}

// sees reports whether a namespace sees a host of some ServiceEntry.
func (v view) sees(ns, host string) bool {
	v.read(aHost, Key{Name: host})
	for key := range v.c.entriesOf[host] {
		if v.c.serviceEntries[key].exportedTo(ns, v.c.opts.DefaultServiceExportTo) {
			return true
		}
	}
	return false
}

// granted reports whether an object of a kind and namespace may refer to a name of another
// kind in another namespace.
func (v view) granted(from, to reference) bool {
	if from.namespace == to.namespace {
		return true
	}
	v.read(grantsOf, Key{Namespace: to.namespace})
	for key := range v.c.grantsIn[to.namespace] {
		if grants(v.c.grants[key], from, to) {
			return true
		}
	}
	return false
}

// usersOf returns the Gateways whose routes name a Service, sorted.
func (v view) usersOf(key Key) []Key {
	v.read(usersOf, key)
	return slices.SortedFunc(maps.Keys(v.c.users[key]), Key.Compare)
}
