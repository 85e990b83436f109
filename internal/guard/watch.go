// SPDX-License-Identifier: Apache-2.0

package guard

import "go.uber.org/atomic"

// watcher is what tests watch panics with. No product code sets it.
var watcher atomic.Pointer[func(*PanicError)] //nolint:gochecknoglobals // A panic that is kept must not escape the tests of any package.

// Watch has f called with each panic that Recovered keeps from now on, on the goroutine that
// panicked. It is for tests only, because it takes effect in the whole process. Nil ends it.
func Watch(f func(*PanicError)) {
	if f == nil {
		watcher.Store(nil)
		return
	}
	watcher.Store(&f)
}

func watched(p *PanicError) {
	if f := watcher.Load(); f != nil {
		(*f)(p)
	}
}
