// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"fmt"
	"slices"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/xdsupdate/ads"
	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
)

// listenerLeftOut is an object that is left out of a connected proxy's listener, because the proxy
// rejects the listener with the object or because the listener cannot be built with it.
type listenerLeftOut struct {
	listener string
	object   configstore.ConfigKey
	problem  error
}

// listenersLeftOut returns the distinct objects that are left out of listeners in a view.
func (p *Policies) listenersLeftOut(view ads.View) (out []listenerLeftOut) {
	p.mu.Lock()
	proxies := p.proxies
	p.mu.Unlock()
	if proxies == nil {
		return nil
	}
	add := func(proxy, listener string, all []ads.LeftOut) {
		for _, l := range all {
			known := func(have listenerLeftOut) bool { return have.listener == listener && have.object == l.Object }
			if !slices.ContainsFunc(out, known) {
				out = append(out, listenerLeftOut{listener, l.Object, fmt.Errorf("%s is left out of listener %s for %s: %s", l.Object, listener, proxy, l.Error)})
			}
		}
	}
	for _, proxy := range proxies() {
		if proxy.View != view {
			continue
		}
		status := proxy.Types[envoy.ListenerType]
		for _, r := range status.Refusals {
			add(proxy.ID, r.Name, r.LeftOut)
		}
		for _, f := range status.Failed {
			add(proxy.ID, f.Name, f.LeftOut)
		}
	}
	return out
}

// without returns the proxy with the objects left out that its selected listeners lack, and an
// error for each of these objects.
func (x *explaining) without(is func(listener string) bool) (*proxy, []error) {
	var objects []configstore.ConfigKey
	var problems []error
	for _, l := range x.leftOut {
		if is(l.listener) {
			objects, problems = append(objects, l.object), append(problems, l.problem)
		}
	}
	if len(objects) == 0 {
		return x.proxy, nil
	}
	of := *x.proxy
	of.leaving = &leaving{
		out: func(c ads.Contribution) ads.Omission {
			if slices.Contains(objects, c.Object) {
				return ads.Failing // The names of deeper omissions explain nothing.
			}
			return ads.Included
		},
		known: make(map[ads.Contribution]ads.Omission),
	}
	return &of, problems
}
