// SPDX-License-Identifier: Apache-2.0

package follow

import (
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// NewClient returns a client for a copy of config. Requests are rate limited only if config says
// so, because API servers limit clients fairly, and client-go's default of five requests per second
// is too low.
func NewClient(config *rest.Config) (kubernetes.Interface, error) {
	config = rest.CopyConfig(config)
	if config.QPS == 0 && config.RateLimiter == nil {
		config.QPS = -1
	}
	return kubernetes.NewForConfig(config)
}
