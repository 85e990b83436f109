// SPDX-License-Identifier: Apache-2.0

package reach

import (
	"context"
	"errors"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/watchlist"
)

// listPatience is how long the list at the beginning of a watch may take.
const listPatience = time.Minute

var errNoEnd = errors.New("the list at the beginning of a watch has not come to its end")

// bounded is the source and the store of a reflector. The reflector requests a list if the list at
// the beginning of a watch does not come to its end, because some servers and proxies never mark
// the end, and a reflector would repeat the watch forever.
type bounded struct {
	cache.ListerWatcher
	cache.ListerWatcherWithContext
	cache.ReflectorStore

	// timeout ends a watch whose list is not complete. It is nil if there is none. Only the reflector
	// uses it.
	timeout *time.Timer
}

var _ cache.TransformingStore = (*bounded)(nil)

// newBounded returns the source and the store of one reflector.
func newBounded(from cache.ListerWatcher, into cache.ReflectorStore) *bounded {
	return &bounded{ListerWatcher: from, ListerWatcherWithContext: cache.ToListerWatcherWithContext(from), ReflectorStore: into}
}

// WatchWithContext implements cache.ListerWatcherWithContext.
func (b *bounded) WatchWithContext(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
	begins := o.SendInitialEvents != nil
	if begins && b.timeout != nil {
		b.end()
		return nil, errNoEnd
	}
	w, err := b.ListerWatcherWithContext.WatchWithContext(ctx, o)
	if begins && err == nil {
		b.timeout = time.AfterFunc(listPatience, w.Stop)
	}
	return w, err
}

// Replace implements cache.ReflectorStore. A list is complete.
func (b *bounded) Replace(objects []any, version string) error {
	b.end()
	return b.ReflectorStore.Replace(objects, version)
}

func (b *bounded) end() {
	if b.timeout != nil {
		b.timeout.Stop()
		b.timeout = nil
	}
}

// Transformer implements cache.TransformingStore. It may return nil.
func (b *bounded) Transformer() cache.TransformFunc {
	if s, ok := b.ReflectorStore.(cache.TransformingStore); ok {
		return s.Transformer()
	}
	return nil
}

// IsWatchListSemanticsUnSupported reports whether the source's client has no lists in watches.
func (b *bounded) IsWatchListSemanticsUnSupported() bool {
	return watchlist.DoesClientNotSupportWatchListSemantics(b.ListerWatcher)
}
