// SPDX-License-Identifier: Apache-2.0

package istio

import (
	"time"

	"google.golang.org/protobuf/types/known/durationpb"
	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilotkit/pilotkit/configstore"
)

// destinationRuleRules are the rules of Istio 1.30 for a DestinationRule.
func destinationRuleRules(spec *field, c configstore.Config, rule *networking.DestinationRule) {
	checkWildcardDomain(spec.child("host"), rule.Host)
	checkTrafficPolicy(spec.child("trafficPolicy"), c, rule.TrafficPolicy)
	var names repetitions[string]
	for at, subset := range elements(spec, "subsets", rule.Subsets) {
		checkDNSLabel(at.child("name"), subset.Name)
		names.refuse(at.child("name"), subset.Name, at.index, "repeats spec.subsets[%d].name: %q")
		checkLabels(at, "labels", subset.Labels)
		checkTrafficPolicy(at.child("trafficPolicy"), c, subset.TrafficPolicy)
	}
	checkExportTo(spec, c, rule.ExportTo, false)
	if rule.WorkloadSelector == nil {
		return
	}
	checkPolicySelector(spec.child("workloadSelector"), rule.WorkloadSelector)
	for i, namespace := range rule.ExportTo {
		// Selectors work within a namespace.
		if namespace != exportToOwn && namespace != c.Namespace {
			spec.elem("exportTo", i).refuse("must be the own namespace together with a workloadSelector, is %q", namespace)
		}
	}
}

// checkTrafficPolicy checks the policy for a host or a subset; nil is fine.
func checkTrafficPolicy(at *field, c configstore.Config, policy *networking.TrafficPolicy) {
	if policy == nil {
		return
	}
	if policy.LoadBalancer == nil && policy.ConnectionPool == nil && policy.OutlierDetection == nil && policy.Tls == nil &&
		len(policy.PortLevelSettings) == 0 && policy.Tunnel == nil && policy.ProxyProtocol == nil && policy.RetryBudget == nil {
		at.refuse("must not be empty")
		return
	}
	checkLoadBalancer(at.child("loadBalancer"), policy.LoadBalancer, policy.OutlierDetection)
	checkConnectionPool(at.child("connectionPool"), policy.ConnectionPool)
	checkOutlierDetection(at.child("outlierDetection"), policy.OutlierDetection)
	checkClientTLS(at.child("tls"), c, policy.Tls)
	var ports repetitions[uint32]
	for place, settings := range elements(at, "portLevelSettings", policy.PortLevelSettings) {
		checkPortSettings(place, c, settings)
		if number := settings.GetPort().GetNumber(); number != 0 {
			if first, ok := ports.add(number, place.index); ok {
				place.child("port").warn("repeats portLevelSettings[%d].port: %d", first, number)
			}
		}
	}
	checkTunnel(at.child("tunnel"), policy.Tunnel)
	if policy.ProxyProtocol != nil {
		checkEnum(at.child("proxyProtocol").child("version"), policy.ProxyProtocol.Version)
		if policy.Tunnel != nil {
			at.child("proxyProtocol").refuse("must not be set together with a tunnel")
		}
	}
	if budget := policy.RetryBudget; budget != nil {
		checkPercent(at.child("retryBudget").child("percent"), budget.GetPercent().GetValue())
		checkBudgetInterval(at.child("retryBudget").child("budgetInterval"), budget.BudgetInterval)
	}
}

// checkBudgetInterval warns about an interval that is not sent, because only newer supported
// versions of Envoy have the field.
func checkBudgetInterval(at *field, interval *durationpb.Duration) {
	checkDurationOrZero(at, interval)
	if interval.AsDuration() >= time.Millisecond {
		at.warn("has no effect, is %s; retries are compared with the requests of the moment", interval.AsDuration())
	}
}

func checkPortSettings(at *field, c configstore.Config, settings *networking.TrafficPolicy_PortTrafficPolicy) {
	if settings.Port == nil {
		at.child("port").refuse("is required")
	} else {
		checkPortNumber(at.child("port").child("number"), settings.Port.Number)
	}
	if settings.LoadBalancer == nil && settings.ConnectionPool == nil && settings.OutlierDetection == nil && settings.Tls == nil {
		at.refuse("must have one of loadBalancer, connectionPool, outlierDetection, tls")
	}
	checkLoadBalancer(at.child("loadBalancer"), settings.LoadBalancer, settings.OutlierDetection)
	checkConnectionPool(at.child("connectionPool"), settings.ConnectionPool)
	checkOutlierDetection(at.child("outlierDetection"), settings.OutlierDetection)
	checkClientTLS(at.child("tls"), c, settings.Tls)
}

func checkTunnel(at *field, tunnel *networking.TrafficPolicy_TunnelSettings) {
	if tunnel == nil {
		return
	}
	switch tunnel.Protocol {
	case "", "CONNECT", "POST":
	default:
		at.child("protocol").refuse("must be CONNECT or POST, is %q", tunnel.Protocol)
	}
	if tunnel.TargetHost == "" {
		at.child("targetHost").refuse("is required")
	} else {
		checkIPOrFQDN(at.child("targetHost"), tunnel.TargetHost)
	}
	checkPortNumber(at.child("targetPort"), tunnel.TargetPort)
}
