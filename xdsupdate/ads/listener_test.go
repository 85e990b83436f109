// SPDX-License-Identifier: Apache-2.0

package ads_test

import (
	"errors"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/pilotkit/pilotkit/xdsupdate/ads"
	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
)

// busyListener has a connection at any time.
type busyListener struct{ net.Listener }

func (busyListener) Accept() (net.Conn, error) { return nil, nil }
func (busyListener) Close() error              { return nil }

// TestPacedListener: a tenth of a second's connections are accepted at once, the rest
// at the rate, and Close ends an Accept that waits.
func TestPacedListener(t *testing.T) {
	for _, tt := range []struct{ perSecond, atOnce int }{{100, 10}, {5, 1}, {0, 0}} {
		synctest.Test(t, func(t *testing.T) {
			l, begun := ads.PacedListener(busyListener{}, tt.perSecond), time.Now()
			for i := range 50 {
				if _, err := l.Accept(); err != nil {
					t.Fatal(err)
				}
				want := time.Duration(0)
				if late := i + 1 - tt.atOnce; tt.perSecond > 0 && late > 0 {
					want = time.Duration(late) * time.Second / time.Duration(tt.perSecond)
				}
				if got := time.Since(begun); got < want || got > want+time.Millisecond {
					t.Fatalf("%d a second: connection %d was accepted after %v, want %v", tt.perSecond, i, got, want)
				}
			}
			if tt.perSecond == 0 {
				return // it never waits
			}
			ended := make(chan error)
			go func() {
				for err := error(nil); ; {
					if _, err = l.Accept(); err != nil {
						ended <- err
						return
					}
				}
			}()
			synctest.Wait()
			if err := l.Close(); err != nil {
				t.Fatal(err)
			}
			if err := <-ended; !errors.Is(err, net.ErrClosed) {
				t.Errorf("Accept ended with %v", err)
			}
			if err := l.Close(); err != nil {
				t.Errorf("the second Close: %v", err)
			}
		})
	}
}

// TestServerOptions: a gRPC server with them serves, and a request that is too large for gRPC ends
// only its stream.
func TestServerOptions(t *testing.T) {
	f := serve(t, ads.Options{}, service("a", "shop"))
	f.flush()
	address := f.serveOn(ads.PacedListener(listen(t), 1_000), ads.ServerOptions()...).Addr().String()
	good := openRaw(t, address, true)
	good.typeURL = envoy.ClusterType
	request := firstRequest(t, true, envoy.ClusterType, nil, nil)
	if err := good.stream.SendMsg(&request); err != nil {
		t.Fatal(err)
	}
	check(t, "resources", good.receive(t), 1)
	bad := openRaw(t, address, true)
	tooLarge := make([]byte, 5<<20)
	if err := bad.stream.SendMsg(&tooLarge); err != nil {
		t.Fatal(err)
	}
	var data []byte
	check(t, "code", status.Code(bad.stream.RecvMsg(&data)), codes.ResourceExhausted)
	f.define([]string{"a", "b"}, service("a", "shop"), service("b", "shop"))
	check(t, "resources of the other", good.receive(t), 1)
}
