// SPDX-License-Identifier: Apache-2.0

package gatewayapi

import (
	"maps"
	"slices"
	"strings"

	networking "istio.io/api/networking/v1alpha3"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/istio"
)

// gatewayState is the result of a Gateway that this controller handles.
type gatewayState struct {
	ownership ownership
	listeners []*listener // its own
	sets      []Key       // the ListenerSets that are attached to it
	members   []Key       // the ListenerSets that reference it, attached or not
	configs   map[Key]*configstore.Config
	// services are the hosts of the Services in front of its proxies.
	services []string
	// badAddresses and badParameters are the reasons why it is not accepted.
	badAddresses, badParameters problem
	// clientCertificate is the client certificate of its proxies for backends, or "".
	clientCertificate string
	// noRefs is the first reference of the Gateway itself that cannot be resolved.
	noRefs problem
}

// setState is the result of a ListenerSet whose Gateway this controller handles.
type setState struct {
	gateway    Key
	listeners  []*listener
	notAllowed problem
}

// views returns the listeners as routes see them.
func views(listeners []*listener) []listenerView {
	out := make([]listenerView, len(listeners))
	for i, l := range listeners {
		out[i] = l.view
	}
	return out
}

// computeGateway recomputes a Gateway and its ListenerSets, and invalidates the routes whose
// listeners have changed.
func (c *Converter) computeGateway(n node) {
	old := c.gatewayStates[n.key]
	next, sets := c.convertGateway(n)
	c.replaceServers(n.key, configsOf(old), configsOf(next))
	if next == nil {
		delete(c.gatewayStates, n.key)
	} else {
		c.gatewayStates[n.key] = next
	}
	if !sameListeners(old, next) {
		c.touch(topic{listenersOfGateway, n.key})
	}
	// A former ListenerSet of this Gateway may belong to another Gateway now.
	for _, key := range membersOf(old) {
		if _, stays := sets[key]; !stays && c.setStates[key] != nil && c.setStates[key].gateway == n.key {
			delete(c.setStates, key)
			c.touch(topic{listenersOfSet, key})
			c.mark(node{nodeListenerSetStatus, "", key})
		}
	}
	for key, state := range sets {
		before := c.setStates[key]
		c.setStates[key] = state
		if before == nil || before.notAllowed != state.notAllowed || !apiequality.Semantic.DeepEqual(views(before.listeners), views(state.listeners)) {
			c.touch(topic{listenersOfSet, key})
		}
		c.mark(node{nodeListenerSetStatus, "", key})
	}
	c.mark(node{nodeGatewayStatus, "", n.key})
	c.converted[n.key] = struct{}{}
}

func membersOf(s *gatewayState) []Key {
	if s == nil {
		return nil
	}
	return s.members
}

func configsOf(s *gatewayState) map[Key]*configstore.Config {
	if s == nil {
		return nil
	}
	return s.configs
}

func sameListeners(a, b *gatewayState) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.ownership == b.ownership && apiequality.Semantic.DeepEqual(views(a.listeners), views(b.listeners))
}

// replaceServers replaces the configs of a Gateway and its ListenerSets. A config that another
// Gateway has taken over, with the ListenerSet or with the name, stays.
func (c *Converter) replaceServers(gateway Key, old, next map[Key]*configstore.Config) {
	for key := range old {
		if next[key] == nil && c.serverOf[key] == gateway {
			delete(c.serverOf, key)
			c.publish(istio.Gateway, key, nil)
		}
	}
	for key, config := range next {
		c.serverOf[key] = gateway
		c.publish(istio.Gateway, key, config)
	}
}

// replaceConfigs replaces the configs of old by those in next.
func (c *Converter) replaceConfigs(kind configstore.GroupVersionKind, old, next map[Key]*configstore.Config) {
	for key := range old {
		if next[key] == nil {
			c.publish(kind, key, nil)
		}
	}
	for key, config := range next {
		c.publish(kind, key, config)
	}
}

// convertGateway returns nil if this controller does not handle the Gateway.
func (c *Converter) convertGateway(n node) (*gatewayState, map[Key]*setState) {
	v := view{c, n}
	o := c.gateways[n.key] // read without a topic, because a change of the Gateway marks this node
	if o == nil {
		return nil, nil
	}
	state := &gatewayState{ownership: v.ownershipOf(string(o.Spec.GatewayClassName)), configs: map[Key]*configstore.Config{}}
	sets := map[Key]*setState{}
	switch state.ownership {
	case ours:
	case remote:
		return state, nil
	default: // foreign
		return nil, nil
	}
	owner := parentKey{KindGateway, n.key}
	for i := range o.Spec.Listeners {
		spec := o.Spec.Listeners[i]
		state.listeners = withListener(state.listeners, newListener(owner, n.key, listenerConfig(n.key.Name, string(spec.Name)), spec))
	}
	ofSets := v.attachSets(o, state, sets)
	findConflicts(state.listeners, ofSets)
	managed := v.findServices(o, state)
	state.badParameters = v.parameters(o)
	state.clientCertificate, state.noRefs = v.clientCertificate(o)
	for _, l := range slices.Concat(state.listeners, ofSets) {
		tls := v.tlsOf(l, o)
		if l.works() {
			config := v.serverConfig(o, l, state, managed, tls)
			state.configs[Key{config.Namespace, config.Name}] = config
		}
	}
	return state, sets
}

// attachSets returns the listeners of a Gateway's ListenerSets in order of precedence: older ones
// first, then by name.
func (v view) attachSets(gateway *gatewayv1.Gateway, state *gatewayState, sets map[Key]*setState) []*listener {
	key := keyOf(gateway)
	var listeners []*listener
	for _, set := range v.c.setsByAge(key) {
		s := &setState{gateway: key}
		sets[keyOf(set)] = s
		state.members = append(state.members, keyOf(set))
		if !v.allowsSet(gateway, set.Namespace) {
			s.notAllowed = problem{string(gatewayv1.ListenerSetReasonNotAllowed), "the Gateway does not allow ListenerSets of this namespace"}
			continue
		}
		state.sets = append(state.sets, keyOf(set))
		namesake := v.gateway(keyOf(set))
		for i := range set.Spec.Listeners {
			spec := gatewayv1.Listener(set.Spec.Listeners[i])
			taken := namesake != nil && slices.ContainsFunc(namesake.Spec.Listeners, func(l gatewayv1.Listener) bool { return l.Name == spec.Name })
			config := setListenerConfig(set.Name, string(spec.Name), taken)
			s.listeners = withListener(s.listeners, newListener(parentKey{KindListenerSet, keyOf(set)}, key, config, spec))
		}
		listeners = append(listeners, s.listeners...)
	}
	return listeners
}

// allowsSet reports whether a Gateway allows ListenerSets of a namespace. By default it allows
// none.
func (v view) allowsSet(gateway *gatewayv1.Gateway, ns string) bool {
	allowed := gateway.Spec.AllowedListeners
	if allowed == nil || allowed.Namespaces == nil {
		return false
	}
	from := deref(allowed.Namespaces.From, gatewayv1.NamespacesFromNone)
	return v.allows(from, allowed.Namespaces.Selector, gateway.Namespace, ns)
}

func (c *Converter) setsByAge(gateway Key) []*gatewayv1.ListenerSet {
	keys := slices.SortedFunc(maps.Keys(c.setsOf[gateway]), func(a, b Key) int {
		x, y := c.listenerSets[a], c.listenerSets[b]
		if byAge := x.CreationTimestamp.Compare(y.CreationTimestamp.Time); byAge != 0 {
			return byAge
		}
		return a.Compare(b)
	})
	out := make([]*gatewayv1.ListenerSet, len(keys))
	for i, key := range keys {
		out[i] = c.listenerSets[key]
	}
	return out
}

// serverConfig returns the Gateway config of a listener.
func (v view) serverConfig(
	gateway *gatewayv1.Gateway, l *listener, state *gatewayState, managed bool, tls *networking.ServerTLSSettings,
) *configstore.Config {
	created, from := gateway.CreationTimestamp, string(l.owner.Kind)+"/"+l.owner.Name+"/"+l.view.Section+"."+l.owner.Namespace
	annotations := map[string]string{
		annotationSemantics: semanticsGateway, annotationServices: strings.Join(state.services, ","),
		annotationParents: from, annotationServiceAccount: serviceAccount(gateway, managed),
	}
	if state.clientCertificate != "" {
		annotations[istio.AnnotationBackendCertificate] = state.clientCertificate
	}
	if l.owner.Kind == KindListenerSet {
		annotations[annotationParentNamespace] = gateway.Namespace
		created = v.c.listenerSets[l.owner.Key].CreationTimestamp
	}
	config := v.c.config(istio.Gateway, Key{l.owner.Namespace, l.view.Config}, created, annotations)
	config.Labels = map[string]string{labelGatewayName: gateway.Name}
	config.Spec = &networking.Gateway{Servers: []*networking.Server{{
		Port: &networking.Port{
			Number: uint32(l.view.Port), //nolint:gosec // 1 to 65535
			Name:   "default", Protocol: string(l.view.Protocol),
		},
		Hosts: v.serverHosts(&l.view), Tls: tls,
	}}}
	return config
}

// parameters returns the problem of a Gateway's parameters, which must be a ConfigMap of its
// namespace.
func (v view) parameters(o *gatewayv1.Gateway) problem {
	if o.Spec.Infrastructure == nil || o.Spec.Infrastructure.ParametersRef == nil {
		return problem{}
	}
	ref := o.Spec.Infrastructure.ParametersRef
	invalid := string(gatewayv1.GatewayReasonInvalidParameters)
	if ref.Group != "" || ref.Kind != kindConfigMap {
		return problem{invalid, "parametersRef must be a ConfigMap"}
	}
	if key := (Key{o.Namespace, ref.Name}); v.configMap(key) == nil {
		return problem{invalid, "ConfigMap " + key.String() + " does not exist"}
	}
	return problem{}
}

// clientCertificate returns the client certificate that a Gateway's proxies use for backends, or
// "", and its problem, if any.
func (v view) clientCertificate(o *gatewayv1.Gateway) (credential string, wrong problem) {
	if o.Spec.TLS == nil || o.Spec.TLS.Backend == nil || o.Spec.TLS.Backend.ClientCertificateRef == nil {
		return "", problem{}
	}
	key, wrong := v.certificate(string(KindGateway), o.Namespace, o.Spec.TLS.Backend.ClientCertificateRef)
	if !wrong.is() {
		return secretCredential(key), problem{}
	}
	if wrong.reason == string(gatewayv1.ListenerReasonInvalidCertificateRef) {
		wrong.reason = string(gatewayv1.GatewayReasonInvalidClientCertificateRef)
	}
	return "", wrong
}
