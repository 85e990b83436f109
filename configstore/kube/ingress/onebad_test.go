// SPDX-License-Identifier: Apache-2.0

package ingress_test

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/istio"
	"github.com/pilotkit/pilotkit/configstore/kube/ingress"
	"github.com/pilotkit/pilotkit/internal/test/testmain"
)

// ingressOf returns an Ingress of namespace shop for a path of a host.
func ingressOf(name, host, path string) *networkingv1.Ingress {
	prefix, class := networkingv1.PathTypePrefix, "istio"
	return &networkingv1.Ingress{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name},
		Spec: networkingv1.IngressSpec{IngressClassName: &class, Rules: []networkingv1.IngressRule{{
			Host: host, IngressRuleValue: networkingv1.IngressRuleValue{HTTP: &networkingv1.HTTPIngressRuleValue{Paths: []networkingv1.HTTPIngressPath{{
				Path: path, PathType: &prefix, Backend: networkingv1.IngressBackend{Service: &networkingv1.IngressServiceBackend{
					Name: "cart", Port: networkingv1.ServiceBackendPort{Number: 80},
				}},
			}}}},
		}}},
	}
}

// derivedFor returns the names of what was made of Ingresses, but for those that mention a name.
func derivedFor(store configstore.ConfigStore, but string) (out []string) {
	for _, kind := range []configstore.GroupVersionKind{istio.Gateway, istio.VirtualService} {
		for _, c := range store.List(kind, "") {
			if name := kind.Kind + " " + c.Name; but == "" || !strings.Contains(name, but) {
				out = append(out, name)
			}
		}
	}
	slices.Sort(out)
	return out
}

// TestOneBadIngress: an Ingress of which something invalid is made costs the others nothing,
// whether it is there first, comes later, or comes with them.
func TestOneBadIngress(t *testing.T) {
	t.Parallel()
	class := &networkingv1.IngressClass{ObjectMeta: metav1.ObjectMeta{Name: "istio"}, Spec: networkingv1.IngressClassSpec{Controller: ingress.ControllerName}}
	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "cart"}, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}}}
	good := []ingress.Change{
		ingress.Set(class), ingress.Set(service),
		ingress.Set(ingressOf("a", "a.example.com", "/")), ingress.Set(ingressOf("z", "z.example.com", "/")),
	}
	without := ingress.NewOffline()
	without.Follow(good...)
	want := derivedFor(without, "")
	if len(want) != 4 {
		t.Fatalf("of the good ones is made %q", want)
	}
	for name, bad := range map[string]*networkingv1.Ingress{
		"host with a space":     ingressOf("bad", "bad host", "/"),
		"host with a newline":   ingressOf("bad", "bad\n.example.com", "/"),
		"host with a wildcard":  ingressOf("bad", "bad.*.example.com", "/"),
		"path with a newline":   ingressOf("bad", "bad.example.com", "/\n"),
		"host that is no text":  ingressOf("bad", "bad\xff.example.com", "/"),
		"path that is no text":  ingressOf("bad", "bad.example.com", "/\xff"),
		"name with a space":     ingressOf("bad name", "bad.example.com", "/"),
		"long host":             ingressOf("bad", strings.Repeat("bad.", 100)+"com", "/"),
		"name that is no label": ingressOf(strings.Repeat("bad", 90), "bad.example.com", "/"),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for order, batches := range map[string][][]ingress.Change{
				"together": {append([]ingress.Change{ingress.Set(bad)}, good...)},
				"first":    {append(slices.Clone(good[:2]), ingress.Set(bad)), good[2:]},
				"later":    {good, {ingress.Set(bad)}},
			} {
				c := ingress.NewOffline()
				for _, batch := range batches {
					c.Follow(batch...)
				}
				if got := derivedFor(c, "bad"); !slices.Equal(got, want) {
					t.Errorf("%s: there is %q, want %q", order, got, want)
				}
			}
		})
	}
}

// TestPanicOfOneIngress: if the conversion of an Ingress panics, or the application of a change does,
// everything else in the batch is converted, and the next batch does not meet it again. The last result of the Ingress
// stays.
func TestPanicOfOneIngress(t *testing.T) {
	t.Parallel()
	testmain.ExpectPanic(t, "nil pointer")
	class := &networkingv1.IngressClass{ObjectMeta: metav1.ObjectMeta{Name: "istio"}, Spec: networkingv1.IngressClassSpec{Controller: ingress.ControllerName}}
	first, second := []ingress.Change{ingress.Set(class), ingress.Set(ingressOf("a", "a.example.com", "/"))}, ingress.Set(ingressOf("z", "z.example.com", "/"))
	without := ingress.NewOffline()
	without.Follow(append(first, second)...)
	c := ingress.NewOffline()
	c.Break("a", "bad")
	c.Follow(append([]ingress.Change{ingress.Set((*corev1.Service)(nil))}, first...)...)
	c.Follow(second)
	want := derivedFor(without, "")
	if got := derivedFor(c, ""); !slices.Equal(got, want) || len(want) != 4 {
		t.Errorf("there is %q, want %q", got, want)
	}
	c.BreakValidation()
	c.Follow(ingress.Set(ingressOf("a", "a.example.com", "/other")))
	if got := derivedFor(c, ""); !slices.Equal(got, want) {
		t.Errorf("after a panic there is %q, want %q", got, want)
	}
}
