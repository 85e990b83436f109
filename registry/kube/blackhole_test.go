// SPDX-License-Identifier: Apache-2.0

package kube_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pilotkit/pilotkit/internal/test/tier"
)

// All packets in both directions are dropped, but the connections stay open: the registry keeps its
// content, the error shows, and after the fault the changes are read.
func TestBlackhole(t *testing.T) {
	tier.OnlyFull(t, "faults of an API server")
	// client-go detects dead connections with HTTP/2 pings, by default after 30 s of silence and 15
	// s without a response.
	t.Setenv("HTTP2_READ_IDLE_TIMEOUT_SECONDS", "1")
	t.Setenv("HTTP2_PING_TIMEOUT_SECONDS", "1")
	s, front, direct, namespace := behindFront(t)
	front.Swallow(true)
	s.must(direct.DiscoveryV1().EndpointSlices(namespace).Update(t.Context(), shopSlice(namespace, "10.1.0.1"), metav1.UpdateOptions{}))
	s.await("the errors", func() bool { return len(s.kube.Errors()) == len(allKinds) })
	if got := s.addresses("shop."+namespace+".svc.cluster.local", namespace); len(got) != 2 {
		t.Errorf("without a connection: addresses %v, want the last ones", got)
	}
	front.Swallow(false)
	s.awaitAddresses(namespace, clerk+namespace+"/sa/clerk")
	s.await("the end of the errors", func() bool { return len(s.kube.Errors()) == 0 })
}
