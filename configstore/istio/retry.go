// SPDX-License-Identifier: Apache-2.0

package istio

import (
	"strings"

	networking "istio.io/api/networking/v1alpha3"
)

// checkRetries checks when requests are tried again; nil is fine.
func checkRetries(at *field, retries *networking.HTTPRetry) {
	if retries == nil {
		return
	}
	checkNotNegative(at.child("attempts"), retries.Attempts)
	checkDuration(at.child("perTryTimeout"), retries.PerTryTimeout)
	checkDuration(at.child("backoff"), retries.Backoff)
	if retries.Attempts == 0 && (retries.PerTryTimeout != nil || retries.RetryOn != "" || retries.RetryRemoteLocalities != nil) {
		at.child("attempts").refuse("must be above 0 together with other settings, as 0 turns retries off")
	}
	if retries.RetryOn == "" {
		return
	}
	for condition := range strings.SplitSeq(retries.RetryOn, ",") {
		if condition = strings.TrimSpace(condition); !isRetryCondition(condition) {
			at.child("retryOn").refuse("must list retry conditions of Envoy or HTTP statuses, has %q", condition)
		}
	}
}

// isRetryCondition knows the values of x-envoy-retry-on and
// x-envoy-retry-grpc-on as documented for Envoy 1.37, and HTTP statuses.
func isRetryCondition(s string) bool {
	switch s {
	case "5xx", "gateway-error", "reset", "reset-before-request", "connect-failure", "envoy-ratelimited",
		"retriable-4xx", "refused-stream", "retriable-status-codes", "retriable-headers", "http3-post-connect-failure",
		"cancelled", "deadline-exceeded", "internal", "resource-exhausted", "unavailable":
		return true
	default:
		return len(s) == 3 && isNumeric(s) && s[0] >= '1' && s[0] <= '5'
	}
}
