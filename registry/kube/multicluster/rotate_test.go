// SPDX-License-Identifier: Apache-2.0

package multicluster_test

import (
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/pilotkit/pilotkit/internal/test/kubetest"
	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/registry/kube/multicluster"
)

// A new kubeconfig with an unreadable or partly readable cluster leaves the existing registry in
// use for any length of time: its changes are read and written to the index, and the status reports
// the error. When the cluster becomes readable, or another kubeconfig with a readable cluster
// replaces it, the new registry takes over without a gap.
func TestRotatedKubeconfigKeepsWhatWorks(t *testing.T) {
	server := apiserver.Server(t)
	front := server.Front(t)
	front.Refuse(true)
	silent := server.Front(t)
	silent.Hold(true)
	wrong := restConfig(server.Config())
	wrong.BearerToken = "wrong"
	for name, test := range map[string]struct {
		config func(user string) *rest.Config
		// may are the kinds that the user may read from the start.
		may []string
		// mend makes the cluster readable. If it is nil, the test uses another kubeconfig instead.
		mend func(s *scene, user string)
	}{
		"forbidden": {config: asUser(server), mend: func(s *scene, user string) { s.allow(user, allKinds...) }},
		"forbidden in part": {
			config: asUser(server), may: []string{"namespaces", "nodes", "services", "endpointslices"},
			mend: func(s *scene, user string) { s.allow(user, "pods") },
		},
		"wrong token": {config: func(string) *rest.Config { return wrong }},
		"unreached": {
			config: func(string) *rest.Config { return restConfig(front.Config()) },
			mend:   func(*scene, string) { front.Refuse(false) },
		},
		"silent": {
			config: func(string) *rest.Config { return restConfig(silent.Config()) },
			mend:   func(*scene, string) { silent.Hold(false) },
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSceneWith(t, multicluster.Options{SyncTimeout: 500 * time.Millisecond})
			s.putSlice("10.1.0.1")
			s.putPod("p1", nil)
			s.put("one", map[string][]byte{"east": kubeconfigOf(t, s.config)})
			s.await("the endpoints", func() bool { return s.endpoints() == 1 && s.has("east") })
			before := s.awaitState("east", multicluster.Synced)
			user := "rotated-" + s.namespace
			s.allow(user, test.may...)

			s.put("one", map[string][]byte{"east": kubeconfigOf(t, test.config(user))})
			s.await("its error", func() bool {
				c, _ := s.state("east")
				return c.State == multicluster.Late && c.Err != nil
			})
			s.putSlice("10.1.0.1", "10.1.0.2")
			s.await("a change", func() bool { return s.endpoints() == 2 })
			now, _ := s.state("east")
			if now.Registry != before.Registry || now.Since != before.Since || !s.has("east") || !s.clusters.HasSynced() {
				t.Errorf("cluster %+v, before %+v; service there: %t", now, before, s.has("east"))
			}

			if test.mend != nil {
				test.mend(s, user)
			} else {
				s.put("one", map[string][]byte{"east": append(kubeconfigOf(t, s.config), "\n# again\n"...)})
			}
			s.await("another registry", func() bool {
				if n := s.endpoints(); n != 2 || !s.has("east") {
					t.Fatalf("%d endpoints, service there: %t as the registry is replaced", n, s.has("east"))
				}
				c, _ := s.state("east")
				return c.Registry != before.Registry && c.State == multicluster.Synced
			})
			s.putSlice("10.1.0.1", "10.1.0.2", "10.1.0.3")
			s.await("a change after that", func() bool { return s.endpoints() == 3 })
			s.delete("one")
			s.await("the end", func() bool { return s.endpoints() == 0 && !s.has("east") })
		})
	}
}

// An attempt that does not succeed is given up when the former kubeconfig is back.
func TestFormerKubeconfigAgain(t *testing.T) {
	s := newSceneWith(t, multicluster.Options{SyncTimeout: 100 * time.Millisecond})
	good := kubeconfigOf(t, s.config)
	s.put("one", map[string][]byte{"east": good})
	before := s.awaitState("east", multicluster.Synced)
	s.put("one", map[string][]byte{"east": kubeconfigOf(t, restConfig(apiserver.Server(t).ConfigFor("nobody")))})
	s.awaitState("east", multicluster.Late)
	s.put("one", map[string][]byte{"east": good})
	after := s.awaitState("east", multicluster.Synced)
	if after.Registry != before.Registry || after.Err != nil {
		t.Errorf("cluster %+v, before %+v", after, before)
	}
}

var allKinds = []string{"namespaces", "nodes", "services", "pods", "endpointslices"}

func asUser(server *kubetest.Server) func(user string) *rest.Config {
	return func(user string) *rest.Config { return restConfig(server.ConfigFor(user)) }
}

// allow makes a user allowed to read kinds.
func (s *scene) allow(user string, kinds ...string) {
	s.Helper()
	if len(kinds) == 0 {
		return
	}
	meta := metav1.ObjectMeta{GenerateName: user + "-"}
	role, err := s.client.RbacV1().ClusterRoles().Create(s.Context(), &rbacv1.ClusterRole{
		ObjectMeta: meta,
		Rules:      []rbacv1.PolicyRule{{APIGroups: []string{"", "discovery.k8s.io"}, Resources: kinds, Verbs: []string{"list", "watch"}}},
	}, metav1.CreateOptions{})
	if err != nil {
		s.Fatal(err)
	}
	_, err = s.client.RbacV1().ClusterRoleBindings().Create(s.Context(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: meta,
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: user}},
	}, metav1.CreateOptions{})
	if err != nil {
		s.Fatal(err)
	}
}

// putSlice writes the endpoints of the service; the first one names the pod p1.
func (s *scene) putSlice(addresses ...string) {
	s.Helper()
	name, number := "http", int32(8080)
	slice := &discoveryv1.EndpointSlice{
		ObjectMeta:  metav1.ObjectMeta{Name: "shop-1", Labels: map[string]string{discoveryv1.LabelServiceName: "shop"}},
		AddressType: discoveryv1.AddressTypeIPv4, Ports: []discoveryv1.EndpointPort{{Name: &name, Port: &number}},
	}
	for i, a := range addresses {
		e := discoveryv1.Endpoint{Addresses: []string{a}}
		if i == 0 {
			e.TargetRef = &corev1.ObjectReference{Kind: "Pod", Name: "p1", Namespace: s.namespace}
		}
		slice.Endpoints = append(slice.Endpoints, e)
	}
	all := s.client.DiscoveryV1().EndpointSlices(s.namespace)
	if _, err := all.Update(s.Context(), slice, metav1.UpdateOptions{}); err == nil {
		return
	}
	if _, err := all.Create(s.Context(), slice, metav1.CreateOptions{}); err != nil {
		s.Fatal(err)
	}
}

// endpoints returns the number of endpoints of the service in the index.
func (s *scene) endpoints() int {
	return len(slices.Collect(s.index.Service(registry.Hostname("shop."+s.namespace+".svc.cluster.local"), s.namespace).All()))
}
