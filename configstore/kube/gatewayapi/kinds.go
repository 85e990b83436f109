// SPDX-License-Identifier: Apache-2.0

package gatewayapi

import (
	"errors"
	"reflect"

	"google.golang.org/protobuf/types/known/structpb"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/pilotkit/pilotkit/configstore"
)

// resource is a kind of objects that are read as configs. Their specs are unstructured in the
// source and are converted to the Go types of the Gateway API here.
type resource struct {
	gvk configstore.GroupVersionKind
	// older are the other versions under which the kind may be served. They have the same fields.
	older         []string
	plural        string
	clusterScoped bool
	hasStatus     bool
	// closed is set if an object with an unknown field has no effect, because the field may
	// restrict it.
	closed bool
	// empty returns a new object of the kind.
	empty func() metav1.Object
	// set and del are Set and Delete for the kind.
	set func(metav1.Object) Change
	del func(namespace, name string) Change
}

// newResource returns the kind whose objects are of the pointer type P.
func newResource[P interface {
	Object
	metav1.Object
}](gvk configstore.GroupVersionKind, plural string, hasStatus bool, older ...string,
) *resource {
	return &resource{
		gvk: gvk, older: older, plural: plural, hasStatus: hasStatus,
		empty: func() metav1.Object {
			o, _ := reflect.TypeAssert[metav1.Object](reflect.New(reflect.TypeFor[P]().Elem()))
			return o
		},
		set: func(o metav1.Object) Change {
			typed, _ := o.(P)
			return Set(typed)
		},
		del: Delete[P],
	}
}

// GroupVersionKind returns the kind of the configs for objects of this kind, as in Schemas.
func (k Kind) GroupVersionKind() configstore.GroupVersionKind {
	return configstore.GroupVersionKind{Group: gatewayv1.GroupName, Version: "v1", Kind: string(k)}
}

// gatewayResources returns the kinds of the Gateway API, with the versions that the CRDs of its
// releases since v1.0 serve.
func gatewayResources() []*resource {
	class := newResource[*gatewayv1.GatewayClass](KindGatewayClass.GroupVersionKind(), "gatewayclasses", true, "v1beta1")
	class.clusterScoped = true
	grant := newResource[*gatewayv1.ReferenceGrant](KindReferenceGrant.GroupVersionKind(), "referencegrants", false, "v1beta1", "v1alpha2")
	grant.closed = true
	return []*resource{
		newResource[*gatewayv1.BackendTLSPolicy](KindBackendTLSPolicy.GroupVersionKind(), "backendtlspolicies", true, "v1alpha3"),
		newResource[*gatewayv1.GRPCRoute](KindGRPCRoute.GroupVersionKind(), "grpcroutes", true, "v1alpha2"),
		newResource[*gatewayv1.Gateway](KindGateway.GroupVersionKind(), "gateways", true, "v1beta1"),
		class,
		newResource[*gatewayv1.HTTPRoute](KindHTTPRoute.GroupVersionKind(), "httproutes", true, "v1beta1"),
		newResource[*gatewayv1.ListenerSet](KindListenerSet.GroupVersionKind(), "listenersets", true),
		grant,
		newResource[*gatewayv1.TCPRoute](KindTCPRoute.GroupVersionKind(), "tcproutes", true, "v1alpha2"),
		newResource[*gatewayv1.TLSRoute](KindTLSRoute.GroupVersionKind(), "tlsroutes", true, "v1alpha3", "v1alpha2"),
	}
}

// coreResources returns the Kubernetes kinds that a directory may contain in addition.
func coreResources() []*resource {
	core := func(kind string) configstore.GroupVersionKind {
		return configstore.GroupVersionKind{Version: "v1", Kind: kind}
	}
	namespace := newResource[*corev1.Namespace](core("Namespace"), "namespaces", true)
	namespace.clusterScoped = true
	return []*resource{namespace, newResource[*corev1.Service](core(kindService), "services", true)}
}

// refusal returns the reason why an object does not take effect as written, or nil.
func (r *resource) refusal(found findings) error {
	switch {
	case len(found.wrong) > 0:
		return errors.New(found.wrong[0].String())
	case r.closed && len(found.unknown) > 0:
		return errors.New(found.unknown[0].String())
	default:
		return nil
	}
}

// decode returns the object of a config of the kind, and its problems.
func (r *resource) decode(c *configstore.Config) (metav1.Object, findings) {
	o := r.empty()
	o.SetName(c.Name)
	o.SetNamespace(c.Namespace)
	o.SetUID(types.UID(c.UID))
	o.SetResourceVersion(c.ResourceVersion)
	o.SetGeneration(c.Generation)
	o.SetCreationTimestamp(metav1.NewTime(c.CreationTimestamp))
	o.SetLabels(c.Labels)
	o.SetAnnotations(c.Annotations)
	var found findings
	value := reflect.ValueOf(o).Elem()
	if spec, ok := c.Spec.(*structpb.Struct); ok {
		found.decode("spec", structpb.NewStructValue(spec), value.FieldByName("Spec"))
	}
	if r.closed && len(found.unknown) > 0 {
		value.FieldByName("Spec").SetZero()
		for i := range found.unknown {
			found.unknown[i].Message += ": the " + r.gvk.Kind + " has no effect"
		}
	}
	if status, ok := c.Status.(*structpb.Struct); ok && r.hasStatus {
		var ofStatus findings // A status that cannot be decoded is replaced.
		ofStatus.decode("status", structpb.NewStructValue(status), value.FieldByName("Status"))
	}
	return o, found
}
