// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"slices"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/xdsupdate/ads"
)

// Explain evaluates one call of the proxies in a view, based on the last push. ads.ProxyStatus has
// the view of a connected proxy, regardless of the order of its server's providers. A view without
// a Policy stands for a sidecar or gRPC client without labels. Before the first push the
// explanation says only that there was none. Objects that are left out of a listener because a
// connected proxy of the view rejects it are left out of the evaluation and reported. It may be
// called from any goroutine.
func (p *Policies) Explain(view ads.View, call Call) Explanation {
	last := p.last.Load()
	if last == nil {
		return Explanation{Outcome: "nothing was pushed yet"}
	}
	return last.state.explain(last.proxy(view.SeenBy(p.Name())), call, p.listenersLeftOut(view))
}

// Ineffective returns the findings about configs without the effect that they describe:
//
//   - policies without effect, as of the last push,
//   - objects that are left out for a connected client because the client rejects them,
//   - policies that connected sidecars do not enforce,
//   - objects of kinds without effect that are in the store now.
//
// The findings are sorted by kind, namespace and name. The result is nil before the first push. The
// first call after a push evaluates all configs, and later calls share its result. It may be called
// from any goroutine.
func (p *Policies) Ineffective() []Ineffective {
	last := p.last.Load()
	if last == nil {
		return nil
	}
	report := last.state.report()
	connected, faults := p.connected()
	found := slices.Concat(report.found, quarantined(faults), withoutEffect(p.store))
	if len(report.others) > 0 {
		sidecars := last.sidecarsAmong(connected, p.Name())
		for _, o := range report.others {
			found = append(found, last.state.moreFindings(o, sidecars)...)
		}
	}
	return sortedIneffective(found)
}

// Effects returns the effects of an object, as of the last push, and the findings of Ineffective
// about it. Both are nil for an unknown object. It may be called from any goroutine.
func (p *Policies) Effects(key configstore.ConfigKey) ([]Effect, []Ineffective) {
	last := p.last.Load()
	if last == nil {
		return nil, nil
	}
	if WithoutEffect(key.Kind) != "" && p.store.Get(key.Kind, key.Name, key.Namespace) != nil {
		return nil, []Ineffective{ofKind(key)}
	}
	o, ok := last.state.Objects.Get(key)
	if !ok {
		return nil, nil
	}
	f := newFindings(last.state)
	var effects []Effect
	if list := f.object(o); list != nil {
		effects = list()
	}
	connected, _ := p.connected()
	return effects, append(f.found, last.state.moreFindings(o, last.sidecarsAmong(connected, p.Name()))...)
}
