// SPDX-License-Identifier: Apache-2.0

package realenvoy

import (
	"fmt"
	"net/http"
	"strconv"
	"testing"

	"github.com/pilotkit/pilotkit/internal/test/envoyproxy"
)

// TestRestart: the server restarts under load, with its content and with changes made meanwhile. No
// request is lost, no listener drains, and a pending request ends well.
func TestRestart(t *testing.T) {
	eachProtocol(t, func(t *testing.T, delta bool) {
		t.Helper()
		one, two := startReporter(t, "one"), startReporter(t, "two")
		ports := envoyproxy.FreePorts(t, 2)
		plain := strconv.Itoa(int(ports[0]))
		// Connections of others do not have this port when the server takes it again.
		p := startPlane(t, planeOptions{mesh: withoutMeshTLS(), address: local(strconv.Itoa(int(ports[1])))})
		p.Apply(edgeGateway+service("shop", "HTTP", one.endpoint(""), two.endpoint(""))+"---"+policy("shop", oneAndTwo)+"---"+
			rules("\n  - route: [{destination: {host: shop.local.test, subset: one}}]\n"), "HTTPPORT", plain)
		p.Applied()
		proxy := p.edge(delta)
		proxy.AwaitReady()
		e := &edge{plane: p, proxy: proxy, port: plain, client: &http.Client{Transport: newTransport(t)}}
		load := startLoad(t, 4, func(transport *http.Transport) (string, error) {
			own := *e
			own.client = &http.Client{Transport: transport, Timeout: testTimeout}
			got, err := own.call(http.MethodGet, "/")
			if err == nil && got.StatusCode != http.StatusOK {
				err = fmt.Errorf("status %d: %s", got.StatusCode, got.body)
			}
			return got.By, err
		})
		long := make(chan string, 1)
		go func() {
			got, err := e.call(http.MethodGet, "/", "x-wait", "2s")
			long <- fmt.Sprint(got.By, err)
		}()
		for i := range 4 {
			load.more(200)
			p.Stop()
			load.more(200)
			subset := []string{"two", "one"}[i%2]
			p = startPlane(t, p.again())
			p.Apply(rules(fmt.Sprintf("\n  - route: [{destination: {host: shop.local.test, subset: %s}}]\n", subset)))
			load.await(subset)
		}
		if got := <-long; got != "one<nil>" {
			t.Errorf("a long request: %s", got)
		}
		load.end()
		p.Accepted()
		if n := proxy.Stats(`listener_manager\.(listener_(modified|removed|stopped)|total_listeners_draining)$|downstream_cx_drain_close$`); anyPositive(n) {
			t.Errorf("something drained: %v", n)
		}
	})
}

func anyPositive(stats map[string]int) bool {
	for _, n := range stats {
		if n > 0 {
			return true
		}
	}
	return false
}
