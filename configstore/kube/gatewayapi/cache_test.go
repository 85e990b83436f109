// SPDX-License-Identifier: Apache-2.0

package gatewayapi_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/file"
	"github.com/pilotkit/pilotkit/configstore/istio"
	"github.com/pilotkit/pilotkit/configstore/kube/gatewayapi"
	"github.com/pilotkit/pilotkit/configstore/memory"
)

const edgeClass = `
apiVersion: gateway.networking.k8s.io/v1
kind: GatewayClass
metadata: {name: edge}
spec: {controllerName: istio.io/gateway-controller}
`

const edgeGateway = `
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: edge, namespace: shop}
spec:
  gatewayClassName: edge
  listeners:
  - {name: web, port: 80, protocol: HTTP}
`

// cartRoute has a backend that a ServiceEntry defines, a weight and a duration.
const cartRoute = `
apiVersion: gateway.networking.k8s.io/v1beta1
kind: HTTPRoute
metadata: {name: cart, namespace: shop}
spec:
  parentRefs: [{name: edge}]
  hostnames: [cart.example.com]
  rules:
  - timeouts: {request: 2s}
    backendRefs:
    - {group: networking.istio.io, kind: Hostname, name: cart.internal, port: 8080, weight: 3}
`

const cartEntry = `
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: cart, namespace: shop}
spec:
  hosts: [cart.internal]
  ports: [{number: 8080, name: http, protocol: HTTP}]
  resolution: STATIC
  endpoints: [{address: 10.0.0.9}]
`

// directory is a Cache of the files of a directory, which the test drives.
type directory struct {
	testing.TB
	dir     string
	objects *memory.Controller
	files   *file.Source
	cache   *gatewayapi.Cache
}

func newDirectory(tb testing.TB, opts gatewayapi.CacheOptions) *directory {
	tb.Helper()
	objects := memory.NewController(memory.Make(gatewayapi.DirectorySchemas().Union(istio.Schemas()), memory.Options{DetectMutations: true}))
	d := &directory{TB: tb, dir: tb.TempDir(), objects: objects}
	d.files = file.New(d.dir, objects.Store)
	d.cache = gatewayapi.NewCache(objects, opts)
	return d
}

// write replaces a file, and returns the problems of the source.
func (d *directory) write(name, text string) []string {
	d.Helper()
	if err := os.WriteFile(filepath.Join(d.dir, name), []byte(text), 0o600); err != nil {
		d.Fatal(err)
	}
	if err := d.files.Reload(); err != nil {
		d.Log(err)
	}
	d.objects.Drain()
	d.cache.HasSynced()
	d.cache.Drain()
	var out []string
	for _, e := range d.files.Report().Errors {
		out = append(out, strings.TrimPrefix(e.Error(), d.dir+"/"))
	}
	return out
}

func (d *directory) route() *gatewayv1.RouteStatus {
	d.Helper()
	status, _ := d.cache.Snapshot().Status(gatewayapi.ObjectKey{
		Kind: gatewayapi.KindHTTPRoute, Key: gatewayapi.Key{Namespace: "shop", Name: "cart"},
	}).(*gatewayv1.RouteStatus)
	if status == nil || len(status.Parents) != 1 {
		d.Fatalf("status %+v", status)
	}
	return status
}

// TestDirectory: objects in files, including objects of an older version, become configs and
// statuses.
func TestDirectory(t *testing.T) {
	d := newDirectory(t, gatewayapi.CacheOptions{})
	if errs := d.write("shop.yaml", edgeClass+"---"+edgeGateway+"---"+cartRoute+"---"+cartEntry); len(errs) > 0 {
		t.Fatal(errs)
	}
	if !d.cache.HasSynced() {
		t.Fatal("not synced")
	}
	if got := d.cache.List(istio.VirtualService, "shop"); len(got) != 1 {
		t.Fatalf("%d VirtualServices", len(got))
	}
	for _, c := range d.route().Parents[0].Conditions {
		if c.Status != "True" || c.ObservedGeneration != 1 {
			t.Errorf("%+v", c)
		}
	}
	// The status is a value that can be stored.
	key := gatewayapi.ObjectKey{Kind: gatewayapi.KindHTTPRoute, Key: gatewayapi.Key{Namespace: "shop", Name: "cart"}}
	config, pending, err := d.cache.PendingStatus(key, time.Now())
	if err != nil || !pending {
		t.Fatal(pending, err)
	}
	if _, err := d.objects.UpdateStatus(config); err != nil {
		t.Fatal(err)
	}
	d.objects.Drain()
	if _, pending, err = d.cache.PendingStatus(key, time.Now()); pending || err != nil {
		t.Errorf("a status that was written: %v, %v", pending, err)
	}
	if d.route().Parents[0].Conditions[0].LastTransitionTime.IsZero() {
		t.Error("the condition has lost its time")
	}
}

// TestDirectoryIsStrict: an invalid object is an error with its position, and the last good state
// stays.
func TestDirectoryIsStrict(t *testing.T) {
	d := newDirectory(t, gatewayapi.CacheOptions{})
	d.write("shop.yaml", edgeClass+"---"+edgeGateway+"---"+cartRoute+"---"+cartEntry)
	before := d.cache.Get(istio.VirtualService, d.cache.List(istio.VirtualService, "shop")[0].Name, "shop")
	for name, test := range map[string]struct{ old, next, want string }{
		"unknown field": {"weight: 3", "wheight: 3", "spec.rules[0].backendRefs[0].wheight: unknown field"},
		"wrong type": {
			"port: 8080, weight", "port: http, weight",
			`spec.rules[0].backendRefs[0].port: must be an integer, is the string "http"`,
		},
		"fraction":      {"weight: 3", "weight: 1.5", "spec.rules[0].backendRefs[0].weight: must be an integer, is the number 1.5"},
		"not a list":    {"hostnames: [cart.example.com]", "hostnames: cart.example.com", `spec.hostnames: must be a list, is the string "cart.example.com"`},
		"not an object": {"timeouts: {request: 2s}", "timeouts: [2s]", "spec.rules[0].timeouts: must be an object, is a list"},
	} {
		t.Run(name, func(t *testing.T) {
			text := edgeClass + "---" + edgeGateway + "---" + strings.Replace(cartRoute, test.old, test.next, 1) + "---" + cartEntry
			errs := d.write("shop.yaml", text)
			if len(errs) != 1 || !strings.HasPrefix(errs[0], "shop.yaml:") || !strings.Contains(errs[0], test.want) ||
				!strings.Contains(errs[0], "HTTPRoute shop/cart") {
				t.Errorf("%q", errs)
			}
			if got := d.cache.Get(istio.VirtualService, before.Name, "shop"); got == nil || !got.Equal(*before) {
				t.Error("the last good state is gone")
			}
		})
	}
}

// TestReadOnly: a Cache rejects writes.
func TestReadOnly(t *testing.T) {
	d := newDirectory(t, gatewayapi.CacheOptions{})
	_, err := d.cache.Create(configstore.Config{})
	_, err2 := d.cache.Update(configstore.Config{})
	_, err3 := d.cache.UpdateStatus(configstore.Config{})
	for _, err := range []error{err, err2, err3, d.cache.Delete(istio.Gateway, "a", "b", nil)} {
		if !errors.Is(err, configstore.ErrReadOnly) {
			t.Error(err)
		}
	}
}

// TestBatches: a batch of the source is one batch, and nothing is published before everything has
// synced.
func TestBatches(t *testing.T) {
	late := &syncer{}
	d := newDirectory(t, gatewayapi.CacheOptions{Inputs: []configstore.Syncer{late}})
	var batches [][]configstore.Change
	d.cache.Subscribe([]configstore.GroupVersionKind{istio.Gateway, istio.VirtualService}, func(changes []configstore.Change) {
		batches = append(batches, append([]configstore.Change(nil), changes...))
	})
	d.write("shop.yaml", edgeClass+"---"+edgeGateway+"---"+cartRoute+"---"+cartEntry)
	if d.cache.HasSynced() || len(batches) > 0 {
		t.Fatalf("%d batches before the inputs have synced", len(batches))
	}
	late.synced = true
	d.cache.HasSynced()
	d.cache.Drain()
	if !d.cache.HasSynced() || len(batches) != 1 || len(batches[0]) != 2 {
		t.Fatalf("%v", batches)
	}
	d.write("shop.yaml", edgeClass+"---"+strings.Replace(edgeGateway, "name: web", "name: http", 1)+"---"+cartRoute+"---"+cartEntry)
	if len(batches) != 2 {
		t.Fatalf("%d batches for one write", len(batches)-1)
	}
}

type syncer struct{ synced bool }

func (s *syncer) HasSynced() bool { return s.synced }

// TestRefusals: the status of a rejected route contains the proxy's message, and other routes are
// not affected.
func TestRefusals(t *testing.T) {
	d := newDirectory(t, gatewayapi.CacheOptions{})
	other := strings.NewReplacer("name: cart,", "name: other,", "cart.example.com", "other.example.com").Replace(cartRoute)
	d.write("shop.yaml", edgeClass+"---"+edgeGateway+"---"+cartRoute+"---"+other+"---"+cartEntry)
	var refused configstore.ConfigKey
	for _, c := range d.cache.List(istio.VirtualService, "shop") {
		if strings.HasSuffix(c.Name, "~cart.example.com") {
			refused = c.Key()
		}
	}
	accepted := func(route string) string {
		status, _ := d.cache.Snapshot().Status(gatewayapi.ObjectKey{
			Kind: gatewayapi.KindHTTPRoute, Key: gatewayapi.Key{Namespace: "shop", Name: route},
		}).(*gatewayv1.RouteStatus)
		for _, c := range status.Parents[0].Conditions {
			if c.Type == "Accepted" {
				return string(c.Status) + " " + c.Reason + " " + c.Message
			}
		}
		return ""
	}
	d.cache.Apply(gatewayapi.SetRefusals(map[configstore.ConfigKey]string{refused: "a proxy refuses it: invalid regex"}))
	if got := accepted("cart"); got != "False RefusedByProxy a proxy refuses it: invalid regex" {
		t.Error(got)
	}
	if got := accepted("other"); !strings.HasPrefix(got, "True ") {
		t.Error(got)
	}
	if len(d.cache.List(istio.VirtualService, "shop")) != 2 {
		t.Error("the configs have changed")
	}
	listener := d.cache.List(istio.Gateway, "shop")[0].Key()
	d.cache.Apply(gatewayapi.SetRefusals(map[configstore.ConfigKey]string{listener: "port in use"}))
	if got := accepted("cart"); !strings.HasPrefix(got, "True ") {
		t.Error(got)
	}
	gateway, _ := d.cache.Snapshot().Status(gatewayapi.ObjectKey{
		Kind: gatewayapi.KindGateway, Key: gatewayapi.Key{Namespace: "shop", Name: "edge"},
	}).(*gatewayv1.GatewayStatus)
	found := false
	for _, c := range gateway.Listeners[0].Conditions {
		found = found || c.Type == "Programmed" && c.Status == "False" && strings.Contains(c.Message, "port in use")
	}
	if !found {
		t.Errorf("%+v", gateway.Listeners[0].Conditions)
	}
}

// builder is an Infrastructure that fails a given number of times.
type builder struct {
	fail    int
	calls   []string
	address string
}

func (b *builder) Ensure(_ context.Context, desired gatewayapi.Desired) (gatewayapi.Provided, error) {
	b.calls = append(b.calls, "ensure "+desired.Gateway.String())
	if b.fail--; b.fail >= 0 {
		return gatewayapi.Provided{}, errors.New("no room")
	}
	return gatewayapi.Provided{Ready: true, Addresses: []gatewayv1.GatewayStatusAddress{{Value: b.address}}}, nil
}

func (b *builder) Remove(_ context.Context, gateway gatewayapi.Key) error {
	b.calls = append(b.calls, "remove "+gateway.String())
	return nil
}

// TestInfrastructure: the status of a Gateway contains the result and the errors of its
// Infrastructure, and failed calls are retried.
func TestInfrastructure(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		b := &builder{fail: 2, address: "10.0.0.1"}
		objects := memory.NewController(memory.Make(gatewayapi.DirectorySchemas()))
		files := file.New(dir, objects.Store)
		cache := gatewayapi.NewCache(objects, gatewayapi.CacheOptions{Infrastructure: b})
		stop := make(chan struct{})
		go cache.Run(stop)
		write := func(text string) {
			if err := os.WriteFile(filepath.Join(dir, "edge.yaml"), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			if err := files.Reload(); err != nil {
				t.Fatal(err)
			}
			objects.Drain()
			time.Sleep(100 * time.Millisecond) // synthetic
			synctest.Wait()
		}
		programmed := func() string {
			status, _ := cache.Snapshot().Status(gatewayapi.ObjectKey{
				Kind: gatewayapi.KindGateway, Key: gatewayapi.Key{Namespace: "shop", Name: "edge"},
			}).(*gatewayv1.GatewayStatus)
			for _, c := range status.Conditions {
				if c.Type == "Programmed" {
					return string(c.Status) + " " + c.Reason + " " + c.Message
				}
			}
			return ""
		}
		write(edgeClass + "---" + edgeGateway)
		if got := programmed(); got != "False NoResources no room" {
			t.Error(got)
		}
		time.Sleep(10 * time.Second)
		synctest.Wait()
		if got := programmed(); !strings.HasPrefix(got, "True ") || len(b.calls) != 3 {
			t.Error(got, b.calls)
		}
		b.address = "10.0.0.2"
		cache.InfrastructureChanged(gatewayapi.Key{Namespace: "shop", Name: "edge"})
		synctest.Wait()
		status, _ := cache.Snapshot().Status(gatewayapi.ObjectKey{
			Kind: gatewayapi.KindGateway, Key: gatewayapi.Key{Namespace: "shop", Name: "edge"},
		}).(*gatewayv1.GatewayStatus)
		if len(status.Addresses) != 1 || status.Addresses[0].Value != "10.0.0.2" || len(b.calls) != 4 {
			t.Errorf("%v, calls %v", status.Addresses, b.calls)
		}
		write(edgeClass)
		if last := b.calls[len(b.calls)-1]; last != "remove shop/edge" || len(b.calls) != 5 {
			t.Error(b.calls)
		}
		close(stop)
		synctest.Wait()
	})
}
