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
	_, faults := p.connected()
	for _, f := range faults {
		known := func(have listenerLeftOut) bool { return have.listener == f.Name && have.object == f.Object }
		if f.View != view || f.TypeURL != envoy.ListenerType || f.Object == (configstore.ConfigKey{}) || slices.ContainsFunc(out, known) {
			continue
		}
		out = append(out, listenerLeftOut{f.Name, f.Object, fmt.Errorf("%s is left out of listener %s for %s: %s", f.Object, f.Name, f.Proxy, f.Text)})
	}
	return out
}

// without returns the proxy with the objects left out that its selected listeners lack, and an
// error for each of these objects.
func (x *explaining) without(is func(listener string) bool) (*proxy, []error) {
	var left []configstore.ConfigKey
	var problems []error
	for _, l := range x.leftOut {
		if is(l.listener) {
			left, problems = append(left, l.object), append(problems, l.problem)
		}
	}
	if len(left) == 0 {
		return x.proxy, nil
	}
	of := *x.proxy
	of.leaving = &leaving{
		out: func(c ads.Contribution) ads.Omission {
			if slices.Contains(left, c.Object) {
				return ads.Failing // The names of deeper omissions explain nothing.
			}
			return ads.Included
		},
		known: make(map[ads.Contribution]ads.Omission),
	}
	return &of, problems
}
