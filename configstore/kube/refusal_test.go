// SPDX-License-Identifier: Apache-2.0

package kube_test

import (
	"io"
	"net/http"
	"strings"

	"go.uber.org/atomic"
	"k8s.io/client-go/rest"
)

// refusal responds instead of a server, while answer is set.
type refusal struct {
	status  int
	body    string
	answer  atomic.Bool
	answers atomic.Int32
}

// notFound responds like a misconfigured proxy to all paths with a suffix.
func notFound(config *rest.Config, ending string) *refusal {
	r := &refusal{status: http.StatusNotFound, body: "<html>404 page not found</html>"}
	r.wrap(config, ending)
	return r
}

// refuseAll responds to every request at once with a status.
func refuseAll(config *rest.Config, status int) *refusal {
	r := &refusal{status: status, body: "not now"}
	r.answer.Store(true)
	r.wrap(config, "")
	return r
}

func (r *refusal) wrap(config *rest.Config, ending string) {
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(request *http.Request) (*http.Response, error) {
			if !r.answer.Load() || !strings.HasSuffix(request.URL.Path, ending) {
				return next.RoundTrip(request)
			}
			r.answers.Inc()
			return &http.Response{
				StatusCode: r.status, Header: http.Header{"Content-Type": {"text/html"}}, Request: request,
				Body: io.NopCloser(strings.NewReader(r.body)),
			}, nil
		})
	})
}
