// SPDX-License-Identifier: Apache-2.0

package kube_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pilotkit/pilotkit/registry/kube"
	"github.com/pilotkit/pilotkit/xdsupdate"
)

// A change of a service is pushed once, also if a ServiceHandler is registered.
func TestServiceHandlerBesideTheUpdater(t *testing.T) {
	updater := &recorder{index: xdsupdate.NewEndpointIndex()}
	c := kube.New(nil, updater, kube.Options{ClusterID: "east"})
	c.AppendServiceHandler(xdsupdate.ServiceHandler(updater, c))
	once := func(what string) {
		t.Helper()
		c.Drain()
		n := 0
		for _, call := range updater.take() {
			if call.name == callConfigUpdate {
				n++
			}
		}
		if n != 1 {
			t.Errorf("%s: %d pushes, want 1", what, n)
		}
	}
	s := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: "a", Namespace: "ns"},
		Spec:       corev1.ServiceSpec{ClusterIP: "10.0.0.1", Ports: []corev1.ServicePort{{Name: "http", Port: 80}}},
	}
	c.Put(s)
	once("added")
	changed := s.DeepCopy()
	changed.Spec.Ports[0].Port = 81
	c.Put(changed)
	once("changed")
	c.Remove(changed)
	once("removed")
}
