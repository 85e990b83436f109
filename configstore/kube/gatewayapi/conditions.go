// SPDX-License-Identifier: Apache-2.0

package gatewayapi

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
)

// The types of conditions that several kinds have.
const (
	accepted         = string(gatewayv1.GatewayConditionAccepted)
	programmed       = string(gatewayv1.GatewayConditionProgrammed)
	resolvedRefs     = string(gatewayv1.GatewayConditionResolvedRefs)
	conflicted       = string(gatewayv1.ListenerConditionConflicted)
	partiallyInvalid = string(gatewayv1.RouteConditionPartiallyInvalid)
	insecureFrontend = string(gatewayv1.GatewayConditionInsecureFrontendValidationMode)
)

// Reasons that the Gateway API leaves to implementations; these are Istio's.
const (
	reasonInvalidDestination = "InvalidDestination"
	reasonInvalidFilter      = "InvalidFilter"
)

// problem is why a condition is not as it should be; the zero value is none.
type problem struct{ reason, message string }

func (p problem) is() bool { return p.reason != "" }

// or returns the first of two that is one.
func (p problem) or(q problem) problem {
	if p.is() {
		return p
	}
	return q
}

// good returns a condition that is as it should be. Its reason is its type.
func good(kind, message string) metav1.Condition {
	return metav1.Condition{Type: kind, Status: metav1.ConditionTrue, Reason: kind, Message: message}
}

// goodUnless returns a condition that is false with a problem.
func goodUnless(kind, message string, p problem) metav1.Condition {
	if p.is() {
		return metav1.Condition{Type: kind, Status: metav1.ConditionFalse, Reason: p.reason, Message: p.message}
	}
	return good(kind, message)
}

// renew returns the conditions of an object of a generation, given those that it has. A
// condition that has the status that it had keeps its time; the time of another one is zero,
// and is for whoever writes it. Conditions of types that are not ours stay.
func renew(had []metav1.Condition, generation int64, ours []string, now ...metav1.Condition) []metav1.Condition {
	out := make([]metav1.Condition, 0, len(now)+len(had))
	for _, condition := range now {
		condition.ObservedGeneration = generation
		for i := range had {
			if had[i].Type == condition.Type && had[i].Status == condition.Status {
				condition.LastTransitionTime = had[i].LastTransitionTime
			}
		}
		out = append(out, condition)
	}
	for i := range had {
		if !slices.Contains(ours, had[i].Type) && !slices.ContainsFunc(now, func(c metav1.Condition) bool { return c.Type == had[i].Type }) {
			out = append(out, had[i])
		}
	}
	return out
}
