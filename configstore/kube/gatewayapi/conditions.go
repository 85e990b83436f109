// SPDX-License-Identifier: Apache-2.0

package gatewayapi

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
)

// The condition types of several kinds.
const (
	accepted         = string(gatewayv1.GatewayConditionAccepted)
	programmed       = string(gatewayv1.GatewayConditionProgrammed)
	resolvedRefs     = string(gatewayv1.GatewayConditionResolvedRefs)
	conflicted       = string(gatewayv1.ListenerConditionConflicted)
	partiallyInvalid = string(gatewayv1.RouteConditionPartiallyInvalid)
	insecureFrontend = string(gatewayv1.GatewayConditionInsecureFrontendValidationMode)
)

// Reasons that the Gateway API does not define; these are Istio's.
const (
	reasonInvalidDestination = "InvalidDestination"
	reasonInvalidFilter      = "InvalidFilter"
)

// problem is the reason and message of a failed condition; the zero value is no problem.
type problem struct{ reason, message string }

func (p problem) is() bool { return p.reason != "" }

// or returns p if it is a problem, else q.
func (p problem) or(q problem) problem {
	if p.is() {
		return p
	}
	return q
}

// good returns a condition that is True. Its reason is its type.
func good(kind, message string) metav1.Condition {
	return metav1.Condition{Type: kind, Status: metav1.ConditionTrue, Reason: kind, Message: message}
}

// goodUnless returns a condition that is False if there is a problem.
func goodUnless(kind, message string, p problem) metav1.Condition {
	if p.is() {
		return metav1.Condition{Type: kind, Status: metav1.ConditionFalse, Reason: p.reason, Message: p.message}
	}
	return good(kind, message)
}

// renew returns the conditions of an object at a generation, given its previous conditions. A
// condition with an unchanged status keeps its transition time. The time of a changed condition is
// zero; the writer of the status sets it. Conditions of foreign types stay.
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
