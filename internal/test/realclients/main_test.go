// SPDX-License-Identifier: Apache-2.0

package realclients

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/pilotkit/pilotkit/internal/test/testmain"
)

// grpc-go never closes what watches the certificate files of a bootstrap.
func TestMain(m *testing.M) {
	testmain.Verify(m, goleak.IgnoreTopFunction("google.golang.org/grpc/credentials/tls/certprovider/pemfile.(*watcher).run"))
}
