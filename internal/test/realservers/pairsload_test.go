// SPDX-License-Identifier: Apache-2.0

package realservers

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/pilotkit/pilotkit/internal/test/grpccall"
)

// underLoad changes policies while all clients call all servers that know who they are: no call
// fails that is allowed before and after, and none succeeds that is denied before and after.
func (p *pairs) underLoad() {
	p.TB.Helper()
	p.apply(policy("a", `{rules: [{from: [{source: {namespaces: [web]}}]}]}`))
	want := outcomes{"Get", "", allowed, denied, denied, nil}
	p.become("before the load", want)
	load := &pairLoad{pairs: p, want: want, ports: slices.DeleteFunc(slices.Clone(p.ports), func(d pairPort) bool { return !d.mutual })}
	var running sync.WaitGroup
	for _, c := range p.clients {
		running.Go(func() { load.run(c) })
	}
	for i := range 20 {
		p.apply(policy("a", fmt.Sprintf(`{rules: [{from: [{source: {namespaces: [web, n%d]}}]}]}`, i)) +
			policy("d", fmt.Sprintf(`{action: DENY, rules: [{to: [{operation: {paths: ["/quotes.Quotes/Put%d"]}}]}]}`, i)))
		p.Applied()
		load.round()
	}
	load.done.Store(true)
	running.Wait()
	p.TB.Logf("%d calls, of which %d failed as their connections ended", load.calls.Load(), load.ended.Load())
	if load.ended.Load()*10 > load.calls.Load() {
		p.TB.Error("too many calls failed as their connections ended")
	}
}

// pairLoad is calls without pause.
type pairLoad struct {
	*pairs
	want         outcomes
	ports        []pairPort
	done         atomic.Bool
	calls, ended atomic.Int64
}

// run has a client call all ports again and again.
func (l *pairLoad) run(c pairClient) {
	var calls []grpccall.Call
	for _, d := range l.ports {
		call := l.want.call(d)
		call.Waits = true
		calls = append(calls, call)
	}
	for !l.done.Load() {
		answers, err := c.Try(calls...)
		if err != nil {
			l.TB.Errorf("%s: %v", c.name, err)
			return
		}
		for i, got := range answers {
			d := l.ports[i]
			switch want := l.want.of(c, d); {
			case got.Code == want:
			case d.server.reconnects && (got.Code == closed || got.Code == codes.Internal && c.internal):
				l.ended.Add(1) // a new listener ends connections, and the pending calls on them
			default:
				l.TB.Errorf("%s calls %s: %v (%s), want %v", c.name, d.service, got.Code, got.Error, want)
				return
			}
		}
		l.calls.Add(int64(len(answers)))
	}
}

// round returns when there have been some more calls.
func (l *pairLoad) round() {
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for before := l.calls.Load(); l.calls.Load() < before+50 && !l.TB.Failed(); {
		<-tick.C
	}
}
