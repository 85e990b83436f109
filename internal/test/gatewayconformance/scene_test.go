// SPDX-License-Identifier: Apache-2.0

package gatewayconformance

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/dynamic"

	"github.com/pilotkit/pilotkit/configstore/kube/gatewayapi"
)

// scene is a namespace with the objects of a test, as users write them.
type scene struct {
	t         *testing.T
	cluster   *environment
	client    dynamic.Interface
	namespace string
}

func newScene(t *testing.T, cluster *environment, namespace string) *scene {
	t.Helper()
	client, err := dynamic.NewForConfig(cluster.config)
	if err != nil {
		t.Fatal(err)
	}
	s := &scene{t: t, cluster: cluster, client: client, namespace: namespace}
	s.apply("{apiVersion: v1, kind: Namespace, metadata: {name: " + namespace + "}}")
	return s
}

// resource returns the client of an object's kind.
func (s *scene) resource(o *unstructured.Unstructured) dynamic.ResourceInterface {
	gvk := o.GroupVersionKind()
	resource := s.client.Resource(schema.GroupVersionResource{Group: gvk.Group, Version: gvk.Version, Resource: strings.ToLower(gvk.Kind) + "s"})
	if gvk.Kind == "Namespace" {
		return resource
	}
	return resource.Namespace(s.namespace)
}

// apply creates the objects of a YAML text, or replaces them but for their status.
func (s *scene) apply(text string, replace ...string) {
	s.t.Helper()
	ctx := s.t.Context()
	for decoder := yaml.NewYAMLOrJSONDecoder(strings.NewReader(strings.NewReplacer(replace...).Replace(text)), 4096); ; {
		o := &unstructured.Unstructured{}
		err := decoder.Decode(o)
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			s.t.Fatal(err)
		}
		client := s.resource(o)
		_, err = client.Create(ctx, o, metav1.CreateOptions{FieldValidation: metav1.FieldValidationStrict})
		for apierrors.IsAlreadyExists(err) || apierrors.IsConflict(err) {
			var old *unstructured.Unstructured
			if old, err = client.Get(ctx, o.GetName(), metav1.GetOptions{}); err == nil {
				o.SetResourceVersion(old.GetResourceVersion())
				_, err = client.Update(ctx, o, metav1.UpdateOptions{FieldValidation: metav1.FieldValidationStrict})
			}
		}
		if err != nil {
			s.t.Fatalf("apply %s %s: %v", o.GetKind(), o.GetName(), err)
		}
	}
}

// gateway creates a Gateway, and returns the address that its Envoy has.
func (s *scene) gateway(name, listeners string) (address string) {
	s.t.Helper()
	s.apply(`
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: NAME}
spec: {gatewayClassName: CLASS, listeners: LISTENERS}
`, "NAME", name, "CLASS", className, "LISTENERS", listeners)
	s.eventually("the Gateway "+name+" is programmed", func() bool {
		for _, g := range s.cluster.plane.gateways.Gateways() {
			if g.Gateway == (gatewayapi.Key{Namespace: s.namespace, Name: name}) {
				o := s.get("gateways", name)
				list, _, _ := unstructured.NestedSlice(o.Object, "status", "addresses")
				if len(list) > 0 {
					address, _, _ = unstructured.NestedString(list[0].(map[string]any), "value")
				}
			}
		}
		return address != ""
	})
	return address
}

// route creates an HTTPRoute, or replaces it.
func (s *scene) route(name, parents, rules string) {
	s.t.Helper()
	s.apply(`
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: NAME}
spec: {parentRefs: PARENTS, hostnames: [NAME.example.com], rules: RULES}
`, "NAME", name, "PARENTS", parents, "RULES", rules)
}

// backend creates a Service whose one endpoint, in this process, answers with the name of the
// Service.
func (s *scene) backend(name string) {
	s.t.Helper()
	lis, err := new(net.ListenConfig).Listen(s.t.Context(), "tcp", hostAddress+":0")
	if err != nil {
		s.t.Fatal(err)
	}
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, name) // The client says if it has not come.
	}))
	server.Listener.Close()
	server.Listener = lis
	server.Start()
	s.t.Cleanup(server.Close)
	s.apply(`
apiVersion: v1
kind: Service
metadata: {name: NAME}
spec: {ports: [{name: http, port: 80, targetPort: PORT}]}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: NAME-1, labels: {kubernetes.io/service-name: NAME}}
addressType: IPv4
ports: [{name: http, port: PORT, protocol: TCP}]
endpoints: [{addresses: [HOST], conditions: {ready: true}}]
`, "NAME", name, "HOST", hostAddress, "PORT", strconv.Itoa(lis.Addr().(*net.TCPAddr).Port))
}

// get returns an object of the Gateway API.
func (s *scene) get(plural, name string) *unstructured.Unstructured {
	s.t.Helper()
	o, err := s.client.Resource(schema.GroupVersionResource{Group: "gateway.networking.k8s.io", Version: "v1", Resource: plural}).
		Namespace(s.namespace).Get(s.t.Context(), name, metav1.GetOptions{})
	if err != nil {
		s.t.Fatalf("get %s %s: %v", plural, name, err)
	}
	return o
}

// accepted returns the condition Accepted of a route at one of its parents, "STATUS REASON MESSAGE",
// of its present generation.
func (s *scene) accepted(name, parent string) string {
	s.t.Helper()
	o := s.get("httproutes", name)
	parents, _, _ := unstructured.NestedSlice(o.Object, "status", "parents")
	for _, p := range parents {
		entry, _ := p.(map[string]any)
		if ref, _, _ := unstructured.NestedString(entry, "parentRef", "name"); ref != parent {
			continue
		}
		conditions, _, _ := unstructured.NestedSlice(entry, "conditions")
		for _, c := range conditions {
			c, _ := c.(map[string]any)
			if c["type"] == "Accepted" && c["observedGeneration"] == o.GetGeneration() {
				return strings.Join([]string{c["status"].(string), c["reason"].(string), c["message"].(string)}, " ")
			}
		}
	}
	return ""
}

func (s *scene) eventually(what string, holds func() bool) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), patience)
	defer cancel()
	again := time.NewTicker(10 * time.Millisecond)
	defer again.Stop()
	for !holds() {
		select {
		case <-again.C:
		case <-ctx.Done():
			s.t.Fatalf("not within %v: %s", patience, what)
		}
	}
}
