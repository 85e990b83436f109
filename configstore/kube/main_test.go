// SPDX-License-Identifier: Apache-2.0

package kube_test

import (
	"fmt"
	"os"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/pilotkit/pilotkit/internal/test/kubetest"
)

var apiserver kubetest.Shared

func TestMain(m *testing.M) {
	if text := os.Getenv(childVariable); text != "" {
		if err := runChild(text); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	apiserver.Main(m)
}

// restConfig returns the client configuration of a server.
func restConfig(c kubetest.Config) *rest.Config {
	return &rest.Config{
		Host: c.Host, BearerToken: c.Token, TLSClientConfig: rest.TLSClientConfig{Insecure: true},
		Impersonate: rest.ImpersonationConfig{UserName: c.User, Groups: c.Groups},
		QPS:         -1,
	}
}
