// SPDX-License-Identifier: Apache-2.0

package multicluster_test

import (
	"testing"

	"k8s.io/client-go/rest"

	"github.com/pilotkit/pilotkit/internal/test/kubetest"
)

var apiserver kubetest.Shared

func TestMain(m *testing.M) { apiserver.Main(m) }

// restConfig is how client-go reaches a server.
func restConfig(c kubetest.Config) *rest.Config {
	return &rest.Config{
		Host: c.Host, BearerToken: c.Token, TLSClientConfig: rest.TLSClientConfig{Insecure: true},
		Impersonate: rest.ImpersonationConfig{UserName: c.User, Groups: c.Groups},
		QPS:         -1,
	}
}
