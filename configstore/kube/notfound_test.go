// SPDX-License-Identifier: Apache-2.0

package kube_test

import (
	"io"
	"net/http"
	"strings"

	"go.uber.org/atomic"
	"k8s.io/client-go/rest"
)

// notFound answers like a proxy that has lost its way.
type notFound struct {
	answer  atomic.Bool
	answers atomic.Int32
}

// below has it answer for all paths with an ending, while answer is set.
func (n *notFound) below(config *rest.Config, ending string) *rest.Config {
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(request *http.Request) (*http.Response, error) {
			if !n.answer.Load() || !strings.HasSuffix(request.URL.Path, ending) {
				return next.RoundTrip(request)
			}
			n.answers.Inc()
			return &http.Response{
				StatusCode: http.StatusNotFound, Header: http.Header{"Content-Type": {"text/html"}}, Request: request,
				Body: io.NopCloser(strings.NewReader("<html>404 page not found</html>")),
			}, nil
		})
	})
	return config
}
