// SPDX-License-Identifier: Apache-2.0

package registrytest

import (
	"slices"
	"sync"

	"go.uber.org/atomic"

	"github.com/pilotkit/pilotkit/internal/test/contract"
	"github.com/pilotkit/pilotkit/registry"
)

func handlerChecks() []check {
	return []check{
		{
			Name: "Handlers/Replay", Source: sourcePackage,
			Promise: "a handler registered when services exist first receives an add for each, and then what happens, without gap or duplicate",
			Run:     handlersReplay,
		},
		{
			Name: "Handlers/Order", Source: sourcePackage,
			Promise: "for each change handlers run in the order in which they were registered",
			Run:     handlersOrder,
		},
		{
			Name: "Handlers/CallBack", Source: sourcePackage,
			Promise: "a handler may read the registry, register handlers and change the registry: no lock is held",
			Run:     handlersCallBack,
		},
		{
			Name: "Handlers/Block", Source: sourcePackage,
			Promise: "while a handler blocks, the registry can be read",
			Run:     handlersBlock,
		},
		{
			Name: "Handlers/OneAtATime", Source: sourcePackage,
			Promise: "handlers are called one at a time, in one order for all, whichever goroutine makes the changes",
			Run:     handlersOneAtATime,
		},
		{
			Name: "Subscribe/Replay", Source: sourcePackage,
			Promise: "a handler subscribed when services and workloads exist first receives an add for each, as one that is appended",
			Skip:    noSubscribe, Run: subscribeReplay,
		},
		{
			Name: "Handlers/Panic", Source: "package configstore",
			Promise: "a panic of a handler costs that call: the change is made, the other handlers receive it, and all that comes later",
			Run:     handlersPanic,
		},
		{
			Name: "Subscribe/Cancel", Source: "registry.Controller",
			Promise: "no call of a cancelled handler begins; cancel may be called again, and from within the handler",
			Skip:    noSubscribe, Run: subscribeCancel,
		},
	}
}

func handlersReplay(s *suite) {
	s.set(shop())
	s.set(bank())
	early := s.recorder()
	s.set(shop().onPorts(81))
	late := s.recorder()
	s.remove(bank())
	s.expectCalls(early, "add money/bank.example.com", "add retail/shop.example.com",
		"update retail/shop.example.com", "delete money/bank.example.com")
	calls := s.expectCalls(late, "add money/bank.example.com", "add retail/shop.example.com", "delete money/bank.example.com")
	if got, want := describe(calls[1].Curr), describe(shop().onPorts(81).service()); got != want {
		s.Broken("the replay has %s, want %s", got, want)
	}
}

func handlersOrder(s *suite) {
	var mu sync.Mutex
	var got []string
	for _, name := range []string{"first", "second", "third"} {
		s.reg.AppendServiceHandler(func(_, _ *registry.Service, event registry.Event) {
			mu.Lock()
			defer mu.Unlock()
			got = append(got, name+" "+event.String())
		})
	}
	s.catchUp()
	s.set(shop())
	s.remove(shop())
	want := []string{"first add", "second add", "third add", "first delete", "second delete", "third delete"}
	mu.Lock()
	defer mu.Unlock()
	if !slices.Equal(got, want) {
		s.Broken("called %v, want %v", got, want)
	}
}

func handlersCallBack(s *suite) {
	other := &recorder{}
	once := sync.OnceFunc(func() {
		s.reg.Services()
		s.reg.GetProxyServiceInstances(&registry.Proxy{IPAddresses: []string{"10.1.1.1"}})
		s.reg.AppendServiceHandler(other.handle)
		s.subject.Set(bank().service(), bank().endpoints())
	})
	s.reg.AppendServiceHandler(func(_, _ *registry.Service, _ registry.Event) { once() })
	s.catchUp()
	s.Within("a change whose handler calls back", func() { s.set(shop()) })
	s.expectServices(bank(), shop())
	s.expectKnown(other, "money/bank.example.com", "retail/shop.example.com")
}

// expectKnown requires that handlers received an Add for exactly these services, in any order.
func (s *suite) expectKnown(r *recorder, want ...string) {
	s.Helper()
	var got []string
	for _, c := range r.Take() {
		if c.Event != registry.EventAdd {
			s.Broken("received %s, want adds", c)
		}
		got = append(got, c.Curr.Key())
	}
	slices.Sort(got)
	if !slices.Equal(got, want) {
		s.Broken("received %v, want %v", got, want)
	}
}

func handlersBlock(s *suite) {
	g := contract.NewGate()
	defer g.Open()
	s.reg.AppendServiceHandler(func(_, _ *registry.Service, _ registry.Event) { g.Pass() })
	changed, read := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(changed)
		s.set(shop())
	}()
	s.AwaitOpening(g.Entered, g.Open, "the call of the handler")
	go func() {
		defer close(read)
		s.reg.GetService(shop().hostname)
		s.reg.Services()
		s.reg.InstancesByPort(shop().service(), 0)
		s.reg.GetProxyWorkloadLabels(&registry.Proxy{IPAddresses: []string{"10.1.1.1"}})
		s.reg.HasSynced()
	}()
	s.AwaitOpening(read, g.Open, "reading beside a handler that blocks")
	g.Open()
	s.Await(changed, "the end of the change")
}

// handlersOneAtATime changes the registry on several goroutines.
func handlersOneAtATime(s *suite) {
	var running atomic.Int32
	first, second := &recorder{}, &recorder{}
	for _, r := range []*recorder{first, second} {
		s.reg.AppendServiceHandler(func(prev, curr *registry.Service, event registry.Event) {
			if running.Inc() > 1 {
				s.Broken("%s %s is delivered while another handler runs", event, describe(curr))
			}
			r.handle(prev, curr, event)
			running.Dec()
		})
	}
	s.catchUp()
	s.Within("changes by four goroutines", func() {
		var wg sync.WaitGroup
		for i := range 4 {
			wg.Go(func() { churn(s, i) })
		}
		wg.Wait()
	})
	s.catchUp()
	calls := second.Take()
	if !slices.Equal(texts(first.Take()), texts(calls)) {
		s.Broken("two handlers received different histories")
	}
	s.consistent(calls)
}

// churn changes services of its own and one that other workers change, too.
func churn(s *suite, worker int) {
	own := fixture{
		hostname: registry.Hostname([]string{"a", "b", "c", "d"}[worker] + ".example.com"), namespace: "churn",
		ports: []uint32{80}, addresses: []string{"10.3.3.3"},
	}
	for round := range 25 {
		f := own
		if round%2 == 1 {
			f = f.onPorts(80, 81)
		}
		s.subject.Set(f.service(), f.endpoints())
		common := shop().onPorts(uint32(80 + worker))
		s.subject.Set(common.service(), common.endpoints())
	}
}

func noSubscribe(s *suite) string {
	if _, ok := registry.As[registry.Subscriber](s.reg); !ok {
		return "the registry is no registry.Subscriber"
	}
	return ""
}

func subscribeReplay(s *suite) {
	reg, _ := registry.As[registry.Subscriber](s.reg)
	s.set(shop())
	r := &recorder{}
	defer reg.SubscribeServices(r.handle)()
	s.catchUp()
	s.expectCalls(r, "add retail/shop.example.com")
	if noWorkloads(s) != "" {
		return
	}
	s.setWorkload(machine("one", "10.5.5.5", "a"))
	w := &workloadRecorder{}
	defer reg.SubscribeWorkloads(w.handle)()
	s.catchUp()
	s.expectWorkloads(w, "add retail/one 10.5.5.5 app=a")
}

func handlersPanic(s *suite) {
	s.reg.AppendServiceHandler(func(_, _ *registry.Service, _ registry.Event) { panic("a handler of the suite") })
	r := s.recorder()
	if contract.Panics(func() {
		s.set(shop())
		s.remove(shop())
	}) {
		s.Broken("the panic of a handler reached the change")
	}
	s.expectCalls(r, "add retail/shop.example.com", "delete retail/shop.example.com")
}

func subscribeCancel(s *suite) {
	reg, _ := registry.As[registry.Subscriber](s.reg)
	s.set(shop())
	r := &recorder{}
	cancel := reg.SubscribeServices(r.handle)
	s.catchUp()
	s.expectCalls(r, "add retail/shop.example.com")
	calls := 0
	var cancelSelf func()
	cancelSelf = reg.SubscribeServices(func(_, _ *registry.Service, event registry.Event) {
		if event == registry.EventUpdate {
			calls++
			cancelSelf()
		}
	})
	s.catchUp()
	cancel()
	cancel()
	s.Within("a change whose handler cancels itself", func() {
		s.set(shop().onPorts(81))
		s.set(shop().onPorts(82))
	})
	s.expectCalls(r)
	if calls != 1 {
		s.Broken("a handler that cancelled itself in its first call was called %d times", calls)
	}
}
