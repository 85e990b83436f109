// SPDX-License-Identifier: Apache-2.0

package ingress_test

import (
	"testing"

	"github.com/pilotkit/pilotkit/internal/test/kubetest"
)

var apiserver kubetest.Shared

func TestMain(m *testing.M) { apiserver.Main(m) }
