// SPDX-License-Identifier: Apache-2.0

package xdsbuild

import (
	"slices"
	"strconv"
	"strings"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	previoushosts "github.com/envoyproxy/go-control-plane/envoy/extensions/retry/host/previous_hosts/v3"
	previouspriorities "github.com/envoyproxy/go-control-plane/envoy/extensions/retry/priority/previous_priorities/v3"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/wrapperspb"
	networking "istio.io/api/networking/v1alpha3"
)

// Istio's defaults of retries.
const (
	defaultRetries = 2
	defaultRetryOn = "connect-failure,refused-stream,unavailable,cancelled,retriable-status-codes"
	hostAttempts   = 5
	// retryPriorityUpdates is the number of attempts after which another priority is tried.
	retryPriorityUpdates = 2
	// retriableStatuses is the condition that enables the list of statuses.
	retriableStatuses = "retriable-status-codes"
)

// retryPolicy returns the retry policy of a rule. For nil it returns the mesh's policy. The result
// is nil if nothing is retried.
func (s *RouteScope) retryPolicy(r *networking.HTTPRetry) *routev3.RetryPolicy {
	if r == nil {
		r = s.Retries
	}
	if r == nil {
		r = &networking.HTTPRetry{Attempts: defaultRetries}
	}
	if r.GetAttempts() <= 0 {
		return nil
	}
	out := &routev3.RetryPolicy{
		NumRetries:                    wrapperspb.UInt32(uint32(r.GetAttempts())),
		RetryOn:                       defaultRetryOn,
		HostSelectionRetryMaxAttempts: hostAttempts,
	}
	if r.GetRetryOn() != "" {
		out.RetryOn, out.RetriableStatusCodes = retryOn(r.GetRetryOn())
	}
	if keep := r.GetRetryIgnorePreviousHosts(); keep == nil || keep.GetValue() {
		out.RetryHostPredicate = otherHosts()
	}
	if r.GetRetryRemoteLocalities().GetValue() {
		out.RetryPriority = otherPriorities()
	}
	if d := r.GetPerTryTimeout(); d != nil {
		out.PerTryTimeout = duration(d)
	}
	if d := r.GetBackoff(); d.AsDuration() > 0 {
		out.RetryBackOff = &routev3.RetryPolicy_RetryBackOff{BaseInterval: duration(d)}
	}
	return out
}

// retryOn separates HTTP statuses from Envoy's named conditions.
func retryOn(list string) (conditions string, statuses []uint32) {
	var names []string
	for part := range strings.SplitSeq(list, ",") {
		part = strings.TrimSpace(part)
		if n, err := strconv.ParseUint(part, 10, 32); err == nil {
			if 100 <= n && n <= 599 {
				statuses = append(statuses, uint32(n))
			}
		} else if part != "" {
			names = append(names, part)
		}
	}
	if len(statuses) > 0 && !slices.Contains(names, retriableStatuses) {
		names = append(names, retriableStatuses)
	}
	return strings.Join(names, ","), statuses
}

// otherHosts makes a retry choose a host that was not tried before.
func otherHosts() []*routev3.RetryPolicy_RetryHostPredicate {
	return []*routev3.RetryPolicy_RetryHostPredicate{{
		Name: "envoy.retry_host_predicates.previous_hosts",
		ConfigType: &routev3.RetryPolicy_RetryHostPredicate_TypedConfig{
			// The message has no fields, so its encoding is empty.
			TypedConfig: &anypb.Any{TypeUrl: typeURL(&previoushosts.PreviousHostsPredicate{})},
		},
	}}
}

// otherPriorities makes retries use localities of other priorities.
func otherPriorities() *routev3.RetryPolicy_RetryPriority {
	return &routev3.RetryPolicy_RetryPriority{
		Name: "envoy.retry_priorities.previous_priorities",
		ConfigType: &routev3.RetryPolicy_RetryPriority_TypedConfig{
			TypedConfig: packed(&previouspriorities.PreviousPrioritiesConfig{UpdateFrequency: retryPriorityUpdates}),
		},
	}
}
