// SPDX-License-Identifier: Apache-2.0

package gatewayapi

import (
	"cmp"
	"reflect"
	"strings"

	networking "istio.io/api/networking/v1alpha3"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
)

// Key identifies an object of one kind. The Namespace of a cluster-scoped object is empty.
type Key struct{ Namespace, Name string }

// String returns "namespace/name".
func (k Key) String() string { return k.Namespace + "/" + k.Name }

// Compare orders by namespace and name.
func (k Key) Compare(l Key) int {
	return cmp.Or(strings.Compare(k.Namespace, l.Namespace), strings.Compare(k.Name, l.Name))
}

// ServiceEntry is an Istio ServiceEntry that a route may reference: as a parent, or by one of its
// hosts as a backend of kind Hostname.
type ServiceEntry struct {
	Key

	// Spec must not be nil.
	Spec *networking.ServiceEntry
}

// Object is one of the types of objects that a Converter reads. Other versions of the Gateway API
// kinds have the same fields; the caller converts them.
type Object interface {
	*gatewayv1.GatewayClass | *gatewayv1.Gateway | *gatewayv1.ListenerSet |
		*gatewayv1.HTTPRoute | *gatewayv1.GRPCRoute | *gatewayv1.TLSRoute | *gatewayv1.TCPRoute |
		*gatewayv1.ReferenceGrant | *gatewayv1.BackendTLSPolicy |
		*corev1.Namespace | *corev1.Service | *corev1.Secret | *corev1.ConfigMap |
		*discoveryv1.EndpointSlice | *ServiceEntry
}

// Change is the new state of one object. Create it with Set or Delete; the zero value changes
// nothing.
type Change struct {
	apply func(*Converter)
}

// Set returns the change of an object to its present state, which may be its first. The object must
// not be modified afterwards. Of Secrets and ConfigMaps the Converter stores only whether they are
// usable.
func Set[T Object](object T) Change {
	switch o := any(object).(type) {
	case *gatewayv1.GatewayClass:
		return Change{func(c *Converter) { c.setClass(o.Name, o) }}
	case *gatewayv1.Gateway:
		return Change{func(c *Converter) { c.setGateway(keyOf(o), o) }}
	case *gatewayv1.ListenerSet:
		return Change{func(c *Converter) { c.setListenerSet(keyOf(o), o) }}
	case *gatewayv1.HTTPRoute:
		return setRoute(KindHTTPRoute, keyOf(o), o)
	case *gatewayv1.GRPCRoute:
		return setRoute(KindGRPCRoute, keyOf(o), o)
	case *gatewayv1.TLSRoute:
		return setRoute(KindTLSRoute, keyOf(o), o)
	case *gatewayv1.TCPRoute:
		return setRoute(KindTCPRoute, keyOf(o), o)
	case *gatewayv1.ReferenceGrant:
		return Change{func(c *Converter) { c.setGrant(keyOf(o), o) }}
	case *gatewayv1.BackendTLSPolicy:
		return Change{func(c *Converter) { c.setPolicy(keyOf(o), o) }}
	case *corev1.Namespace:
		return Change{func(c *Converter) { c.setNamespace(o.Name, namespaceOfObject(o)) }}
	case *corev1.Service:
		return Change{func(c *Converter) { c.setService(keyOf(o), serviceOf(o)) }}
	case *corev1.Secret:
		return Change{func(c *Converter) { c.setSecret(keyOf(o), secretOf(o)) }}
	case *corev1.ConfigMap:
		return Change{func(c *Converter) { c.setConfigMap(keyOf(o), configMapOf(o)) }}
	case *discoveryv1.EndpointSlice:
		return Change{func(c *Converter) { c.setSlice(keyOf(o), sliceOf(o)) }}
	case *ServiceEntry:
		return Change{func(c *Converter) { c.setServiceEntry(o.Key, o) }}
	}
	return Change{}
}

// Delete returns the deletion of an object, which need not exist.
func Delete[T Object](namespace, name string) Change {
	key := Key{namespace, name}
	var object T
	switch any(object).(type) {
	case *gatewayv1.GatewayClass:
		return Change{func(c *Converter) { c.setClass(name, nil) }}
	case *gatewayv1.Gateway:
		return Change{func(c *Converter) { c.setGateway(key, nil) }}
	case *gatewayv1.ListenerSet:
		return Change{func(c *Converter) { c.setListenerSet(key, nil) }}
	case *gatewayv1.HTTPRoute:
		return setRoute(KindHTTPRoute, key, nil)
	case *gatewayv1.GRPCRoute:
		return setRoute(KindGRPCRoute, key, nil)
	case *gatewayv1.TLSRoute:
		return setRoute(KindTLSRoute, key, nil)
	case *gatewayv1.TCPRoute:
		return setRoute(KindTCPRoute, key, nil)
	case *gatewayv1.ReferenceGrant:
		return Change{func(c *Converter) { c.setGrant(key, nil) }}
	case *gatewayv1.BackendTLSPolicy:
		return Change{func(c *Converter) { c.setPolicy(key, nil) }}
	case *corev1.Namespace:
		return Change{func(c *Converter) { c.setNamespace(name, nil) }}
	case *corev1.Service:
		return Change{func(c *Converter) { c.setService(key, nil) }}
	case *corev1.Secret:
		return Change{func(c *Converter) { c.setSecret(key, nil) }}
	case *corev1.ConfigMap:
		return Change{func(c *Converter) { c.setConfigMap(key, nil) }}
	case *discoveryv1.EndpointSlice:
		return Change{func(c *Converter) { c.setSlice(key, nil) }}
	case *ServiceEntry:
		return Change{func(c *Converter) { c.setServiceEntry(key, nil) }}
	}
	return Change{}
}

// setRoute is Set for all kinds of routes; a nil object deletes the route.
func setRoute(kind Kind, key Key, object metav1.Object) Change {
	return Change{func(c *Converter) { c.setRoute(routeKey{kind, key}, object) }}
}

func keyOf(o metav1.Object) Key { return Key{o.GetNamespace(), o.GetName()} }

// store contains the objects of one kind.
type store[V any] map[Key]*V

// set replaces the value of a key, and reports whether it changed; nil removes the key.
func (s store[V]) set(key Key, next *V) (changed bool) {
	old := s[key]
	if old == nil && next == nil || old != nil && next != nil && reflect.DeepEqual(old, next) {
		return false
	}
	if next == nil {
		delete(s, key)
	} else {
		s[key] = next
	}
	return true
}

func (c *Converter) setClass(name string, o *gatewayv1.GatewayClass) {
	key := Key{Name: name}
	if c.classes.set(key, o) {
		c.touch(topic{aClass, key})
		c.mark(node{nodeClassStatus, "", key})
	}
}

func (c *Converter) setGateway(key Key, o *gatewayv1.Gateway) {
	if c.gateways.set(key, o) {
		c.touch(topic{aGateway, key})
		c.mark(node{nodeGateway, "", key})
	}
}

func (c *Converter) setListenerSet(key Key, o *gatewayv1.ListenerSet) {
	old := c.listenerSets[key]
	if !c.listenerSets.set(key, o) {
		return
	}
	if old != nil {
		c.setsOf.remove(gatewayOfSet(old), key)
		c.mark(node{nodeGateway, "", gatewayOfSet(old)})
	}
	if o != nil {
		c.setsOf.add(gatewayOfSet(o), key)
		c.mark(node{nodeGateway, "", gatewayOfSet(o)})
	}
	c.mark(node{nodeListenerSetStatus, "", key})
}

func (c *Converter) setRoute(key routeKey, o metav1.Object) {
	if o == nil {
		if c.routeObjects[key] == nil {
			return
		}
		delete(c.routeObjects, key)
		if c.routesIn.remove(key.Namespace, key); len(c.routesIn[key.Namespace]) == 0 {
			c.touchUnknown(key.Namespace)
		}
	} else {
		if old := c.routeObjects[key]; old != nil && reflect.DeepEqual(old, o) {
			return
		}
		c.routeObjects[key] = o
		if c.routesIn.add(key.Namespace, key); len(c.routesIn[key.Namespace]) == 1 {
			c.touchUnknown(key.Namespace)
		}
	}
	c.mark(node{nodeRoute, key.Kind, key.Key})
}

// touchUnknown records that the first route of a namespace was created, or the last one deleted.
// That matters only for a namespace without a Namespace object.
func (c *Converter) touchUnknown(namespace string) {
	if c.namespaces[Key{Name: namespace}] == nil {
		c.touch(topic{allNamespaces, Key{}})
	}
}

func (c *Converter) setGrant(key Key, o *gatewayv1.ReferenceGrant) {
	if !c.grants.set(key, o) {
		return
	}
	if o == nil {
		c.grantsIn.remove(key.Namespace, key)
	} else {
		c.grantsIn.add(key.Namespace, key)
	}
	c.touch(topic{grantsOf, Key{Namespace: key.Namespace}})
}

func (c *Converter) setPolicy(key Key, o *gatewayv1.BackendTLSPolicy) {
	old := c.policies[key]
	if !c.policies.set(key, o) {
		return
	}
	for _, of := range targets(old) {
		c.policiesOf.remove(of, key)
		c.mark(of.node())
	}
	for _, of := range targets(o) {
		c.policiesOf.add(of, key)
		c.mark(of.node())
	}
	c.mark(node{nodePolicyStatus, "", key})
}

func (c *Converter) setNamespace(name string, next *namespace) {
	key := Key{Name: name}
	if c.namespaces.set(key, next) {
		c.touch(topic{aNamespace, key})
		c.touch(topic{allNamespaces, Key{}})
	}
}

func (c *Converter) setService(key Key, next *service) {
	if c.services.set(key, next) {
		c.touch(topic{aService, key})
	}
}

func (c *Converter) setSecret(key Key, next *secret) {
	if c.secrets.set(key, next) {
		c.touch(topic{aSecret, key})
	}
}

func (c *Converter) setConfigMap(key Key, next *configMap) {
	if c.configMaps.set(key, next) {
		c.touch(topic{aConfigMap, key})
	}
}

func (c *Converter) setSlice(key Key, next *slice) {
	old := c.slices[key]
	if !c.slices.set(key, next) {
		return
	}
	if old != nil {
		c.slicesOf.remove(old.service, key)
		c.touch(topic{endpointsOf, old.service})
	}
	if next != nil {
		c.slicesOf.add(next.service, key)
		c.touch(topic{endpointsOf, next.service})
	}
}

func (c *Converter) setServiceEntry(key Key, next *ServiceEntry) {
	old := c.serviceEntries[key]
	if old != nil && next != nil && sameServiceEntry(old, next) || old == nil && next == nil {
		return
	}
	if old != nil {
		delete(c.serviceEntries, key)
		for _, host := range old.Spec.GetHosts() {
			c.entriesOf.remove(host, key)
			c.touch(topic{aHost, Key{Name: host}})
		}
	}
	if next != nil {
		c.serviceEntries[key] = next
		for _, host := range next.Spec.GetHosts() {
			c.entriesOf.add(host, key)
			c.touch(topic{aHost, Key{Name: host}})
		}
	}
	c.touch(topic{aServiceEntry, key})
}
