// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/rest"

	"github.com/pilotkit/pilotkit/configstore"
)

// newClient returns a client that reads and writes JSON under any path.
func newClient(config *rest.Config, schemas configstore.Schemas) (*rest.RESTClient, error) {
	config = rest.CopyConfig(config)
	config.ContentConfig = rest.ContentConfig{
		NegotiatedSerializer: serializer.NewCodecFactory(schemeOf(schemas)).WithoutConversion(),
		ContentType:          runtime.ContentTypeJSON,
	}
	if config.QPS == 0 && config.RateLimiter == nil {
		config.QPS = -1 // API servers limit clients fairly; the default of five requests per second is too low.
	}
	if config.UserAgent == "" {
		config.UserAgent = rest.DefaultKubernetesUserAgent()
	}
	return rest.UnversionedRESTClientFor(config)
}
