// SPDX-License-Identifier: Apache-2.0

package cluster_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/kube"
	"github.com/pilotkit/pilotkit/configstore/kube/gatewayapi"
	"github.com/pilotkit/pilotkit/configstore/kube/gatewayapi/cluster"
	"github.com/pilotkit/pilotkit/internal/test/kubetest"
)

var apiserver kubetest.Shared

func TestMain(m *testing.M) { apiserver.Main(m) }

// patience is the maximum time that a test waits for an expected event.
const patience = time.Minute

func eventually(tb testing.TB, what string, holds func() bool) {
	tb.Helper()
	again := time.NewTicker(5 * time.Millisecond)
	defer again.Stop()
	timeout := time.NewTimer(patience)
	defer timeout.Stop()
	for !holds() {
		select {
		case <-again.C:
		case <-timeout.C:
			tb.Fatalf("not within %v: %s", patience, what)
		}
	}
}

func restConfig(c kubetest.Config) *rest.Config {
	return &rest.Config{
		Host: c.Host, BearerToken: c.Token, TLSClientConfig: rest.TLSClientConfig{Insecure: true},
		Impersonate: rest.ImpersonationConfig{UserName: c.User, Groups: c.Groups}, QPS: -1,
	}
}

// site is a namespace of an API server, with the actions of a test as an administrator.
type site struct {
	testing.TB
	server    *kubetest.Server
	client    dynamic.Interface
	namespace string
}

func newSite(tb testing.TB) *site {
	tb.Helper()
	server := apiserver.Server(tb)
	server.ApplyCRDs(tb, kubetest.GatewayAPICRDs(tb, "experimental"))
	return siteOf(tb, server)
}

func siteOf(tb testing.TB, server *kubetest.Server) *site {
	tb.Helper()
	client, err := dynamic.NewForConfig(restConfig(server.Config()))
	if err != nil {
		tb.Fatal(err)
	}
	return &site{TB: tb, server: server, client: client, namespace: server.Namespace(tb)}
}

// resource returns the client of an object's kind. All kinds of these tests have regular plurals.
func (s *site) resource(o *unstructured.Unstructured) dynamic.ResourceInterface {
	plural, _ := meta.UnsafeGuessKindToResource(o.GroupVersionKind())
	if o.GetKind() == "Gateway" {
		plural.Resource = "gateways"
	}
	switch o.GetKind() {
	case "GatewayClass", "Namespace", "ClusterRole", "ClusterRoleBinding":
		return s.client.Resource(plural)
	}
	if o.GetNamespace() == "" {
		o.SetNamespace(s.namespace)
	}
	return s.client.Resource(plural).Namespace(o.GetNamespace())
}

// objects parses the objects of a YAML text.
func (s *site) objects(text string) (out []*unstructured.Unstructured) {
	s.Helper()
	for decoder := yaml.NewYAMLOrJSONDecoder(strings.NewReader(text), 4096); ; {
		o := &unstructured.Unstructured{}
		err := decoder.Decode(o)
		if errors.Is(err, io.EOF) {
			return out
		}
		if err != nil {
			s.Fatal(err)
		}
		if len(o.Object) > 0 {
			out = append(out, o)
		}
	}
}

// apply creates the objects of a YAML text, or replaces them except for their status.
func (s *site) apply(text string) {
	s.Helper()
	for _, o := range s.objects(text) {
		client := s.resource(o)
		_, err := client.Create(s.Context(), o, metav1.CreateOptions{FieldValidation: "Strict"})
		for apierrors.IsAlreadyExists(err) || apierrors.IsConflict(err) {
			var old *unstructured.Unstructured
			if old, err = client.Get(s.Context(), o.GetName(), metav1.GetOptions{}); err == nil {
				o.SetResourceVersion(old.GetResourceVersion())
				_, err = client.Update(s.Context(), o, metav1.UpdateOptions{FieldValidation: "Strict"})
			}
		}
		if err != nil {
			s.Fatalf("apply %s %s: %v", o.GetKind(), o.GetName(), err)
		}
	}
}

// remove deletes the objects of a YAML text, which need only a name.
func (s *site) remove(text string) {
	s.Helper()
	for _, o := range s.objects(text) {
		if err := s.resource(o).Delete(s.Context(), o.GetName(), metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
			s.Fatalf("delete %s %s: %v", o.GetKind(), o.GetName(), err)
		}
	}
}

// get returns an object of the Gateway API.
func (s *site) get(plural, name string) *unstructured.Unstructured {
	s.Helper()
	o, err := s.client.Resource(schema.GroupVersionResource{Group: "gateway.networking.k8s.io", Version: "v1", Resource: plural}).
		Namespace(s.namespace).Get(s.Context(), name, metav1.GetOptions{})
	if err != nil {
		s.Fatalf("get %s %s: %v", plural, name, err)
	}
	return o
}

// condition returns the status, reason and message of a condition at a path of an object: "status",
// or "status", "parents", "0".
func condition(o *unstructured.Unstructured, of string, path ...string) (status, reason, message string) {
	var at any = o.Object
	for _, step := range append(path, "conditions") {
		switch v := at.(type) {
		case map[string]any:
			at = v[step]
		case []any:
			if len(v) == 0 {
				return "", "", ""
			}
			at = v[step[0]-'0']
		default:
			return "", "", ""
		}
	}
	list, _ := at.([]any)
	for _, entry := range list {
		if c, _ := entry.(map[string]any); c["type"] == of {
			status, _ = c["status"].(string)
			reason, _ = c["reason"].(string)
			message, _ = c["message"].(string)
		}
	}
	return status, reason, message
}

// process is the cache and the writer of one process.
type process struct {
	cache    *cluster.Cache
	statuses *cluster.StatusWriter
	stop     func()
}

// start runs a cache and a writer until the test ends or stop is called.
func (s *site) start(config *rest.Config, opts cluster.Options, statuses kube.StatusOptions) *process {
	s.Helper()
	opts.Logger = slog.New(slog.NewTextHandler(output{s}, nil))
	statuses.Logger = opts.Logger
	cache, err := cluster.New(config, opts)
	if err != nil {
		s.Fatal(err)
	}
	writer, err := cluster.NewStatusWriter(cache, config, statuses)
	if err != nil {
		s.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { cache.Run(ctx.Done()) })  //nolint:contextcheck // It ends with ctx.
	running.Go(func() { writer.Run(ctx.Done()) }) //nolint:contextcheck // It ends with ctx.
	p := &process{cache: cache, statuses: writer, stop: sync.OnceFunc(func() {
		cancel()
		running.Wait()
	})}
	s.Cleanup(p.stop)
	return p
}

// follow runs a cache without a writer.
func (s *site) follow(config *rest.Config, opts cluster.Options) *process {
	s.Helper()
	opts.Logger = slog.New(slog.NewTextHandler(output{s}, nil))
	cache, err := cluster.New(config, opts)
	if err != nil {
		s.Fatal(err)
	}
	stop := make(chan struct{})
	var running sync.WaitGroup
	running.Go(func() { cache.Run(stop) })
	p := &process{cache: cache, stop: sync.OnceFunc(func() {
		close(stop)
		running.Wait()
	})}
	s.Cleanup(p.stop)
	return p
}

func (s *site) synced(p *process) {
	s.Helper()
	ctx, cancel := context.WithTimeout(s.Context(), patience)
	defer cancel()
	if err := configstore.WaitForSync(ctx, p.cache); err != nil {
		s.Fatalf("%v; errors: %v", err, p.cache.Errors())
	}
}

// output is the log of a test, which ends with it.
type output struct{ testing.TB }

// Write implements io.Writer.
func (o output) Write(p []byte) (int, error) {
	if o.Context().Err() == nil {
		o.Log(strings.TrimSpace(string(p)))
	}
	return len(p), nil
}

// host is an Infrastructure whose results a test sets.
type host struct {
	mu      sync.Mutex
	desired map[gatewayapi.Key]gatewayapi.Desired
	answer  func(gatewayapi.Desired) (gatewayapi.Provided, error)
}

func (h *host) Ensure(_ context.Context, desired gatewayapi.Desired) (gatewayapi.Provided, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.desired == nil {
		h.desired = map[gatewayapi.Key]gatewayapi.Desired{}
	}
	h.desired[desired.Gateway] = desired
	return h.answer(desired)
}

func (h *host) Remove(_ context.Context, gateway gatewayapi.Key) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.desired, gateway)
	return nil
}

func (h *host) of(key gatewayapi.Key) (gatewayapi.Desired, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	d, ok := h.desired[key]
	return d, ok
}
