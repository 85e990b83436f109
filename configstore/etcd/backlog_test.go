// SPDX-License-Identifier: Apache-2.0

package etcd_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/pilotkit/pilotkit/configstore/etcd"
	"github.com/pilotkit/pilotkit/configstore/istio"
)

// TestBacklog: a replica receives the changes that it has missed even if one response of the watch
// exceeds gRPC's default limit of 4 MiB, and even over a network that needs more time for the
// response than a server may be silent.
func TestBacklog(t *testing.T) {
	t.Parallel()
	backlog(t, 0)
}

func TestSlowBacklog(t *testing.T) {
	t.Parallel()
	backlog(t, 20*time.Millisecond) // 5 s for all of it, and 1 s for 1.5 MiB, without a response in between
}

func backlog(t *testing.T, delay time.Duration) {
	t.Helper()
	srv, prefix := shared.get(t)
	p := newProxy(t, srv.addr)
	cut, other := start(t, p.addr(), impatient(prefix)), start(t, srv.addr, etcd.Options{Prefix: prefix})
	other.create(t, entry("first", "10.0.0.1"))
	cut.awaits(t, "first", "10.0.0.1")
	p.set(refusing)
	eventually(t, "the cache is stale", func() bool { return cut.Status().Stale })
	const objects, kib = 40, 200 // 8 MiB
	// One after the other, because etcd may not manage all at once on a busy machine.
	for i := range objects {
		c := entry(fmt.Sprint("large", i), "10.0.0.1")
		c.Annotations = map[string]string{"text": strings.Repeat("x", kib<<10)}
		other.create(t, c)
	}
	p.delay.Store(delay)
	p.set(passing)
	eventually(t, "all is there", func() bool { return len(cut.List(istio.ServiceEntry, "")) == objects+1 })
	cut.isLive(t)
	if got := len(cut.take(t)); got != objects+1 {
		t.Errorf("%d events, want %d", got, objects+1)
	}
}
