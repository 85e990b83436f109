// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"slices"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/xdsupdate/ads"
)

// Explain says what becomes of a call of the proxies of a view, as of the last push;
// ads.ProxyStatus has the view of a connected proxy, whichever the order of its server's providers. A view without a Policy is that
// of a sidecar or gRPC client without labels. Before the first push nothing is known,
// and the explanation says so. What connected proxies of the view are sent a listener without, because one of them refuses it, is
// left out, and said to be. It may be called from any goroutine.
func (p *Policies) Explain(view ads.View, call Call) Explanation {
	last := p.last.Load()
	if last == nil {
		return Explanation{Outcome: "nothing was pushed yet"}
	}
	return last.state.explain(last.proxy(view.SeenBy(p.Name())), call, p.listenersLeftOut(view))
}

// Ineffective returns what of the policies changes nothing for any client, as of the
// last push, which objects are left out for some connected client because it refuses
// them, which policies connected sidecars do not enforce, and the objects that the store has
// now of kinds without an effect; nil before the first push. It is sorted by kind, namespace
// and name. It looks at everything there is: it is for reports. It may be called from any
// goroutine.
func (p *Policies) Ineffective() []Ineffective {
	last := p.last.Load()
	if last == nil {
		return nil
	}
	connected := p.connected()
	sidecars := last.sidecarsAmong(connected, p.Name())
	found := slices.Concat(last.state.ineffective(), quarantined(connected), withoutEffect(p.store))
	for key, o := range last.state.objects.All() {
		found = append(found, last.state.unenforced(key, o, sidecars)...)
	}
	return sortedIneffective(found)
}

// Effects returns what an object does, as of the last push, and what of it changes
// nothing, as Ineffective; both are nil for an object that is not known. It may be
// called from any goroutine.
func (p *Policies) Effects(key configstore.ConfigKey) ([]Effect, []Ineffective) {
	last := p.last.Load()
	if last == nil {
		return nil, nil
	}
	if WithoutEffect(key.Kind) != "" && p.store.Get(key.Kind, key.Name, key.Namespace) != nil {
		return nil, []Ineffective{ofKind(key)}
	}
	does, not := last.state.effects(key)
	o, _ := last.state.objects.Get(key)
	return does, append(not, last.state.unenforced(key, o, last.sidecarsAmong(p.connected(), p.Name()))...)
}
