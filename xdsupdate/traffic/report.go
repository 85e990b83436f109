// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"cmp"
	"fmt"
	"iter"
	"log/slog"
	"slices"
	"strings"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/istio"
	"github.com/pilotkit/pilotkit/internal/excerpt"
	"github.com/pilotkit/pilotkit/xdsupdate/ads"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic/internal/objects"
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

// server is the part of the server that reports about its clients.
type server interface {
	Proxies() []ads.ProxyStatus
	Faults() (list []ads.Fault, changed <-chan struct{})
}

// connected returns the status of the connected proxies, and their faults. Both are nil if the updater is no
// server.
func (p *Policies) connected() ([]ads.ProxyStatus, []ads.Fault) {
	if p.server == nil {
		return nil, nil
	}
	faults, _ := p.server.Faults()
	return p.server.Proxies(), faults
}

// quarantined returns findings for the objects that are left out because clients reject them or
// resources cannot be built with them. There is one finding for each object, resource and reason,
// with the first affected client.
func quarantined(faults []ads.Fault) (out []Ineffective) {
	type cause struct {
		object              configstore.ConfigKey
		resource, why, text string
	}
	var causes []cause
	proxies := make(map[cause][]string)
	for _, f := range faults {
		if f.Object == (configstore.ConfigKey{}) {
			continue
		}
		c := cause{f.Object, f.Name, "which refuses it", f.Text}
		if f.Status == ads.FaultBuiltWithout {
			c.why = "as it cannot be made with it"
		}
		if proxies[c] == nil {
			causes = append(causes, c)
		}
		proxies[c] = append(proxies[c], f.Proxy)
	}
	for _, c := range causes {
		out = append(out, Ineffective{
			Kind: c.object.Kind, Namespace: c.object.Namespace, Name: c.object.Name,
			Reason: fmt.Sprintf("left out of %s for %s, %s: %s", c.resource, andMore(proxies[c][0], len(proxies[c])), c.why, c.text),
		})
	}
	return out
}

// andMore names the first of n proxies, and the number of others.
func andMore(first string, n int) string {
	if n > 1 {
		return fmt.Sprintf("%s and %d more", first, n-1)
	}
	return first
}

// Closed returns the findings of Ineffective about security policies that are closed because a
// part of them is not known, or because they cannot be read (configstore.Unread). It is fast enough
// for readiness probes. It may be called from any goroutine.
func (p *Policies) Closed() []Ineffective {
	last := p.last.Load()
	if last == nil {
		return nil
	}
	return last.state.closed(last.state.Objects.All())
}

// closed returns the findings about those of some objects that are closed policies.
func (st *state) closed(among iter.Seq2[configstore.ConfigKey, objects.Object]) []Ineffective {
	var f *findings
	for _, o := range among {
		if o == nil || len(o.Base().Unread) == 0 {
			continue
		}
		if f == nil { // most often there are none
			f = newFindings(st)
		}
		f.object(o)
	}
	if f == nil {
		return nil
	}
	return sortedIneffective(f.found)
}

// logClosed logs the findings about new and changed objects that are closed policies.
func (p *Policies) logClosed(st *state, changed iter.Seq2[configstore.ConfigKey, objects.Object]) {
	for _, found := range st.closed(changed) {
		if text := found.String(); p.logged.Allow(text, "closed") {
			p.logger.Warn("policy is closed", slog.String("finding", text))
		}
	}
}

// Ineffective is an accepted object, or a part of one, that does not have the effect that it
// describes, with the reason. Findings about the mesh configuration of Options have the kind
// MeshConfig.
type Ineffective struct {
	Kind            configstore.GroupVersionKind
	Namespace, Name string
	// Field is the part, such as "spec.subsets[1]". It is empty for the whole object.
	Field string
	// Reason is a phrase, such as "no service has this host name".
	Reason string
}

// String returns "Kind namespace/name: field: reason".
func (e Ineffective) String() string {
	out := excerpt.Object(e.Kind.Kind, e.Namespace, e.Name) + ": "
	if e.Field != "" {
		out += e.Field + ": "
	}
	return out + e.Reason
}

// report contains the findings about all policies of a state, sorted. The findings of one object are
// in the order of its fields. It is immutable.
type report struct {
	found []Ineffective
	// others are the objects that moreFindings is about.
	others []objects.Object
}

func (st *state) newReport() report {
	f := newFindings(st)
	f.meshConfig()
	var others []objects.Object
	for _, o := range st.Objects.All() {
		f.object(o)
		if _, tokens := o.(*objects.RequestAuthentication); tokens || st.inboundPolicy(o) != nil {
			others = append(others, o)
		}
	}
	return report{sortedIneffective(f.found), others}
}

// moreFindings returns the findings about an object that do not depend on the state alone:
// about connected sidecars, and about keys that cannot be fetched.
func (st *state) moreFindings(o objects.Object, sidecars []*connectedSidecar) []Ineffective {
	f := newFindings(st)
	f.about(o)
	f.unfetched(o)
	f.unenforced(o, sidecars)
	return f.found
}

func sortedIneffective(list []Ineffective) []Ineffective {
	slices.SortStableFunc(list, func(a, b Ineffective) int {
		return cmp.Or(
			strings.Compare(a.Kind.Kind, b.Kind.Kind), strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name))
	})
	return list
}

// Effect is one effect of an object. Both fields are phrases.
type Effect struct {
	// Clients are the affected clients, such as "sidecars and gRPC clients of namespace shop".
	Clients string `json:"clients"`
	// On is the affected traffic or resource, such as "requests to cart.example.com".
	On string `json:"on"`
}

// String returns "clients: on".
func (e Effect) String() string { return e.Clients + ": " + e.On }

// WithoutEffect returns the reason, as a phrase, why objects of one of Istio's kinds have no effect
// for any client. It returns "" if the kind has an effect, here or in a registry such as
// serviceentry's, and for kinds that are not Istio's.
func WithoutEffect(kind configstore.GroupVersionKind) string {
	switch kind {
	case istio.EnvoyFilter, istio.Telemetry, istio.WasmPlugin, istio.TrafficExtension, istio.ProxyConfig, istio.WorkloadGroup:
		return "nothing is made of this kind: only providers of a host act on it"
	default:
		return ""
	}
}

// withoutEffect returns the objects in a store whose kinds have no effect.
func withoutEffect(configs configstore.ConfigStore) (out []Ineffective) {
	for _, s := range configs.Schemas().All() {
		if WithoutEffect(s.GroupVersionKind) == "" {
			continue
		}
		for _, c := range configs.List(s.GroupVersionKind, configstore.NamespaceAll) {
			out = append(out, ofKind(c.Key()))
		}
	}
	return out
}

// ofKind returns the finding for an object whose kind has no effect.
func ofKind(key configstore.ConfigKey) Ineffective {
	return Ineffective{Kind: key.Kind, Namespace: key.Namespace, Name: key.Name, Reason: WithoutEffect(key.Kind)}
}
