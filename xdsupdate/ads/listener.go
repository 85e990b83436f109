// SPDX-License-Identifier: Apache-2.0

package ads

import (
	"net"
	"sync"
	"time"

	"github.com/pilotkit/pilotkit/xdsupdate/ads/internal/pace"
)

// PacedListener returns a listener that accepts connections of another one at a bounded
// rate: perSecond in the long run, a tenth of that at once; 0 or less: at any rate. What
// comes beyond that waits in the queue of the operating system, so that thousands of
// clients that connect at the same time are served one after the other, and leave time
// for those that are connected already. Setting a connection up takes a processor for
// about half a millisecond, and more with TLS. Close ends an Accept that waits, with
// net.ErrClosed.
func PacedListener(l net.Listener, perSecond int) net.Listener {
	if perSecond <= 0 {
		return l
	}
	return &pacedListener{
		Listener: l, bucket: pace.NewBucket(float64(perSecond), float64(perSecond)/10),
		every: time.Second / time.Duration(perSecond), closed: make(chan struct{}),
	}
}

type pacedListener struct {
	net.Listener
	every time.Duration

	mu     sync.Mutex // held by Accept
	bucket pace.Bucket

	once   sync.Once
	closed chan struct{}
}

// Accept implements net.Listener.
func (l *pacedListener) Accept() (net.Conn, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for !l.bucket.Take(time.Now(), 1) {
		select {
		case <-time.After(l.every):
		case <-l.closed:
			return nil, net.ErrClosed
		}
	}
	return l.Listener.Accept()
}

// Close implements net.Listener.
func (l *pacedListener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return l.Listener.Close()
}
