// SPDX-License-Identifier: Apache-2.0

package kubetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/dynamic"
)

// IstioCRDs returns the CRDs of the version of istio.io/api that the module under
// test requires, as YAML.
func IstioCRDs(tb testing.TB) []byte {
	tb.Helper()
	out, err := exec.CommandContext(tb.Context(), "go", "list", "-m", "-f", "{{.Dir}}", "istio.io/api").Output()
	if err != nil {
		tb.Fatalf("go list -m istio.io/api: %v", err)
	}
	data, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(out)), "kubernetes", "customresourcedefinitions.gen.yaml"))
	if err != nil {
		tb.Fatal(err)
	}
	return data
}

// ApplyCRDs creates the CRDs of a YAML input that do not exist, and returns when
// all of them are served.
func (s *Server) ApplyCRDs(tb testing.TB, manifests []byte) {
	tb.Helper()
	objects, err := decode(manifests)
	if err != nil {
		tb.Fatal(err)
	}
	client := s.crds(tb)
	for _, object := range objects {
		if _, err := client.Create(tb.Context(), object, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
			tb.Fatalf("create CRD %s: %v", object.GetName(), err)
		}
	}
	for _, object := range objects {
		if err := awaitEstablished(tb.Context(), client, object.GetName()); err != nil {
			tb.Fatalf("CRD %s is not established: %v", object.GetName(), err)
		}
	}
}

// DeleteCRD deletes a CRD with its objects, and returns when it is gone.
func (s *Server) DeleteCRD(tb testing.TB, name string) {
	tb.Helper()
	client := s.crds(tb)
	if err := client.Delete(tb.Context(), name, metav1.DeleteOptions{}); err != nil {
		tb.Fatalf("delete CRD %s: %v", name, err)
	}
	if err := poll(tb.Context(), func(ctx context.Context) (bool, error) {
		_, err := client.Get(ctx, name, metav1.GetOptions{})
		return apierrors.IsNotFound(err), nil
	}); err != nil {
		tb.Fatalf("CRD %s is still there: %v", name, err)
	}
}

func (s *Server) crds(tb testing.TB) dynamic.ResourceInterface {
	tb.Helper()
	client, err := dynamic.NewForConfig(s.Config())
	if err != nil {
		tb.Fatal(err)
	}
	return client.Resource(schema.GroupVersionResource{
		Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions",
	})
}

func decode(manifests []byte) ([]*unstructured.Unstructured, error) {
	var objects []*unstructured.Unstructured
	for decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(manifests), 4096); ; {
		var object unstructured.Unstructured
		switch err := decoder.Decode(&object); {
		case errors.Is(err, io.EOF):
			return objects, nil
		case err != nil:
			return nil, err
		case len(object.Object) > 0:
			objects = append(objects, &object)
		}
	}
}

func awaitEstablished(ctx context.Context, client dynamic.ResourceInterface, name string) error {
	return poll(ctx, func(ctx context.Context) (bool, error) {
		crd, err := client.Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return false, err
		}
		conditions, _, _ := unstructured.NestedSlice(crd.Object, "status", "conditions") // null at first
		for _, c := range conditions {
			if condition, ok := c.(map[string]any); ok && condition["type"] == "Established" {
				return condition["status"] == "True", nil
			}
		}
		return false, nil
	})
}

func poll(ctx context.Context, done wait.ConditionWithContextFunc) error {
	return wait.PollUntilContextTimeout(ctx, 20*time.Millisecond, 30*time.Second, true, done)
}

// Namespace creates a namespace for the test, and returns its name.
func (s *Server) Namespace(tb testing.TB) string {
	tb.Helper()
	client, err := dynamic.NewForConfig(s.Config())
	if err != nil {
		tb.Fatal(err)
	}
	namespace := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"generateName": "test-"},
	}}
	created, err := client.Resource(schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}).
		Create(tb.Context(), namespace, metav1.CreateOptions{})
	if err != nil {
		tb.Fatal(fmt.Errorf("create a namespace: %w", err))
	}
	return created.GetName()
}
