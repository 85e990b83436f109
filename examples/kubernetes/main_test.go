// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"

	"github.com/pilotkit/pilotkit/internal/test/kubetest"
)

var apiserver kubetest.Shared

func TestMain(m *testing.M) { apiserver.Main(m) }

// clientConfig is how client-go reaches a server.
func clientConfig(c kubetest.Config) *rest.Config {
	return &rest.Config{
		Host: c.Host, BearerToken: c.Token, TLSClientConfig: rest.TLSClientConfig{Insecure: true},
		Impersonate: rest.ImpersonationConfig{UserName: c.User, Groups: c.Groups},
		QPS:         -1,
	}
}

func TestArguments(t *testing.T) {
	var out bytes.Buffer
	if err := run(t.Context(), []string{"-h"}, &out); err != nil || !strings.Contains(out.String(), "-kubeconfig") {
		t.Errorf("-h = %v, %q", err, out.String())
	}
	for _, args := range [][]string{{"-nonsense"}, {"more"}, {"-lease", "name"}, {"-kubeconfig", "absent"}} {
		if err := run(t.Context(), args, io.Discard); err == nil {
			t.Errorf("%v are taken", args)
		}
	}
}

// cluster has the operations of a test on an API server as an administrator.
type cluster struct {
	t      *testing.T
	server *kubetest.Server
	client dynamic.Interface
	mapper meta.RESTMapper
}

// newCluster returns the shared server with Istio's CRDs and the manifests.
func newCluster(t *testing.T) *cluster {
	t.Helper()
	server := apiserver.Server(t)
	server.ApplyCRDs(t, kubetest.IstioCRDs(t))
	client, err := dynamic.NewForConfig(clientConfig(server.Config()))
	if err != nil {
		t.Fatal(err)
	}
	known, err := discovery.NewDiscoveryClientForConfig(clientConfig(server.Config()))
	if err != nil {
		t.Fatal(err)
	}
	groups, err := restmapper.GetAPIGroupResources(known)
	if err != nil {
		t.Fatal(err)
	}
	c := &cluster{t: t, server: server, client: client, mapper: restmapper.NewDiscoveryRESTMapper(groups)}
	c.install()
	return c
}

// install applies the manifests.
func (c *cluster) install() {
	c.t.Helper()
	manifests, err := os.ReadFile("manifests/pilotkit.yaml")
	if err != nil {
		c.t.Fatal(err)
	}
	c.apply(string(manifests))
}

// serviceAccount returns the configuration of the account in the manifests.
func (c *cluster) serviceAccount() *rest.Config {
	return clientConfig(c.server.ConfigFor("system:serviceaccount:pilotkit:pilotkit",
		"system:serviceaccounts", "system:serviceaccounts:pilotkit"))
}

// serviceAccountBehind is the same through a proxy.
func (c *cluster) serviceAccountBehind(front *kubetest.Front) *rest.Config {
	config := clientConfig(front.Config())
	config.Impersonate = c.serviceAccount().Impersonate
	return config
}

// apply creates the objects of a YAML text, or replaces them, strictly: no field
// may be unknown.
func (c *cluster) apply(text string) {
	c.t.Helper()
	for decoder := yaml.NewYAMLOrJSONDecoder(strings.NewReader(text), 4096); ; {
		var object unstructured.Unstructured
		err := decoder.Decode(&object)
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			c.t.Fatal(err)
		}
		c.put(&object)
	}
}

func (c *cluster) put(object *unstructured.Unstructured) {
	c.t.Helper()
	ctx, resource := context.Background(), c.resource(object)
	_, err := resource.Create(ctx, object, metav1.CreateOptions{FieldValidation: metav1.FieldValidationStrict})
	if apierrors.IsAlreadyExists(err) {
		var old *unstructured.Unstructured
		if old, err = resource.Get(ctx, object.GetName(), metav1.GetOptions{}); err == nil {
			object.SetResourceVersion(old.GetResourceVersion())
			_, err = resource.Update(ctx, object, metav1.UpdateOptions{FieldValidation: metav1.FieldValidationStrict})
		}
	}
	if err != nil {
		c.t.Fatalf("apply %s %s: %v", object.GetKind(), object.GetName(), err)
	}
}

func (c *cluster) resource(object *unstructured.Unstructured) dynamic.ResourceInterface {
	c.t.Helper()
	gvk := object.GroupVersionKind()
	mapping, err := c.mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
	if err != nil {
		c.t.Fatal(err)
	}
	if mapping.Scope.Name() == meta.RESTScopeNameNamespace {
		return c.client.Resource(mapping.Resource).Namespace(object.GetNamespace())
	}
	return c.client.Resource(mapping.Resource)
}
