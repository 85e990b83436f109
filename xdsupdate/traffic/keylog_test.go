// SPDX-License-Identifier: Apache-2.0

package traffic_test

import (
	"bytes"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pilotkit/pilotkit/xdsupdate/traffic"
)

// TestKeyLog: keys that cannot be fetched are logged with their object, less and less often, and when it is over.
func TestKeyLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		published := &publishedKeys{answers: map[string]string{"https://a/keys": ""}, more: make(chan struct{})}
		var log bytes.Buffer // written by Run only
		s := stage(t, traffic.Options{KeyFetcher: published, Logger: slog.New(slog.NewTextHandler(&log, nil))}, objectsOf(t, httpEdge,
			`RequestAuthentication ingress/second {"jwtRules": [{"issuer": "a", "jwksUri": "https://a/keys"}]}`,
			`RequestAuthentication ingress/first {"jwtRules": [{"issuer": "a", "jwksUri": "https://a/keys"}]}`,
		), populate())
		stop := make(chan struct{})
		var running sync.WaitGroup
		end := sync.OnceFunc(func() {
			close(stop)
			running.Wait()
		})
		t.Cleanup(end)
		running.Go(func() { s.policies.Run(stop) })
		s.applied()
		synctest.Wait()
		const denied = "requests with such tokens are denied"
		if text := log.String(); strings.Count(text, denied) != 1 || !strings.Contains(text, "keys=https://a/keys object=ingress/first objects=2 ") || !strings.Contains(text, "on fire") {
			t.Errorf("logged: %s", text)
		}
		published.publish("https://a/keys", `{"keys":[{"kty":"EC","crv":"P-256","x":"MKBCTNIcKUSDii11ySs3526iDZ8AiTo7Tu6KPAqv7D4","y":"4Etl6SRW2YiLUrN5vfvVHuhp7x8PxltmWWlbbM4IFyM"}]}`)
		time.Sleep(time.Hour)
		published.publish("https://a/keys", "")
		time.Sleep(24 * time.Hour)
		end()
		text := log.String()
		if n := strings.Count(text, denied); n != 1 {
			t.Errorf("logged %d times that tokens are denied: %s", n, text)
		}
		if n := strings.Count(text, "the last ones stay"); n < 20 || n > 32 {
			t.Errorf("logged %d times in a day that keys stay", n)
		}
		if n := strings.Count(text, "level=INFO msg=\"keys of tokens are fetched again\""); n != 1 {
			t.Errorf("logged %d times that it is over: %s", n, text)
		}
	})
}
