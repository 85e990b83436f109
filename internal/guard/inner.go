// SPDX-License-Identifier: Apache-2.0

package guard

// Inner is a function that a function of the host is to call, for example the publication within a
// batch of an updater. It serves one call of Within at a time.
type Inner struct {
	f, call        func()
	called, within bool
}

// NewInner returns f as an Inner.
func NewInner(f func()) *Inner {
	i := &Inner{f: f}
	i.call = func() {
		i.called, i.within = true, true
		i.f()
		i.within = false
	}
	return i
}

// Within calls outer with the function. If outer panics before it has called the function, Within
// calls it. A panic of the function itself passes.
func (i *Inner) Within(outer func(f func())) (p *PanicError) {
	i.called, i.within = false, false
	defer func() {
		if i.within {
			return
		}
		if p = Recovered(recover()); p != nil && !i.called {
			i.f()
		}
	}()
	outer(i.call)
	return nil
}
