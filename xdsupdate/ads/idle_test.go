// SPDX-License-Identifier: Apache-2.0

package ads_test

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"

	"github.com/pilotkit/pilotkit/internal/test/testserver"
	"github.com/pilotkit/pilotkit/xdsupdate/ads"
	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
	"github.com/pilotkit/pilotkit/xdsupdate/xdstest"
)

// TestForgottenRun: the log says once that clients wait for a server that is not run.
func TestForgottenRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		idle, server := ads.New(nil, ads.Options{Logger: slog.New(slog.NewTextHandler(&log, nil))}), grpc.NewServer()
		idle.Register(server)
		conn, stop := testserver.ServeMemory(t, server)
		defer stop()
		for _, name := range []string{"a", "b"} {
			c := xdstest.NewClient(conn, xdstest.ClientOptions{Node: node(name, "shop")})
			if err := c.Connect(t.Context()); err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			if err := c.Subscribe(envoy.ClusterType); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(10 * time.Second)
		synctest.Wait()
		if n := strings.Count(log.String(), "Run has not been called"); n != 1 {
			t.Errorf("said %d times: %s", n, &log)
		}
	})
}
