// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"math/rand/v2"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/istio"
	"github.com/pilotkit/pilotkit/configstore/memory"
)

// eventRows: one object changes, until the code that follows the objects has it.
func eventRows() []row {
	return []row{{
		name: "Events: from an update until a follower has the object", sizes: []int{1_000, 10_000, 100_000},
		about: "pilotkit and the informer call a handler with the old and the new state, on a goroutine of their own. The informer\n" +
			"receives the change from a watch in memory, and its handler adds a key to a workqueue, as controllers do. The others\n" +
			"close a channel, and the follower reads the object. The update of pilotkit is validated and compared, and snapshots\n" +
			"are kept; the watch of the informer does none of these.",
		of: func(n int) []subject {
			return []subject{
				{"pilotkit", func(b *testing.B) { benchHandler(b, n) }},
				{"client-go informer and workqueue", func(b *testing.B) { benchInformer(b, n) }},
				{"go-memdb watch channel", func(b *testing.B) { benchMemdbWatch(b, n) }},
				{"statedb watch channel", func(b *testing.B) { benchStatedbWatch(b, n) }},
			}
		},
	}}
}

// follow changes random objects, and waits after each for its follower.
func follow(b *testing.B, n int, change func(i, version int), wait func(i int)) {
	b.Helper()
	b.ReportAllocs()
	random := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // the same objects for each subject
	version := 0
	for b.Loop() {
		i := random.IntN(n)
		version++
		change(i, version)
		wait(i)
	}
}

func benchHandler(b *testing.B, n int) {
	b.Helper()
	store := memory.Make(istio.Schemas())
	for i := range n {
		must(store.Create(configOf(i, 0)))
	}
	c := memory.NewController(store)
	seen, stop, ended := make(chan struct{}, 1), make(chan struct{}), make(chan struct{})
	c.RegisterEventHandler(istio.ServiceEntry, func(_, _ configstore.Config, e configstore.Event) {
		if e == configstore.EventUpdate {
			seen <- struct{}{}
		}
	})
	go func() { defer close(ended); c.Run(stop) }()
	check(configstore.WaitForSync(context.Background(), c))
	follow(b, n, func(i, version int) { must(c.Update(configOf(i, version))) }, func(int) { <-seen })
	close(stop)
	<-ended
}

// listWatch is a cache.ListerWatcher of objects in memory.
type listWatch struct {
	objects []*object
	watch   *watch.FakeWatcher
}

func (l *listWatch) List(metav1.ListOptions) (runtime.Object, error) {
	out := &objectList{}
	out.ResourceVersion = "1"
	for _, o := range l.objects {
		out.Items = append(out.Items, *o)
	}
	return out, nil
}

func (l *listWatch) Watch(metav1.ListOptions) (watch.Interface, error) { return l.watch, nil }

// IsWatchListSemanticsUnSupported makes the informer list the objects.
func (*listWatch) IsWatchListSemanticsUnSupported() bool { return true }

type objectList struct {
	object
	metav1.ListMeta

	Items []object
}

func benchInformer(b *testing.B, n int) {
	b.Helper()
	l := &listWatch{watch: watch.NewFakeWithChanSize(1, false)}
	for i := range n {
		l.objects = append(l.objects, objectOf(i, 0))
	}
	informer := cache.NewSharedIndexInformer(l, &object{}, 0, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})
	queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[string]())
	_ = must(informer.AddEventHandler(cache.ResourceEventHandlerFuncs{UpdateFunc: func(_, o any) {
		queue.Add(must(cache.MetaNamespaceKeyFunc(o)))
	}}))
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() { defer close(ended); informer.RunWithContext(ctx) }()
	if !cache.WaitForCacheSync(ctx.Done(), informer.HasSynced) {
		b.Fatal("the informer has not synced")
	}
	follow(b, n, func(i, version int) { l.watch.Modify(objectOf(i, version)) }, func(int) {
		key, _ := queue.Get()
		if _, ok, err := informer.GetIndexer().GetByKey(key); !ok || err != nil {
			b.Fatal("the object is missing")
		}
		queue.Done(key)
	})
	cancel()
	<-ended
	queue.ShutDown()
}

func benchMemdbWatch(b *testing.B, n int) {
	b.Helper()
	s := newMemdb(n)
	var changed <-chan struct{}
	follow(b, n, func(i, version int) {
		changed, _ = must2(s.Txn(false).FirstWatch("objects", "id", namespaceOf(i), nameOf(i)))
		putMemdb(s, objectOf(i, version))
	}, func(i int) {
		<-changed
		_ = must(s.Txn(false).First("objects", "id", namespaceOf(i), nameOf(i)))
	})
}

func must2[A, B any](a A, b B, err error) (A, B) {
	check(err)
	return a, b
}

func benchStatedbWatch(b *testing.B, n int) {
	b.Helper()
	db, table := newStatedb(n)
	var changed <-chan struct{}
	follow(b, n, func(i, version int) {
		_, _, changed, _ = table.GetWatch(db.ReadTxn(), byKey.Query(keyOf(i)))
		putStatedb(db, table, objectOf(i, version))
	}, func(i int) {
		<-changed
		_, _, _ = table.Get(db.ReadTxn(), byKey.Query(keyOf(i)))
	})
}
