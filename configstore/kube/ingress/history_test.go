// SPDX-License-Identifier: Apache-2.0

package ingress_test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	meshconfig "istio.io/api/mesh/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pilotkit/pilotkit/configstore/kube/ingress"
	"github.com/pilotkit/pilotkit/internal/test/histories"
)

var historySteps = flag.Int("history-steps", 120, "steps of each random history")

// TestRandomHistories: after each batch of random changes the state equals that of a new
// conversion, and the model's; updates report the changes, and earlier snapshots are unchanged.
func TestRandomHistories(t *testing.T) {
	for _, seed := range histories.Seeds(t, 6) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			r := rand.New(rand.NewPCG(seed, 1))
			g := &generator{r: r, world: newWorld()}
			converter := ingress.NewConverter()
			kept, then := converter.Snapshot(), stateOf(converter.Snapshot())
			for i := range *historySteps {
				var batch []ingress.Change
				for range 1 + r.IntN(4) {
					batch = append(batch, g.change())
				}
				update := converter.Apply(batch...)
				checkUpdate(t, update)
				if d := diff(g.fresh(), update.After); d != "" {
					t.Fatalf("step %d: a new conversion (-new +now):\n%s", i, d)
				}
				now, wrong := observe(update.After)
				wrong = append(wrong, model{g.world, false}.compare(now, map[string]bool{})...)
				if len(wrong) > 0 {
					t.Fatalf("step %d: %s", i, wrong)
				}
				if i%20 == 0 {
					if d := diffStates(then, stateOf(kept)); d != "" {
						t.Fatalf("step %d: a snapshot has changed:\n%s", i, d)
					}
					kept, then = update.After, stateOf(update.After)
				}
			}
		})
	}
}

// generator makes random changes with few names.
type generator struct {
	r *rand.Rand
	*world
}

func (g *generator) pick(of ...string) string { return of[g.r.IntN(len(of))] }

func (g *generator) namespace() string { return g.pick("shop", "blog", "istio-system") }

func (g *generator) change() ingress.Change {
	remove := g.r.IntN(4) == 0
	switch n := g.r.IntN(20); {
	case n < 10:
		if remove {
			return g.remove("Ingress", g.namespace(), g.ingressName())
		}
		return g.set(g.ingress())
	case n < 12:
		if remove {
			return g.remove("IngressClass", "", g.pick("front", "nginx"))
		}
		return g.set(&networkingv1.IngressClass{
			ObjectMeta: metav1.ObjectMeta{Name: g.pick("front", "nginx")},
			Spec:       networkingv1.IngressClassSpec{Controller: g.pick(ingress.ControllerName, "k8s.io/ingress-nginx")},
		})
	case n < 15:
		if remove {
			return g.remove("Service", g.namespace(), g.serviceName())
		}
		return g.set(g.service())
	case n < 17:
		if remove {
			return g.remove("Pod", "istio-system", g.pick("gw-1", "gw-2"))
		}
		return g.set(g.pod())
	case n < 19:
		if remove {
			return g.remove("Node", "", g.pick("n1", "n2"))
		}
		return g.set(g.node())
	default:
		return g.setMesh(ingress.Mesh{
			Mode:  meshconfig.MeshConfig_IngressControllerMode(g.r.IntN(4)),
			Class: g.pick("istio", "edge"), Service: g.pick("", "front", "istio-ingressgateway"), Selector: g.pick("", "front"),
		})
	}
}

func (g *generator) ingressName() string { return g.pick("a", "b", "a-b", "c.d", "y-z", "z") }

func (g *generator) serviceName() string { return g.pick("cart", "front", "istio-ingressgateway") }

func (g *generator) host() string {
	return g.pick("", "*.example.com", "a.example.com", "a-b.example.com", "a.b.example.com", "x", "x.y")
}

func (g *generator) ingress() *networkingv1.Ingress {
	o := &networkingv1.Ingress{ObjectMeta: metav1.ObjectMeta{
		Namespace: g.namespace(), Name: g.ingressName(), CreationTimestamp: metav1.NewTime(epoch.Add(time.Duration(g.r.IntN(3)) * time.Second)),
	}}
	switch g.r.IntN(4) {
	case 0:
		o.Annotations = map[string]string{"kubernetes.io/ingress.class": g.pick("istio", "edge", "nginx", "")}
	case 1:
		name := g.pick("front", "nginx", "none")
		o.Spec.IngressClassName = &name
	}
	for range g.r.IntN(3) {
		rule := networkingv1.IngressRule{Host: g.host()}
		if g.r.IntN(5) > 0 {
			rule.HTTP = &networkingv1.HTTPIngressRuleValue{}
			for range g.r.IntN(4) {
				kind := networkingv1.PathType(g.pick("Exact", "Prefix", "ImplementationSpecific"))
				path := networkingv1.HTTPIngressPath{PathType: &kind, Path: g.pick("/", "/a", "/a/", "/ab", "/a/b", "/a/*"), Backend: *g.backend()}
				if kind == networkingv1.PathTypeImplementationSpecific && g.r.IntN(2) == 0 {
					path.Path = g.pick("", "*", "/*", ".*", "/.*", "/a.*")
				}
				rule.HTTP.Paths = append(rule.HTTP.Paths, path)
			}
		}
		o.Spec.Rules = append(o.Spec.Rules, rule)
	}
	if g.r.IntN(3) == 0 {
		o.Spec.DefaultBackend = g.backend()
	}
	for range g.r.IntN(3) {
		tls := networkingv1.IngressTLS{SecretName: g.pick("", "one", "two")}
		if g.r.IntN(3) > 0 {
			tls.Hosts = []string{g.pick("a.example.com", "*.example.com", "x")}
		}
		o.Spec.TLS = append(o.Spec.TLS, tls)
	}
	return o
}

func (g *generator) backend() *networkingv1.IngressBackend {
	if g.r.IntN(8) == 0 {
		return &networkingv1.IngressBackend{Resource: &corev1.TypedLocalObjectReference{Kind: "Bucket", Name: "x"}}
	}
	s := &networkingv1.IngressServiceBackend{Name: g.serviceName()}
	if g.r.IntN(2) == 0 {
		s.Port.Number = int32(80 + g.r.IntN(2))
	} else {
		s.Port.Name = g.pick("http", "admin")
	}
	return &networkingv1.IngressBackend{Service: s}
}

func (g *generator) service() *corev1.Service {
	o := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: g.namespace(), Name: g.serviceName()}}
	for _, name := range []string{"http", "admin"} {
		if g.r.IntN(3) > 0 {
			o.Spec.Ports = append(o.Spec.Ports, corev1.ServicePort{Name: name, Port: int32(8000 + g.r.IntN(3))})
		}
	}
	switch g.r.IntN(5) {
	case 0:
		o.Spec.Type, o.Spec.ExternalName = corev1.ServiceTypeExternalName, "gw.example.com"
	case 1:
		o.Spec.ExternalIPs = []string{"192.0.2.7"}
	case 2:
		o.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{Hostname: "lb.example.com"}, {IP: g.pick("192.0.2.1", "192.0.2.2")}, {IP: "2001:db8::1"}}
	}
	return o
}

func (g *generator) pod() *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: g.namespace(), Name: g.pick("gw-1", "gw-2"), Labels: map[string]string{"istio": g.pick("ingressgateway", "front")},
		},
		Spec:   corev1.PodSpec{NodeName: g.pick("n1", "n2")},
		Status: corev1.PodStatus{Phase: corev1.PodPhase(g.pick("Running", "Pending"))},
	}
}

func (g *generator) node() *corev1.Node {
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: g.pick("n1", "n2")},
		Status: corev1.NodeStatus{Addresses: []corev1.NodeAddress{
			{Type: corev1.NodeInternalIP, Address: "10.0.0.1"}, {Type: corev1.NodeExternalIP, Address: g.pick("198.51.100.1", "198.51.100.2")},
		}},
	}
}
