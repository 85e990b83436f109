// SPDX-License-Identifier: Apache-2.0

package etcd_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/pilotkit/pilotkit/configstore/etcd"
	"github.com/pilotkit/pilotkit/configstore/istio"
	"github.com/pilotkit/pilotkit/internal/test/tier"
)

// TestReplicasInTrouble: three replicas write at random while their connections to etcd are cut or
// silent, etcd restarts, and the missed changes are compacted. Their final states equal etcd's, and
// the events of each one's handlers lead to that state: no event is lost or duplicated.
func TestReplicasInTrouble(t *testing.T) {
	t.Parallel()
	rounds := tier.Share(12)
	srv := newServer(t)
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	var replicas []*replica
	var proxies []*proxy
	for range 3 {
		p := newProxy(t, srv.addr)
		opts := impatient("")
		opts.Timeout = time.Second
		proxies, replicas = append(proxies, p), append(replicas, start(t, p.addr(), opts))
	}
	var writing sync.WaitGroup
	stop := make(chan struct{})
	for i, r := range replicas {
		w := &writer{replica: r, rng: rand.New(rand.NewPCG(seed, uint64(i+1)))}
		writing.Go(func() { w.writeUntil(t, stop) })
	}
	for range rounds {
		trouble(t, random, srv, proxies)
	}
	close(stop)
	writing.Wait()
	fresh := newReplica(t, srv.addr, etcd.Options{})
	fresh.Drain()
	for i, r := range replicas {
		eventually(t, "all is shown", func() bool { return r.Status().Revision >= fresh.Status().Revision })
		r.isLive(t)
		sameContent(t, fresh, r)
		if diff := foldedDiff(r.take(t), fresh); diff != "" {
			t.Errorf("replica %d was told a history that does not lead to its content: %s", i, diff)
		}
	}
}

// trouble causes one fault, lets writes continue for a while, and ends it.
func trouble(t *testing.T, random *rand.Rand, srv *server, proxies []*proxy) {
	t.Helper()
	p := proxies[random.IntN(len(proxies))]
	goOn := func() { // some transactions of the replicas that can still write
		client := newClient(t, srv.addr)
		before, err := client.Get(within(t), "revision")
		if err != nil {
			t.Fatal(err)
		}
		eventually(t, "others write", func() bool {
			now, err := client.Get(within(t), "revision")
			return err == nil && now.Header.Revision >= before.Header.Revision+30
		})
		if random.IntN(2) == 0 {
			if _, err := client.Compact(within(t), before.Header.Revision+20, clientv3.WithCompactPhysical()); err != nil {
				t.Fatal(err)
			}
		}
	}
	switch random.IntN(3) {
	case 0:
		p.set(refusing)
		goOn()
	case 1:
		p.set(silent)
		goOn()
	case 2:
		for _, each := range proxies {
			each.set(refusing)
		}
		srv.stop()
		srv.restart(t)
		for _, each := range proxies {
			each.set(passing)
		}
		goOn()
	}
	p.set(passing)
}

// writeUntil writes until it is stopped, even during outages of etcd.
func (w *writer) writeUntil(t *testing.T, stop <-chan struct{}) {
	t.Helper()
	for {
		select {
		case <-stop:
			return
		default:
		}
		m := w.mutation()
		if _, err := w.Apply(m); err != nil && !expected(err) && !errors.Is(err, etcd.ErrUnavailable) && !errors.Is(err, etcd.ErrNotShown) {
			t.Errorf("%s %s: %v", m.Op, m.Config.Name, err)
			return
		}
	}
}

// foldedDiff returns the position at which a history is impossible, or its difference from a
// replica's final state, or "".
func foldedDiff(history []string, end *replica) string {
	has := map[string]string{}
	for i, event := range history {
		var verb, kind, name, at, revision string
		_, _ = fmt.Sscan(event, &verb, &kind, &name, &at, &revision)
		before, there := has[name]
		older, _ := strconv.Atoi(before)
		newer, _ := strconv.Atoi(revision)
		switch {
		case (verb == "add") == there, verb == "update" && newer <= older:
			return fmt.Sprintf("event %d is %q, after revision %q", i, event, before)
		case verb == "delete":
			delete(has, name)
		default:
			has[name] = revision
		}
	}
	for _, c := range end.List(istio.ServiceEntry, "") {
		if name := c.Namespace + "/" + c.Name; has[name] != c.ResourceVersion {
			return fmt.Sprintf("%s ends at revision %q, not %s", name, has[name], c.ResourceVersion)
		}
	}
	if n := len(end.List(istio.ServiceEntry, "")); n != len(has) {
		return fmt.Sprintf("it ends with %d objects, not %d: %s", len(has), n, strings.Join(history[max(0, len(history)-10):], "; "))
	}
	return ""
}
