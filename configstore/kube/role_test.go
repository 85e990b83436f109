// SPDX-License-Identifier: Apache-2.0

package kube_test

import (
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/kube"
	"github.com/pilotkit/pilotkit/internal/test/kubetest"
)

// allowIn permits a user everything with resources, written as "group/resource", in one namespace.
func allowIn(t *testing.T, server *kubetest.Server, namespace, user string, resources ...string) {
	t.Helper()
	role := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: user}}
	for _, r := range resources {
		group, resource, _ := strings.Cut(r, "/")
		role.Rules = append(role.Rules, rbacv1.PolicyRule{APIGroups: []string{group}, Resources: []string{resource}, Verbs: []string{"*"}})
	}
	rbac := clientset(t, server).RbacV1()
	if _, err := rbac.Roles(namespace).Create(t.Context(), role, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	binding := &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: user},
		Subjects:   []rbacv1.Subject{{Kind: "User", Name: user}},
		RoleRef:    rbacv1.RoleRef{APIGroup: "rbac.authorization.k8s.io", Kind: "Role", Name: user},
	}
	if _, err := rbac.RoleBindings(namespace).Create(t.Context(), binding, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// TestRole: a user with a Role in a namespace can read and write there, under any version, and
// write statuses.
func TestRole(t *testing.T) {
	t.Parallel()
	server, schema := apiserver.Server(t), limit("role.example.com")
	kind, schemas := schema.GroupVersionKind, limits("role.example.com")
	server.ApplyCRDs(t, crdWith(schema, "v1beta1")) // the alias only
	ns, second, other := server.Namespace(t), server.Namespace(t), server.Namespace(t)
	admin := newCache(t, restConfig(server.Config()), schemas, kube.Options{})
	for _, namespace := range []string{ns, second, other} {
		create(t, admin, object(kind, namespace, "a", "1"))
	}
	allowIn(t, server, ns, "tenant", "role.example.com/limits", "role.example.com/limits/status", "coordination.k8s.io/leases")
	c := newCache(t, restConfig(server.ConfigFor("tenant")), schemas, kube.Options{
		OnlyNamespaces: []string{second, ns, ns}, Optional: []configstore.GroupVersionKind{kind},
	})
	r := record(c, kind)
	runSynced(t, c)
	eventually(t, "the right counts", func() bool { return c.Get(kind, "a", ns) != nil })
	r.Expect(t, "add Limit "+ns+"/a")
	b := object(kind, ns, "b", "1")
	await(t, c, b, create(t, c, b))
	b.Spec = object(kind, ns, "b", "2").Spec
	await(t, c, b, update(t, c, b))
	if err := c.Delete(kind, "a", ns, nil); err != nil {
		t.Fatal(err)
	}
	r.Expect(t, "add Limit "+ns+"/b", "update Limit "+ns+"/b", "delete Limit "+ns+"/a")
	where := func() (out []string) {
		for _, e := range c.Errors() {
			out = append(out, e.Object.Kind.Kind+" "+e.Object.Namespace)
		}
		return out
	}
	if got, want := strings.Join(where(), ","), "CustomResourceDefinition ,Limit "+second; got != want {
		t.Errorf("errors are %s, want %s", got, want)
	}
	allowIn(t, server, second, "tenant", "role.example.com/limits")
	eventually(t, "the other namespace is there", func() bool { return c.Get(kind, "a", second) != nil && len(c.Errors()) == 1 })
	if len(c.List(kind, configstore.NamespaceAll)) != 2 {
		t.Errorf("there are %v", shown(c))
	}
	writer, err := kube.NewStatusWriter(c, restConfig(server.ConfigFor("tenant")), kube.StatusOptions{Lease: "l", LeaseNamespace: ns})
	if err != nil {
		t.Fatal(err)
	}
	runAny(t, writer.Run)
	eventually(t, "a status is written", func() bool { return c.Get(kind, "b", ns).Status != nil })
}

// TestGoneUnseen: if CRDs may not be listed, the objects of a deleted CRD are removed, but not the
// objects of a path that returns 404 for other reasons.
func TestGoneUnseen(t *testing.T) {
	server, schemas, kind, ns, _ := serveLimits(t, "gone.example.com")
	admin := newCache(t, restConfig(server.Config()), schemas, kube.Options{})
	create(t, admin, object(kind, ns, "a", "1"))
	allow(t, server, "goner", "gone.example.com/limits")
	front := server.Front(t)
	config := restConfig(front.Config())
	config.Impersonate = restConfig(server.ConfigFor("goner")).Impersonate
	lost := notFound(config, "/limits")
	c := newCache(t, config, schemas, kube.Options{})
	r := record(c, kind)
	runSynced(t, c)
	r.Expect(t, "add Limit "+ns+"/a")
	lost.answer.Store(true)
	c.SelectNamespaces(nil) // It lists.
	from := lost.answers.Load()
	eventually(t, "nothing was found, under all versions", func() bool { return lost.answers.Load() > from+8 })
	if c.Get(kind, "a", ns) == nil {
		t.Error("the object is gone with its path")
	}
	lost.answer.Store(false)
	eventually(t, "the path is there", func() bool { return len(c.Errors()) == 1 })
	front.Refuse(true)
	server.DeleteCRD(t, "limits.gone.example.com")
	front.Refuse(false)
	r.Expect(t, "delete Limit "+ns+"/a")
	server.ApplyCRDs(t, crdsOf(schemas))
	b := object(kind, ns, "b", "1")
	await(t, c, b, create(t, admin, b))
	r.Expect(t, "add Limit "+ns+"/b")
}
