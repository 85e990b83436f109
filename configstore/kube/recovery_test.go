// SPDX-License-Identifier: Apache-2.0

package kube_test

import (
	"net"
	"net/http"
	"os"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/rest"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/kube"
)

// TestRecovery: after an outage of any length the cache is up to date within a few seconds, and
// clients do not reconnect at the same times.
func TestRecovery(t *testing.T) {
	handlers := utilruntime.ErrorHandlers // See TestUnreachable.
	utilruntime.ErrorHandlers = nil
	defer func() { utilruntime.ErrorHandlers = handlers }()
	for _, outage := range []time.Duration{5 * time.Second, 40 * time.Second, time.Hour} {
		t.Run(outage.String(), func(t *testing.T) {
			first, second := recovery(t, outage), recovery(t, outage)
			if first == second {
				t.Errorf("two clients were back after exactly %v", first)
			}
			for _, took := range []time.Duration{first, second} {
				if most := 5 * time.Second; took > most {
					t.Errorf("it took %v, want at most %v", took, most)
				}
			}
		})
	}
}

// recovery returns how long after an outage a cache has synced, with a server that is unreachable
// and then forbids everything, which is a response, too.
func recovery(t *testing.T, outage time.Duration) (took time.Duration) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		config := &rest.Config{Host: "http://apiserver", Transport: roundTripper(func(r *http.Request) (*http.Response, error) {
			if time.Since(begin) < outage {
				return nil, &net.OpError{Op: "dial", Net: "tcp", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}
			}
			const forbidden = `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403}`
			return answer(r, http.StatusForbidden, forbidden), nil
		})}
		schemas := limits("recovery.example.com")
		c, err := kube.New(config, schemas, kube.Options{Optional: []configstore.GroupVersionKind{schemas.All()[0].GroupVersionKind}})
		if err != nil {
			t.Fatal(err)
		}
		stop, ended := make(chan struct{}), make(chan struct{})
		go func() {
			defer close(ended)
			c.Run(stop)
		}()
		for !c.HasSynced() && took < time.Minute {
			time.Sleep(10 * time.Millisecond)
			took = time.Since(begin) - outage
		}
		close(stop)
		<-ended
	})
	return took
}
