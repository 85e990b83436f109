// SPDX-License-Identifier: Apache-2.0

package gatewayapi

import (
	"slices"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/pilotkit/pilotkit/internal/excerpt"
)

// parentKey identifies a parent of routes: a Gateway or a ListenerSet.
type parentKey struct {
	Kind
	Key
}

// listener is a listener of a Gateway, or of a ListenerSet that is attached to it.
type listener struct {
	owner parentKey
	spec  gatewayv1.Listener

	// view is the listener as routes see it.
	view listenerView
	// The problems of the listener.
	unsupported, conflict, badTLS, badKinds, unaccepted problem
	// noRefs is the first reference that cannot be resolved. The listener may work without it.
	noRefs problem
}

// listenerView contains the fields of a listener that routes depend on. It does not change with the
// set of Namespaces that a selector matches, so that routes of other namespaces are not recomputed.
type listenerView struct {
	Section  string
	Port     int32
	Protocol gatewayv1.ProtocolType
	Host     string // anyHost if unset
	// From and Selector select the namespaces of allowed routes; Namespace is the listener's.
	From      gatewayv1.FromNamespaces
	Selector  *metav1.LabelSelector
	Namespace string
	// Kinds are the allowed kinds of routes, all of the Gateway API's group.
	Kinds []Kind
	// Config is the name of the Gateway config.
	Config string
	// Conflicted is set if routes do not attach because of a conflict.
	Conflicted bool
	// Gateway is the Gateway of the listener.
	Gateway Key
}

// works reports whether a listener has a config.
func (l *listener) works() bool { return !l.failure().is() }

// failure returns the reason why it does not.
func (l *listener) failure() problem { return l.conflict.or(l.unsupported).or(l.badTLS) }

// protocolKinds returns the kinds of routes that a listener supports.
func protocolKinds(spec *gatewayv1.Listener) []Kind {
	switch spec.Protocol {
	case gatewayv1.HTTPProtocolType, gatewayv1.HTTPSProtocolType:
		return []Kind{KindHTTPRoute, KindGRPCRoute}
	case gatewayv1.TCPProtocolType:
		return []Kind{KindTCPRoute}
	case gatewayv1.TLSProtocolType:
		if spec.TLS != nil && deref(spec.TLS.Mode, gatewayv1.TLSModeTerminate) == gatewayv1.TLSModePassthrough {
			return []Kind{KindTLSRoute}
		}
		return []Kind{KindTLSRoute, KindTCPRoute}
	default:
		return nil
	}
}

// newListener returns a listener with the results that depend only on its own fields.
func newListener(owner parentKey, gateway Key, config string, spec gatewayv1.Listener) *listener {
	l := &listener{owner: owner, spec: spec}
	l.view = listenerView{
		Section: string(spec.Name), Port: spec.Port, Protocol: spec.Protocol,
		Host: hostOf(string(deref(spec.Hostname, ""))), From: gatewayv1.NamespacesFromSame, Namespace: owner.Namespace,
		Config: config, Gateway: gateway,
	}
	possible := protocolKinds(&spec)
	if possible == nil {
		l.unsupported = problem{
			string(gatewayv1.ListenerReasonUnsupportedProtocol), "protocol " + string(spec.Protocol) + " is not supported",
		}
	}
	if spec.Port < 1 || spec.Port > 65535 {
		l.unsupported = problem{string(gatewayv1.ListenerReasonInvalid), "the port must be 1 to 65535"}
	}
	l.view.Kinds = possible
	if wrong := l.view.badNames(); wrong.is() {
		l.refuse(wrong)
		return l
	}
	if spec.AllowedRoutes == nil {
		return l
	}
	if from := spec.AllowedRoutes.Namespaces; from != nil {
		l.view.From, l.view.Selector = deref(from.From, gatewayv1.NamespacesFromSame), from.Selector
	}
	if len(spec.AllowedRoutes.Kinds) > 0 {
		l.view.Kinds = nil
		for _, asked := range spec.AllowedRoutes.Kinds {
			kind := Kind(asked.Kind)
			if groupOf(asked.Group, gatewayv1.GroupName) == gatewayv1.GroupName && slices.Contains(possible, kind) {
				l.view.Kinds = append(l.view.Kinds, kind)
			} else {
				l.badKinds = problem{
					string(gatewayv1.ListenerReasonInvalidRouteKinds), "kind " + string(kind) + " is not one of this protocol",
				}
			}
		}
	}
	return l
}

// refuse makes a listener serve nothing, because no VirtualService could refer to it.
func (l *listener) refuse(wrong problem) { l.unsupported, l.view.Kinds = wrong, nil }

// withListener adds a listener to those of its Gateway or ListenerSet. The second
// listener of a name, which only a directory can contain, serves nothing.
func withListener(list []*listener, l *listener) []*listener {
	if slices.ContainsFunc(list, func(first *listener) bool { return first.view.Section == l.view.Section }) {
		l.refuse(problem{string(gatewayv1.ListenerReasonInvalid), "listener " + excerpt.Name(l.view.Section) + " is there twice"})
	}
	return append(list, l)
}

// badNames returns the problem of a listener's names, which a directory may contain.
func (l *listenerView) badNames() problem {
	invalid := string(gatewayv1.ListenerReasonInvalid)
	switch {
	case l.Section != "" && len(validation.IsDNS1123Subdomain(l.Section)) > 0:
		return problem{invalid, strconv.Quote(excerpt.Name(l.Section)) + " is not the name of a listener"}
	case !isHostname(l.Host):
		return problem{invalid, strconv.Quote(excerpt.Name(l.Host)) + " is not a host name"}
	default:
		return problem{}
	}
}

// selects returns the predicate of a selector. A malformed selector matches nothing.
func selects(s *metav1.LabelSelector) func(map[string]string) bool {
	selector, err := metav1.LabelSelectorAsSelector(s)
	if err != nil {
		return func(map[string]string) bool { return false }
	}
	return func(l map[string]string) bool { return selector.Matches(labels.Set(l)) }
}

// allows reports whether objects of the namespace ns may attach to an object of the namespace
// owner.
func (v view) allows(from gatewayv1.FromNamespaces, selector *metav1.LabelSelector, owner, ns string) bool {
	switch from {
	case gatewayv1.NamespacesFromAll:
		return true
	case gatewayv1.NamespacesFromSame:
		return owner == ns
	case gatewayv1.NamespacesFromSelector:
		return v.selects(selector, ns)
	default: // None
		return false
	}
}

// serverHosts returns the hosts of a listener's server, each with a namespace whose VirtualServices
// may use it.
func (v view) serverHosts(l *listenerView) []string {
	switch l.From {
	case gatewayv1.NamespacesFromAll:
		return []string{"*/" + l.Host}
	case gatewayv1.NamespacesFromSame:
		return []string{l.Namespace + "/" + l.Host}
	case gatewayv1.NamespacesFromSelector:
		var out []string
		for _, ns := range v.namespacesWhere(l.Selector) {
			out = append(out, ns+"/"+l.Host)
		}
		if len(out) > 0 {
			return out
		}
	default: // None
	}
	return []string{"~/" + l.Host}
}
