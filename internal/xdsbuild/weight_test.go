// SPDX-License-Identifier: Apache-2.0

package xdsbuild_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/pilotkit/pilotkit/internal/xdsbuild"
	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
)

// TestWeightsKeepTheirProportions when they are scaled down: Envoys compare those
// of endpoints in different localities.
func TestWeightsKeepTheirProportions(t *testing.T) {
	svc := service(registry.ClientSideLB)
	var endpoints []*registry.Endpoint
	for i := range 4 {
		endpoints = append(endpoints, endpoint(fmt.Sprintf("10.0.0.%d", i), weight(1<<31), locality("a")))
	}
	endpoints = append(endpoints, endpoint("10.0.1.1", weight(1<<30), locality("b")))
	check(t, "assignment", text(xdsbuild.LoadAssignment(svc, svc.Ports[0], endpoints, envoy.ForEnvoy)), []string{
		"a//@0=2147483648 10.0.0.0:8080*536870912/HEALTHY 10.0.0.1:8080*536870912/HEALTHY" +
			" 10.0.0.2:8080*536870912/HEALTHY 10.0.0.3:8080*536870912/HEALTHY",
		"b//@0=268435456 10.0.1.1:8080*268435456/HEALTHY",
	})
}

func TestWeightsStayIn32Bits(t *testing.T) {
	svc := service(registry.ClientSideLB)
	var endpoints []*registry.Endpoint
	for i := range 12 {
		endpoints = append(endpoints, endpoint(fmt.Sprintf("10.0.0.%d", i), weight(math.MaxUint32), locality(fmt.Sprint(i%3))))
	}
	endpoints = append(endpoints, endpoint("10.0.0.99", weight(1), locality("0")))
	var total uint64
	for _, l := range xdsbuild.LoadAssignment(svc, svc.Ports[0], endpoints, envoy.ForEnvoy).GetEndpoints() {
		var sum uint64
		for _, lb := range l.GetLbEndpoints() {
			if w := lb.GetLoadBalancingWeight().GetValue(); w == 0 {
				t.Error("weight 0")
			} else {
				sum += uint64(w)
			}
		}
		if sum > math.MaxUint32 || l.GetLoadBalancingWeight().GetValue() == 0 {
			t.Errorf("locality %v: sum %d", l.GetLocality(), sum)
		}
		total += uint64(l.GetLoadBalancingWeight().GetValue())
	}
	if total > math.MaxUint32 || total < math.MaxUint32/4 {
		t.Errorf("sum of localities = %d", total)
	}
}

// TestWeightsOfManySmallOnes: a weight that would be scaled down to less than 1 stays 1, and the
// sum still fits.
func TestWeightsOfManySmallOnes(t *testing.T) {
	svc := service(registry.ClientSideLB)
	endpoints := []*registry.Endpoint{endpoint("10.0.1.1", weight(math.MaxUint32-100)), endpoint("10.0.1.2", weight(math.MaxUint32-100))}
	for i := range 150 {
		endpoints = append(endpoints, endpoint(fmt.Sprintf("10.0.0.%d", i), weight(1)))
	}
	sum := uint64(0)
	for _, lb := range xdsbuild.LoadAssignment(svc, svc.Ports[0], endpoints, envoy.ForEnvoy).GetEndpoints()[0].GetLbEndpoints() {
		sum += uint64(lb.GetLoadBalancingWeight().GetValue())
	}
	if sum > math.MaxUint32 {
		t.Errorf("sum of weights = %d, over 32 bits", sum)
	}
}
