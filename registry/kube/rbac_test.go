// SPDX-License-Identifier: Apache-2.0

package kube_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/registry/kube"
)

// allow grants a user read access to further kinds.
func allow(t *testing.T, client kubernetes.Interface, user string, kinds ...string) {
	t.Helper()
	name := user + "-" + strings.Join(kinds, "-")
	rules := []rbacv1.PolicyRule{{APIGroups: []string{"", "discovery.k8s.io"}, Resources: kinds, Verbs: []string{"list", "watch"}}}
	roles, bindings := client.RbacV1().ClusterRoles(), client.RbacV1().ClusterRoleBindings()
	if _, err := roles.Create(t.Context(), &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: rules}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	_, err := bindings.Create(t.Context(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: user}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
}

// A plane that starts before its rights do has not synced until everything may be read.
func TestForbiddenAtStart(t *testing.T) {
	server := apiserver.Server(t)
	admin, namespace := newClient(t, server), server.Namespace(t)
	user := "late-" + namespace
	s := newScene(t, restConfig(server.ConfigFor(user)))
	s.fill(t.Context(), admin, namespace)
	for _, kinds := range [][]string{nil, {"services", "pods", "namespaces"}, {"endpointslices"}} {
		if len(kinds) > 0 {
			allow(t, admin, user, kinds...)
		}
		s.await("the errors", func() bool {
			return !slices.ContainsFunc(s.kube.Errors(), func(e kube.SourceError) bool { return slices.Contains(kinds, e.Kind) }) &&
				slices.ContainsFunc(s.kube.Errors(), func(e kube.SourceError) bool { return e.Kind == "nodes" })
		})
		if s.kube.HasSynced() {
			t.Errorf("it has synced with %v", s.kube.Errors())
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		if err := configstore.WaitForSync(ctx, s.kube); err == nil {
			t.Errorf("WaitForSync has returned with %v", s.kube.Errors())
		}
		cancel()
	}
	s.awaitAddresses(namespace, clerk+namespace+"/sa/clerk", "10.1.0.2@")
	allow(t, admin, user, "nodes")
	s.await("HasSynced", s.kube.HasSynced)
	if got := s.kube.Listed(); !slices.Equal(slices.Sorted(slices.Values(got)), slices.Sorted(slices.Values(allKinds))) {
		t.Errorf("listed %v, want all", got)
	}
}

var allKinds = []string{"namespaces", "nodes", "services", "pods", "endpointslices"}

// An optional kind that the API server forbids does not affect other kinds: HasSynced does not wait
// for it, Errors names it, and results that need no object of the kind are shown. When it becomes
// allowed it is read.
func TestForbiddenKind(t *testing.T) {
	server := apiserver.Server(t)
	admin := newClient(t, server)
	for kind, want := range map[string][]string{
		"nodes":      {clerk, "10.1.0.2@"},
		"namespaces": {clerk, "10.1.0.2@"},
		// Endpoints are not shown without the identity of the pod that they name.
		"pods":           {"10.1.0.2@"},
		"endpointslices": nil,
		"services":       nil,
	} {
		t.Run(kind, func(t *testing.T) {
			namespace := server.Namespace(t)
			user := "no-" + kind + "-" + namespace
			allow(t, admin, user, slices.DeleteFunc(slices.Clone(allKinds), func(k string) bool { return k == kind })...)
			s := newSceneWith(t, restConfig(server.ConfigFor(user)), kube.Options{Optional: allKinds})
			s.fill(t.Context(), admin, namespace)
			s.await("HasSynced", s.kube.HasSynced)
			s.awaitAddresses(namespace, withAccount(want, namespace)...)
			s.await("one error", func() bool { // the new permissions take effect with a delay
				errs := s.kube.Errors()
				return len(errs) == 1 && errs[0].Kind == kind && strings.Contains(errs[0].Error(), "forbidden")
			})
			allow(t, admin, user, kind)
			s.awaitAddresses(namespace, withAccount([]string{clerk, "10.1.0.2@"}, namespace)...)
			s.await("the end of the error", func() bool { return len(s.kube.Errors()) == 0 })
		})
	}
}

// withAccount completes the identity of the clerk.
func withAccount(addresses []string, namespace string) []string {
	out := slices.Clone(addresses)
	for i, a := range out {
		if a == clerk {
			out[i] = clerk + namespace + "/sa/clerk"
		}
	}
	return out
}
