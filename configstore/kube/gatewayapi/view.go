// SPDX-License-Identifier: Apache-2.0

package gatewayapi

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
)

// view reads inputs for one result, and records each read as a dependency.
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

// namespaceLabels returns the labels of a namespace. An API server sets the label of the name on
// each Namespace, so that a namespace without a Namespace object, as in a directory, has at least
// this label. Its other labels are unknown, and ok is false.
func (v view) namespaceLabels(name string) (labels map[string]string, ok bool) {
	v.read(aNamespace, Key{Name: name})
	ns := v.c.namespaces[Key{Name: name}]
	if ns == nil {
		return map[string]string{corev1.LabelMetadataName: name}, false
	}
	return ns.labels, true
}

// selects reports whether a selector selects a namespace. A missing selector selects none.
func (v view) selects(s *metav1.LabelSelector, name string) bool {
	labels, known := v.namespaceLabels(name)
	return s != nil && (known || onlyOfName(s)) && selects(s)(labels)
}

// onlyOfName reports whether a selector uses only the label of the namespace's name.
func onlyOfName(s *metav1.LabelSelector) bool {
	for label := range s.MatchLabels {
		if label != corev1.LabelMetadataName {
			return false
		}
	}
	return !slices.ContainsFunc(s.MatchExpressions, func(r metav1.LabelSelectorRequirement) bool { return r.Key != corev1.LabelMetadataName })
}

// namespacesWhere returns the names of the namespaces that a selector matches, sorted, among the
// known namespaces and the namespaces of routes.
func (v view) namespacesWhere(s *metav1.LabelSelector) []string {
	v.read(allNamespaces, Key{})
	matches := selects(s)
	var out []string
	for key, ns := range v.c.namespaces {
		if matches(ns.labels) {
			out = append(out, key.Name)
		}
	}
	for name := range v.c.routesIn {
		if v.c.namespaces[Key{Name: name}] == nil && v.selects(s, name) {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}

func (v view) service(key Key) *service {
	v.read(aService, key)
	return v.c.services[key]
}

// endpointPorts returns the names of the ports with endpoints of a Service.
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

// entriesSeen returns the ServiceEntries of a host that a namespace sees, and whether there are
// others.
func (v view) entriesSeen(ns, host string) (seen []Key, hidden bool) {
	v.read(aHost, Key{Name: host})
	for key := range v.c.entriesOf[host] {
		if exportedTo(v.c.serviceEntries[key].Spec.GetExportTo(), v.c.opts.DefaultServiceExportTo, key.Namespace, ns) {
			seen = append(seen, key)
		} else {
			hidden = true
		}
	}
	return seen, hidden
}

// granted reports whether an object of a kind and namespace may reference an object of another
// namespace.
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

// usersOf returns the Gateways whose routes reference a Service or a ServiceEntry, sorted.
func (v view) usersOf(of target) []Key {
	v.read(usersOf, of.Key)
	return slices.SortedFunc(maps.Keys(v.c.users[of]), Key.Compare)
}
