// SPDX-License-Identifier: Apache-2.0

package gatewayconformance

import (
	"flag"
	"fmt"
	"os"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/go-logr/logr"

	"github.com/pilotkit/pilotkit/internal/test/envoyproxy"
	"github.com/pilotkit/pilotkit/internal/test/kubetest"
	"github.com/pilotkit/pilotkit/internal/test/testmain"
	"github.com/pilotkit/pilotkit/internal/test/tier"
)

var (
	// update has the page and the report written in place of being compared.
	update = flag.Bool("update", false, "write docs/gateway-api.md and testdata/report.yaml")
	// version chooses among the Envoys that there are.
	version = flag.String("envoy", "newest", `the Envoy that runs Gateways: "newest" or "oldest"`)
	sotw    = flag.Bool("sotw", false, "Envoys ask for all resources of a type at once, and not for changes")
)

func TestMain(m *testing.M) {
	if os.Getenv(insideVariable) == "probe" {
		if _, err := newNetwork(); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	log.SetLogger(logr.Discard()) // The suite's client warns if nobody has.
	if isInside() {
		os.Exit(m.Run()) // The suite keeps connections, and what waits for them, beyond its end.
	}
	testmain.Verify(m)
}

// require skips the test, with the reason, where something is missing.
func require(t *testing.T) {
	t.Helper()
	tier.OnlyFull(t, "the conformance suite of the Gateway API")
	envoyproxy.Require(t)
	kubetest.Require(t)
	requireNamespace(t)
}
