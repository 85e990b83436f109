// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"maps"
	"math/big"
	"slices"
	"time"

	"google.golang.org/protobuf/types/known/structpb"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/kube/gatewayapi"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic"
)

// gatewayAPI is the group of the Gateway API.
const gatewayAPI = gatewayv1.GroupName

// missingClasses returns the classes of Gateways that the input does not have. They are assumed to
// belong to this controller, because classes are usually kept elsewhere.
func (c *checker) missingClasses() []configstore.Mutation {
	out := make(map[configstore.ConfigKey]configstore.Mutation)
	for _, m := range c.accepted {
		spec, _ := m.Config.Spec.(*structpb.Struct)
		class := configstore.Config{
			Meta: configstore.Meta{
				GroupVersionKind: gatewayapi.KindGatewayClass.GroupVersionKind(), Name: spec.GetFields()["gatewayClassName"].GetStringValue(),
			},
			Spec: &structpb.Struct{Fields: map[string]*structpb.Value{"controllerName": structpb.NewStringValue(gatewayapi.ControllerName)}},
		}
		if _, defined := c.defined[class.Key()]; !defined && class.Name != "" {
			out[class.Key()] = configstore.Mutation{Op: configstore.OpCreate, Config: class}
		}
	}
	return slices.Collect(maps.Values(out))
}

// referenced returns the other objects to which objects of the Gateway API refer: the Services and
// Namespaces of the input, and certificates, which are assumed to exist.
func (c *checker) referenced() (out []gatewayapi.Change, err error) {
	for _, o := range c.kubernetes.namespaces {
		out = append(out, gatewayapi.Set(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: o.Metadata.Name, Labels: o.Metadata.Labels}}))
	}
	for _, o := range c.kubernetes.services {
		out = append(out, gatewayapi.Set(o.asService()))
	}
	certificate, key, err := selfSigned()
	for _, m := range c.accepted {
		spec, _ := m.Config.Spec.(*structpb.Struct)
		for ref := range references(structpb.NewStructValue(spec)) {
			at := metav1.ObjectMeta{
				Namespace: cmp.Or(ref.GetFields()["namespace"].GetStringValue(), m.Config.Namespace), Name: ref.GetFields()["name"].GetStringValue(),
			}
			out = append(out,
				gatewayapi.Set(&corev1.Secret{ObjectMeta: at, Data: map[string][]byte{"tls.crt": certificate, "tls.key": key, "ca.crt": certificate}}),
				gatewayapi.Set(&corev1.ConfigMap{ObjectMeta: at, Data: map[string]string{"ca.crt": string(certificate)}}))
		}
	}
	return out, err
}

// references yields the references to certificates and authorities in a spec.
func references(in *structpb.Value) func(yield func(*structpb.Struct) bool) {
	return func(yield func(*structpb.Struct) bool) {
		for name, field := range in.GetStructValue().GetFields() {
			for _, v := range append([]*structpb.Value{field}, field.GetListValue().GetValues()...) {
				if name == "certificateRefs" || name == "caCertificateRefs" || name == "clientCertificateRef" {
					if v.GetStructValue() != nil && !yield(v.GetStructValue()) {
						return
					}
				}
				for ref := range references(v) {
					if !yield(ref) {
						return
					}
				}
			}
		}
	}
}

// asService returns the fields of a Service that the Gateway API reads.
func (o kubernetesObject) asService() *corev1.Service {
	svc := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: o.Metadata.Namespace, Name: o.Metadata.Name}}
	svc.Spec.Type, svc.Spec.ClusterIP, svc.Spec.ExternalName = corev1.ServiceType(o.Spec.Type), o.Spec.ClusterIP, o.Spec.ExternalName
	for _, p := range o.Spec.Ports {
		svc.Spec.Ports = append(svc.Spec.Ports, corev1.ServicePort{Name: p.Name, Port: p.Port, AppProtocol: p.AppProtocol, Protocol: corev1.Protocol(p.Protocol)})
	}
	return svc
}

// selfSigned returns a certificate for references whose Secrets are elsewhere.
func selfSigned() (certificate, key []byte, err error) {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), IsCA: true, BasicConstraintsValid: true, NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	if err != nil {
		return nil, nil, err
	}
	encoded, err := x509.MarshalPKCS8PrivateKey(private)
	block := func(kind string, b []byte) []byte { return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: b}) }
	return block("CERTIFICATE", der), block("PRIVATE KEY", encoded), err
}

// conditions records the conditions of objects of the Gateway API about parts without effect.
func (c *checker) conditions(of *gatewayapi.Snapshot) {
	for key, status := range of.Statuses() {
		var all []metav1.Condition
		switch s := status.(type) {
		case *gatewayv1.GatewayStatus:
			all = s.Conditions
			for _, l := range s.Listeners {
				all = append(all, l.Conditions...)
			}
		case *gatewayv1.ListenerSetStatus:
			for _, l := range s.Listeners {
				all = append(all, l.Conditions...)
			}
		case *gatewayv1.RouteStatus:
			for _, p := range s.Parents {
				all = append(all, p.Conditions...)
			}
		case *gatewayv1.PolicyStatus:
			for _, a := range s.Ancestors {
				all = append(all, a.Conditions...)
			}
		}
		for _, condition := range all {
			if isProblem(condition) {
				reason := fmt.Sprintf("%s is %s (%s): %s", condition.Type, condition.Status, condition.Reason, condition.Message)
				c.noEffect(traffic.Ineffective{Kind: key.Kind.GroupVersionKind(), Namespace: key.Namespace, Name: key.Name, Reason: reason})
			}
		}
	}
}

// isProblem reports whether a condition is about a part without effect. The condition Programmed does
// not count, because it depends on running proxies.
func isProblem(c metav1.Condition) bool {
	switch c.Type {
	case string(gatewayv1.RouteConditionAccepted), string(gatewayv1.RouteConditionResolvedRefs):
		return c.Status == metav1.ConditionFalse
	case string(gatewayv1.ListenerConditionConflicted), string(gatewayv1.RouteConditionPartiallyInvalid):
		return c.Status == metav1.ConditionTrue
	default:
		return false
	}
}
