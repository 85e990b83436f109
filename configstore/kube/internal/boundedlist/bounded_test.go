// SPDX-License-Identifier: Apache-2.0

package boundedlist_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	"github.com/pilotkit/pilotkit/configstore/kube/internal/boundedlist"
	"github.com/pilotkit/pilotkit/internal/test/testmain"
)

func TestMain(m *testing.M) { testmain.Verify(m) }

// server is a server of one node. Its watches begin with the node. They mark the end of the list if
// ends is set, and end after it if cut is set.
type server struct {
	ends, cut      bool
	lists, watches int
}

func (s *server) source() cache.ListerWatcher {
	node := corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", ResourceVersion: "7"}}
	return &cache.ListWatch{
		ListWithContextFunc: func(context.Context, metav1.ListOptions) (runtime.Object, error) {
			s.lists++
			return &corev1.NodeList{ListMeta: metav1.ListMeta{ResourceVersion: "7"}, Items: []corev1.Node{node}}, nil
		},
		WatchFuncWithContext: func(_ context.Context, o metav1.ListOptions) (watch.Interface, error) {
			s.watches++
			w := watch.NewFakeWithChanSize(2, false)
			if o.SendInitialEvents == nil {
				return w, nil
			}
			w.Add(node.DeepCopy())
			switch {
			case s.ends:
				w.Action(watch.Bookmark, &corev1.Node{ObjectMeta: metav1.ObjectMeta{
					ResourceVersion: "7", Annotations: map[string]string{metav1.InitialEventsAnnotationKey: "true"},
				}})
			case s.cut:
				w.Stop()
			}
			return w, nil
		},
	}
}

// TestListWithoutEnd: a reflector lists if the list at the beginning of a watch does not end within a minute, or if the
// watch ends before; a complete list is not repeated.
func TestListWithoutEnd(t *testing.T) {
	for name, c := range map[string]struct {
		server
		after          time.Duration
		lists, watches int
	}{
		"complete":   {server{ends: true}, time.Second, 0, 1},
		"endless":    {server{}, time.Minute + time.Second, 1, 2},
		"incomplete": {server{cut: true}, time.Second, 1, 2},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				nodes := cache.NewStore(cache.MetaNamespaceKeyFunc)
				bounded := boundedlist.New(c.source(), nodes)
				ctx, cancel := context.WithCancel(t.Context())
				ended := make(chan struct{})
				go func() {
					cache.NewReflectorWithOptions(bounded, &corev1.Node{}, bounded, cache.ReflectorOptions{}).RunWithContext(ctx)
					close(ended)
				}()
				time.Sleep(c.after)
				for range 2 {
					synctest.Wait()
					if n := len(nodes.List()); n != 1 || c.server.lists != c.lists || c.server.watches != c.watches {
						t.Errorf("%d nodes, %d lists, %d watches", n, c.server.lists, c.server.watches)
					}
					time.Sleep(3 * time.Minute)
				}
				cancel()
				<-ended
			})
		})
	}
}
