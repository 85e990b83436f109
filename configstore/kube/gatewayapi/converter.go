// SPDX-License-Identifier: Apache-2.0

package gatewayapi

import (
	"cmp"
	"log/slog"
	"maps"
	"slices"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/internal/configset"
	"github.com/pilotkit/pilotkit/internal/guard"
	"github.com/pilotkit/pilotkit/internal/options"
)

// Options are the settings of a Converter.
type Options struct {
	// Domain is the DNS suffix of the cluster. Default: cluster.local.
	Domain string
	// DefaultServiceExportTo is the mesh setting of this name: the visibility of ServiceEntries
	// without exportTo. Default: empty, visible to all namespaces.
	DefaultServiceExportTo []string
	// Provided makes SetProvided the source of the addresses and the readiness of Gateways. If
	// false, the addresses are those of the Services of the proxies, as in Istio: the Service with
	// the name GATEWAY-CLASS, or the Services in the Gateway's addresses of type Hostname.
	Provided bool
}

// routeKey identifies a route. Routes of different kinds may have the same name.
type routeKey struct {
	Kind
	Key
}

// Converter maintains the Gateways, VirtualServices, DestinationRules and statuses for a set of
// objects. Create it with NewConverter. Its methods must not be called concurrently; any goroutine
// may read its snapshots. A panic in the conversion of an object leaves the last result of that object in
// a Cache, and is not recovered outside of one.
type Converter struct {
	opts   Options
	texts  configstore.Schema // textSchema
	logger *slog.Logger       // of the Cache

	// The inputs.
	classes        store[gatewayv1.GatewayClass]
	gateways       store[gatewayv1.Gateway]
	listenerSets   store[gatewayv1.ListenerSet]
	routeObjects   map[routeKey]metav1.Object
	routesIn       index[string, routeKey] // by namespace
	grants         store[gatewayv1.ReferenceGrant]
	policies       store[gatewayv1.BackendTLSPolicy]
	namespaces     store[namespace]
	services       store[service]
	secrets        store[secret]
	configMaps     store[configMap]
	slices         store[slice]
	serviceEntries map[Key]*ServiceEntry
	provided       map[Key]*Provided // the infrastructure of Gateways
	refusals       refusals

	// Inputs by the object that they belong to.
	setsOf     index[Key, Key]    // the ListenerSets of a Gateway
	grantsIn   index[string, Key] // the ReferenceGrants of a namespace
	slicesOf   index[Key, Key]    // the EndpointSlices of a Service
	entriesOf  index[string, Key] // the ServiceEntries of a host
	policiesOf index[target, Key] // the BackendTLSPolicies of a Service or ServiceEntry

	tracker

	// The results.
	gatewayStates map[Key]*gatewayState
	setStates     map[Key]*setState
	serverOf      map[Key]Key // the Gateways of Gateway configs
	routeStates   map[routeKey]*routeState
	policyStates  map[target]*policyState
	hosts         map[hostKey]map[routeKey]*contribution
	hostConfigs   map[hostKey]Key // the VirtualService of a host
	dirtyHosts    map[hostKey]struct{}
	attached      counts[parentKey, string] // routes by parent and listener
	users         counts[target, Key]       // Gateways by the backends of their routes

	published *Snapshot
	configs   configset.Edit
	statuses  map[ObjectKey]struct{}
	converted map[Key]struct{} // the Gateways that were recomputed
}

// Update is the result of a call of Apply.
type Update struct {
	// Before and After are the snapshots before and after the call. They are identical if nothing
	// has changed.
	Before, After *Snapshot
	// Changes contains one change for each changed config, sorted by kind, namespace and name. The
	// Revision is 0.
	Changes []configstore.Change
	// Statuses are the objects whose wanted status has changed, sorted.
	Statuses []ObjectKey

	gateways []Key // the Gateways that were recomputed, sorted
}

// NewConverter returns a converter without objects.
func NewConverter(opts ...Options) *Converter {
	o := options.One("gatewayapi.NewConverter", opts)
	o.Domain = cmp.Or(o.Domain, "cluster.local")
	return &Converter{
		opts: o, texts: textSchema(), classes: store[gatewayv1.GatewayClass]{}, gateways: store[gatewayv1.Gateway]{},
		listenerSets: store[gatewayv1.ListenerSet]{}, routeObjects: map[routeKey]metav1.Object{}, routesIn: index[string, routeKey]{},
		grants: store[gatewayv1.ReferenceGrant]{}, policies: store[gatewayv1.BackendTLSPolicy]{},
		namespaces: store[namespace]{}, services: store[service]{}, secrets: store[secret]{}, configMaps: store[configMap]{},
		slices: store[slice]{}, serviceEntries: map[Key]*ServiceEntry{}, provided: map[Key]*Provided{},
		setsOf: index[Key, Key]{}, grantsIn: index[string, Key]{}, slicesOf: index[Key, Key]{},
		entriesOf: index[string, Key]{}, policiesOf: index[target, Key]{}, tracker: newTracker(),
		gatewayStates: map[Key]*gatewayState{}, setStates: map[Key]*setState{}, serverOf: map[Key]Key{}, routeStates: map[routeKey]*routeState{},
		policyStates: map[target]*policyState{}, hosts: map[hostKey]map[routeKey]*contribution{}, hostConfigs: map[hostKey]Key{},
		dirtyHosts: map[hostKey]struct{}{}, attached: counts[parentKey, string]{}, users: counts[target, Key]{},
		published: &Snapshot{}, statuses: map[ObjectKey]struct{}{},
		converted: map[Key]struct{}{},
	}
}

// Apply applies changes and returns their combined result. The last change of an object counts.
func (c *Converter) Apply(changes ...Change) Update {
	before := c.published
	next := *before
	c.published = &next
	for _, change := range changes {
		if change.apply != nil {
			c.confine("a change", func() { change.apply(c) })
		}
	}
	c.compute()
	next.configs = c.configs.Set()
	update := Update{
		Before: before, After: c.published, Changes: c.configs.Settle(),
		Statuses: slices.SortedFunc(maps.Keys(c.statuses), ObjectKey.Compare),
		gateways: slices.SortedFunc(maps.Keys(c.converted), Key.Compare),
	}
	if len(update.Changes) == 0 && len(update.Statuses) == 0 {
		c.published, update.After = before, before
	}
	empty(&c.statuses)
	empty(&c.converted)
	return update
}

// Snapshot returns the present snapshot.
func (c *Converter) Snapshot() *Snapshot { return c.published }

// compute recomputes all outdated results. The results of one kind can only invalidate results of
// later kinds.
func (c *Converter) compute() {
	for kind := range nodeKinds {
		for _, n := range c.take(kind) {
			c.forget(n)
			c.confine(n.String(), func() { c.recompute(n) })
		}
	}
	for _, key := range slices.SortedFunc(maps.Keys(c.dirtyHosts), hostKey.compare) {
		c.confine("host "+key.host, func() { c.computeHost(key) })
	}
	empty(&c.dirtyHosts)
}

// recompute recomputes one result.
func (c *Converter) recompute(n node) {
	switch n.kind {
	case nodeGateway:
		c.computeGateway(n)
	case nodeRoute:
		c.computeRoute(n)
	case nodePolicies:
		c.computePolicies(n)
	case nodeClassStatus:
		c.computeClassStatus(n)
	case nodeGatewayStatus:
		c.computeGatewayStatus(n)
	case nodeListenerSetStatus:
		c.computeListenerSetStatus(n)
	default: // nodePolicyStatus
		c.computePolicyStatus(n)
	}
}

// confine confines a panic to the object that f handles.
func (c *Converter) confine(object string, f func()) { guard.Confine(c.logger, "converter", object, f) }

// publish sets the config of a key; nil removes it.
func (c *Converter) publish(kind configstore.GroupVersionKind, key Key, next *configstore.Config) {
	c.configs.Put(configstore.ConfigKey{Kind: kind, Name: key.Name, Namespace: key.Namespace}, next)
}

// publishStatus sets the wanted status of an object; nil removes it.
func (c *Converter) publishStatus(kind Kind, key Key, next Status) {
	at := ObjectKey{kind, key}
	old, has := c.published.statuses.Get(at)
	switch {
	case next == nil && !has, next != nil && has && apiequality.Semantic.DeepEqual(old, next):
		return
	case next == nil:
		c.published.statuses = c.published.statuses.Delete(at)
	default:
		c.published.statuses = c.published.statuses.Set(at, next)
	}
	c.statuses[at] = struct{}{}
}

// config returns a config with our metadata.
func (c *Converter) config(
	kind configstore.GroupVersionKind, key Key, created metav1.Time, annotations map[string]string,
) *configstore.Config {
	return &configstore.Config{Meta: configstore.Meta{
		GroupVersionKind: kind, Namespace: key.Namespace, Name: key.Name, Domain: c.opts.Domain,
		Annotations: annotations, CreationTimestamp: created.Time,
	}}
}
