// SPDX-License-Identifier: Apache-2.0

package follow

import (
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// NewClient returns the client of a config, which it copies. Requests are limited only if config
// says so: the API server is fair to its clients, and five requests per second are too few.
func NewClient(config *rest.Config) (kubernetes.Interface, error) {
	config = rest.CopyConfig(config)
	if config.QPS == 0 && config.RateLimiter == nil {
		config.QPS = -1
	}
	return kubernetes.NewForConfig(config)
}
