// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/pilotkit/pilotkit/internal/test/kubetest"
	"github.com/pilotkit/pilotkit/internal/test/tier"
)

// faults is a plane behind a proxy that disturbs it, with clients of a Service and of a
// ServiceEntry whose endpoints change on another path.
type faults struct {
	*cluster
	front             *kubetest.Front
	plane             *plane
	greetings, orders *caller
}

// The endpoints of each service; one of them is used at a time.
const (
	greeter1, greeter2 = "10.1.0.1:9090", "10.1.0.2:9090"
	orders1, orders2   = "10.1.0.9:9090", "10.1.0.8:9090"
)

func newFaults(t *testing.T) *faults {
	t.Helper()
	f := &faults{cluster: newCluster(t)}
	f.front = f.server.Front(t)
	f.second(false)
	b := startBackends(t, greeter1, greeter2, orders1, orders2)
	var xds string
	f.plane, xds = startPlane(t, f.serviceAccountBehind(f.front))
	f.greetings = call(t, b.dial(t, xds, "greeter.demo.svc.cluster.local:80"))
	f.orders = call(t, b.dial(t, xds, "orders.example.com:80"))
	f.expect(false)
	return f
}

// second makes the second endpoint of each the one that counts, or the first one.
func (f *faults) second(second bool) {
	f.t.Helper()
	if second {
		f.apply(slice("greeter-1", "10.1.0.2"))
		f.apply(strings.ReplaceAll(greeter, "10.1.0.9", "10.1.0.8"))
		return
	}
	f.apply(greeter)
	f.apply(slice("greeter-1", "10.1.0.1"))
}

// expect waits until that one alone answers; no call fails.
func (f *faults) expect(second bool) {
	f.t.Helper()
	if second {
		f.greetings.expect(greeter2)
		f.orders.expect(orders2)
		return
	}
	f.greetings.expect(greeter1)
	f.orders.expect(orders1)
}

// phase changes the endpoints during a fault, and expects that clients keep their resources
// meanwhile, and get the changes after the fault.
func (f *faults) phase(name string, breakIt, mendIt func()) {
	f.t.Run(name, func(t *testing.T) {
		breakIt()
		f.second(true)
		f.expect(false)
		mendIt()
		f.expect(true)
		eventually(t, "no error remains", func() bool { return len(f.plane.configs.Errors()) == 0 })
		f.second(false)
		f.expect(false)
	})
}

// awaitErrors waits until no kind can be read.
func (f *faults) awaitErrors(are func(error) bool) {
	f.t.Helper()
	eventually(f.t, "all kinds are errors", func() bool {
		errs := f.plane.configs.Errors()
		for _, err := range errs {
			if !are(err) {
				return false
			}
		}
		return len(errs) > len(f.plane.configs.Schemas().All()) // with the CRDs
	})
}

// eventually waits until a condition holds.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	again := time.NewTicker(5 * time.Millisecond)
	defer again.Stop()
	timeout := time.NewTimer(patience)
	defer timeout.Stop()
	for !holds() {
		select {
		case <-again.C:
		case <-timeout.C:
			t.Fatalf("not within %v: %s", patience, what)
		}
	}
}

// forbid takes the rights of the plane away, and returns when that counts.
func (c *cluster) forbid() {
	c.t.Helper()
	bindings := c.client.Resource(schema.GroupVersionResource{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "clusterrolebindings"})
	if err := bindings.Delete(c.t.Context(), "pilotkit", metav1.DeleteOptions{}); err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(c.install)
	client, err := dynamic.NewForConfig(c.serviceAccount())
	if err != nil {
		c.t.Fatal(err)
	}
	eventually(c.t, "the rights are gone", func() bool {
		_, err := client.Resource(schema.GroupVersionResource{Version: "v1", Resource: "services"}).List(c.t.Context(), metav1.ListOptions{})
		return apierrors.IsForbidden(err)
	})
}

// TestFaults: while the API server is down, silent, or forbids everything, clients keep their
// resources, and no call fails. After the fault they get the changes.
func TestFaults(t *testing.T) {
	tier.OnlyFull(t, "faults of an API server")
	f := newFaults(t)
	f.phase("Outage", func() {
		f.front.Refuse(true)
		f.awaitErrors(func(error) bool { return true })
	}, func() { f.front.Refuse(false) })
	f.phase("Silence", func() { f.front.Hold(true) }, func() { f.front.Hold(false) })
	f.phase("Forbidden", func() {
		f.forbid()
		f.front.Cut() // Rights are looked at when a watch begins.
		f.awaitErrors(apierrors.IsForbidden)
	}, f.install)
	t.Run("Cut", func(t *testing.T) {
		for range 2 {
			f.front.Cut()
			f.second(true)
			f.front.Cut()
			f.expect(true)
			f.front.Cut()
			f.second(false)
			f.front.Cut()
			f.expect(false)
		}
		eventually(t, "no error remains", func() bool { return len(f.plane.configs.Errors()) == 0 })
	})
	f.expectCondition("orders", "ServicesMade", "True", "1 service: orders.example.com")
}

// TestRightsThatComeLate: a plane that starts before its rights do is not ready until it
// has read everything.
func TestRightsThatComeLate(t *testing.T) {
	c := newCluster(t)
	c.forbid()
	p, err := newPlane(c.serviceAccount(), settings{
		listen: "127.0.0.1:0", probes: "127.0.0.1:0", domain: "cluster.local", log: slog.New(slog.NewTextHandler(t.Output(), nil)),
	})
	if err != nil {
		t.Fatal(err)
	}
	probing, started := make(chan string, 1), make(chan struct{})
	p.probing = func(address string) { probing <- address }
	p.started = func(string) { close(started) }
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- p.run(ctx) }()
	defer func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}()
	probes := "http://" + <-probing
	eventually(t, "all kinds are forbidden", func() bool { return len(p.configs.Errors()) > len(p.configs.Schemas().All()) })
	alive, _ := probe(t, probes+"/healthz")
	if ready, text := probe(t, probes+"/readyz"); alive != http.StatusOK || ready != http.StatusServiceUnavailable {
		t.Errorf("without rights: alive %d, ready %d: %s", alive, ready, text)
	}
	c.install()
	<-started
	for _, err := range p.configs.Errors() {
		// Which kinds there are was found out otherwise; this one is asked for again. A kind that has been read
		// is asked for again while the API server initializes its storage, which answers so.
		if !apierrors.IsTooManyRequests(err) && !strings.HasPrefix(err.Error(), "CustomResourceDefinition: ") {
			t.Errorf("ready with %v", err)
		}
	}
	eventually(t, "nothing is forbidden", func() bool { return len(p.configs.Errors()) == 0 })
}
