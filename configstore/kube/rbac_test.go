// SPDX-License-Identifier: Apache-2.0

package kube_test

import (
	"context"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/pilotkit/pilotkit/internal/test/kubetest"
)

// allow permits a user to read resources, written as "group/resource".
func allow(t *testing.T, server *kubetest.Server, user string, resources ...string) {
	t.Helper()
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: user}}
	for _, r := range resources {
		group, resource, _ := strings.Cut(r, "/")
		role.Rules = append(role.Rules, rbacv1.PolicyRule{
			APIGroups: []string{group}, Resources: []string{resource}, Verbs: []string{"get", "list", "watch"},
		})
	}
	roles := clientset(t, server).RbacV1().ClusterRoles()
	if _, err := roles.Create(t.Context(), role, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := roles.Delete(context.Background(), user, metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
	})
	bind(t, server, user, user)
}

// bind gives a user a role.
func bind(t *testing.T, server *kubetest.Server, user, role string) {
	t.Helper()
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: user + "-is-" + role},
		Subjects:   []rbacv1.Subject{{Kind: "User", Name: user}},
		RoleRef:    rbacv1.RoleRef{APIGroup: "rbac.authorization.k8s.io", Kind: "ClusterRole", Name: role},
	}
	bindings := clientset(t, server).RbacV1().ClusterRoleBindings()
	if _, err := bindings.Create(t.Context(), binding, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := bindings.Delete(context.Background(), binding.Name, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
			t.Error(err)
		}
	})
}

func clientset(t *testing.T, server *kubetest.Server) kubernetes.Interface {
	t.Helper()
	client, err := kubernetes.NewForConfig(restConfig(server.Config()))
	if err != nil {
		t.Fatal(err)
	}
	return client
}
