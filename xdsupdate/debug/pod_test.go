// SPDX-License-Identifier: Apache-2.0

package debug_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pilotkit/pilotkit/registry"
	registrymemory "github.com/pilotkit/pilotkit/registry/memory"
	"github.com/pilotkit/pilotkit/xdsupdate"
	"github.com/pilotkit/pilotkit/xdsupdate/debug"
)

// cluster is a registry that knows what pods are to services, as that of a Kubernetes cluster does.
type cluster struct {
	*registrymemory.Registry
}

func (c cluster) Explain(ctx context.Context, hostname registry.Hostname, namespace, pod string) (registry.PodExplanation, error) {
	switch namespace + "/" + pod {
	case "shop/cart-1":
		return registry.PodExplanation{
			Endpoints: []*registry.Endpoint{{Addresses: []string{"10.1.0.1"}, EndpointPort: 8080, ServicePortName: "http"}},
			Reasons:   []string{"the slice a says that it is not ready: it is UnHealthy"},
		}, nil
	case "shop/silent":
		<-ctx.Done()
		return registry.PodExplanation{}, ctx.Err()
	default:
		return registry.PodExplanation{Reasons: []string{"there is no pod " + namespace + "/" + pod + " for <" + string(hostname) + ">"}}, nil
	}
}

// TestPods: the page of a service explains pods, as far as registries know them.
func TestPods(t *testing.T) {
	t.Parallel()
	p := newPlane(t, nil)
	const service = "/service?host=cart.example.com&namespace=shop"
	p.apply(mesh)
	if page := p.html(service); strings.Contains(page, "Why is this pod") {
		t.Errorf("no registry knows pods, and the page asks for one:\n%s", page)
	}
	p.registries.AddRegistry(func(updater xdsupdate.XDSUpdater) registry.Instance {
		return cluster{registrymemory.New(registrymemory.Options{Updater: updater, Provider: registry.Kubernetes, Cluster: "east"})}
	})
	demand(t, service, p.html(service), `<label for="pod">Why is this pod an endpoint, or none</label>`)
	demand(t, "an endpoint", p.html(service+"&pod=cart-1"), "In cluster east", "10.1.0.1:8080", "<li>the slice a says that it is not ready")
	demand(t, "another namespace", p.html(service+"&pod=web-1&pod_namespace=web"),
		"it is no endpoint", "<li>there is no pod web/web-1 for &lt;cart.example.com&gt;</li>", `name="pod_namespace" value="web"`)

	type answer struct {
		Cluster   string
		Endpoints []struct{ Addresses []string }
		Reasons   []string
	}
	var got struct{ Pod struct{ Answers []answer } }
	p.json(service+"&pod=web-1", &got)
	want := []answer{{Cluster: "east", Endpoints: []struct{ Addresses []string }{}, Reasons: []string{"there is no pod shop/web-1 for <cart.example.com>"}}}
	if diff := cmp.Diff(want, got.Pod.Answers); diff != "" {
		t.Errorf("a pod that is none (-want +got):\n%s", diff)
	}
}

// TestPodsOfSilentRegistry: a registry that does not answer keeps the reader waiting for some seconds only.
func TestPodsOfSilentRegistry(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		services := cluster{registrymemory.New()}
		err := services.SetService(&registry.Service{Hostname: "cart.example.com", Attributes: registry.ServiceAttributes{Namespace: "shop"}})
		if err != nil {
			t.Fatal(err)
		}
		services.Drain()
		pages := debug.New(debug.Options{Services: services})
		began := time.Now()
		w := recorded(pages, request("GET", "/service?host=cart.example.com&namespace=shop&pod=silent"))
		demand(t, "silent", w.Body.String(), "No answer: context deadline exceeded")
		if waited := time.Since(began); waited > 10*time.Second {
			t.Errorf("the reader waited for %v", waited)
		}
	})
}
