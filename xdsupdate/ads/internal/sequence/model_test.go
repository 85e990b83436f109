// SPDX-License-Identifier: Apache-2.0

package sequence

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/pilotkit/pilotkit/internal/test/histories"
	"github.com/pilotkit/pilotkit/xdsupdate/ads/internal/acks"
	"github.com/pilotkit/pilotkit/xdsupdate/ads/internal/difference"
	"github.com/pilotkit/pilotkit/xdsupdate/ads/internal/resource"
	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
)

// TestModel follows clients through random histories, in which everything changes, and clients
// answer at random times. Now and then it is not known what a client is to have of a type. No
// time-out ends a phase. A client is never sent a listener or routes that lead to a cluster which
// it cannot use; no cluster is removed while a resource of the client leads to it; routes never
// come before stricter listeners in front of them, nor after listeners that are less strict; routes
// never give up domains before the listeners that take them over; and in the end the client has
// everything.
func TestModel(t *testing.T) {
	for name, delta := range map[string]bool{"SotW": false, "delta": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, seed := range histories.Seeds(t, fullModel) {
				m := newModel(seed, delta)
				if m.run(); m.failed != "" {
					t.Fatalf("seed %d: %s", seed, m.failed)
				}
			}
		})
	}
}

const (
	fullModel      = 50_000
	modelClusters  = 5
	modelRoutes    = 3
	modelListeners = 3
)

// model is a phased client, and its target.
type model struct {
	*scene
	random *rand.Rand
	failed string
	// states are the states of clusters that exist, denied the strictness of listeners, level the strictness that
	// routes need.
	states        [modelClusters]int
	denied, level [modelRoutes]int
	state         int
	pairs         [modelRoutes][]string
	// has are the resources that the client has accepted.
	has map[string]map[string]*resource.State
}

func newModel(seed uint64, delta bool) *model {
	m := &model{scene: newScene(delta, false), random: rand.New(rand.NewPCG(seed, 22)), has: make(map[string]map[string]*resource.State)}
	for _, t := range m.Types {
		m.has[t.URL] = make(map[string]*resource.State)
	}
	return m
}

func (m *model) fail(format string, args ...any) {
	if m.failed == "" {
		m.failed = fmt.Sprintf(format, args...)
	}
}

func (m *model) run() {
	m.change()
	for range 20 {
		if m.random.IntN(3) == 0 {
			m.change()
		}
		m.answerOne()
		m.pass(time.Duration(m.random.IntN(5)) * time.Millisecond)
		t := m.Types[m.random.IntN(len(m.Types))].target()
		t.unknown = !t.unknown && m.random.IntN(4) == 0
		m.follow()
	}
	for _, t := range m.Types {
		t.target().unknown = false
	}
	for range 500 {
		if !m.answerOne() {
			m.pass(switchTime + 1)
			if m.follow(); len(m.unanswered()) == 0 {
				break
			}
		}
		m.follow()
	}
	for _, t := range m.Types {
		if !isEqual(t.Has, t.Snapshot()) || !m.Memory.complete(t) {
			m.fail("in the end %s is not what it is to be", short[t.URL])
		}
		for r := range t.Has.List.All() {
			if r.IsPresent() && !r.Same(m.has[t.URL][r.Name]) {
				m.fail("in the end the client does not have %s", r.Name)
			}
		}
	}
}

// change changes some resources, so that all that is referenced exists.
func (m *model) change() {
	var list []*resource.State
	for i := range m.states {
		if m.random.IntN(3) > 0 && m.state > 0 {
			continue
		}
		name := fmt.Sprint("c", i)
		if m.states[i] = 0; i == 0 || m.random.IntN(2) == 0 {
			m.state++
			m.states[i] = m.state%7 + 1
			list = append(list, cluster(name, m.states[i]), assignment(name, m.states[i]))
			continue
		}
		list = append(list, noMore(envoy.ClusterType, name), resource.NewMarker(envoy.LoadAssignmentType, name, resource.Tombstone))
	}
	for i := range m.pairs {
		name := fmt.Sprint("r", i)
		if m.random.IntN(4) == 0 || len(m.pairs[i]) == 0 {
			m.denied[i] = m.random.IntN(4)
		}
		m.level[i] = min(m.level[i], m.denied[i])
		if m.random.IntN(3) == 0 || slices.ContainsFunc(m.pairs[i], func(pair string) bool { return !m.exists(pair) }) || len(m.pairs[i]) == 0 {
			m.pairs[i] = nil
			for _, domain := range []string{"x", "y"}[m.random.IntN(2):] {
				m.pairs[i] = append(m.pairs[i], fmt.Sprintf("%s c%d", domain, m.cluster()))
			}
			m.level[i] = m.random.IntN(m.denied[i] + 1)
		}
		list = append(list, leveled(name, m.level[i], m.pairs[i]))
	}
	for i := range modelListeners {
		list = append(list, listener(fmt.Sprint("l", i), m.denied[i], fmt.Sprint("r", i)))
	}
	m.want(list...)
	m.follow()
}

// leveled returns routes that need filters of a strictness.
func leveled(name string, level int, pairs []string) *resource.State {
	return route(name, append([]string{fmt.Sprintf("level%d c0", level)}, pairs...)...)
}

func (m *model) exists(pair string) bool { return m.states[pair[len(pair)-1]-'0'] > 0 }

func (m *model) cluster() int {
	for {
		if i := m.random.IntN(modelClusters); m.states[i] > 0 {
			return i
		}
	}
}

// follow carries out plans, and checks the responses.
func (m *model) follow() {
	for range 100 {
		result := Plan(&m.Client, m.now)
		if m.Memory = result.Memory; result.To == nil {
			return
		}
		had := result.To.Has
		m.Sent(result.Step, m.now)
		for _, r := range m.Queue {
			m.check(result.To, r.Content, had)
		}
		m.Queue = nil
	}
	m.fail("there is always one more step")
}

// check checks a response, before which the client was sent had.
func (m *model) check(t *Type, c *difference.Content, had *resource.Snapshot) {
	switch t {
	case m.Clusters:
		for name := range m.has[t.URL] {
			if slices.Contains(c.Removed, name) || c.Full && !c.After.Find(name).IsPresent() {
				m.checkGone(name)
			}
		}
	case m.Listeners, m.Routes:
		for _, r := range c.Listed {
			if had := m.has[t.URL][r.Name]; had == nil || !r.Same(had) {
				m.checkUsable(r)
			}
			if t == m.Routes {
				m.checkRoutes(r, had.Find(r.Name))
			} else {
				m.checkListener(r)
			}
		}
	}
}

func (m *model) checkUsable(r *resource.State) {
	for i, state := range m.states {
		name := fmt.Sprint("c", i)
		if state > 0 && r.References().Clusters.Has(hashOf(name)) && m.has[envoy.ClusterType][name] == nil {
			m.fail("%s leads to %s, which the client cannot use", r.Name, name)
		}
	}
}

func (m *model) checkGone(name string) {
	for _, t := range []*Type{m.Listeners, m.Routes} {
		for _, r := range m.has[t.URL] {
			if r.References().Clusters.Has(hashOf(name)) {
				m.fail("%s goes, while %s leads to it", name, r.Name)
			}
		}
	}
}

func (m *model) checkRoutes(r, had *resource.State) {
	if had == nil {
		return // listeners may wait for its first state
	}
	i := r.Name[1] - '0'
	l := fmt.Sprint("l", i)
	to, used := m.Listeners.target().snapshot.Find(l), m.has[envoy.ListenerType][l]
	if used != nil && deniedBy(used, i) < levelOf(r) {
		m.fail("%s needs filters of strictness %d, and the listener has %d", r.Name, levelOf(r), deniedBy(used, i))
	}
	if !had.References().Domains.Exceed(r.References().Domains) {
		return
	}
	if used == nil || deniedBy(to, i) < deniedBy(used, i) {
		return // they come before a listener that is new, or less strict
	}
	for name, used := range m.has[envoy.ListenerType] {
		if !used.Same(m.Listeners.target().snapshot.Find(name)) {
			m.fail("%s gives up a domain, while %s changes", r.Name, name)
		}
	}
}

func (m *model) checkListener(r *resource.State) {
	i := r.Name[1] - '0'
	if behind := m.Routes.Has.Find(fmt.Sprint("r", i)); behind != nil && levelOf(behind) > deniedBy(r, i) {
		m.fail("%s has filters of strictness %d, and routes behind it need %d", r.Name, deniedBy(r, i), levelOf(behind))
	}
}

// levelOf returns the strictness that routes need.
func levelOf(r *resource.State) int {
	for level, name := range [...]string{"level0", "level1", "level2", "level3"} {
		if r.References().Domains.Has(hashOf(name)) {
			return level
		}
	}
	return -1
}

// strictness is that of listeners, by their hashes.
var strictness = func() (out [modelListeners]map[uint64]int) {
	for i := range out {
		out[i] = make(map[uint64]int)
		for denied := range 4 {
			out[i][listener(fmt.Sprint("l", i), denied, fmt.Sprint("r", i)).Hash] = denied
		}
	}
	return out
}()

// deniedBy returns the strictness of the listener of a number, or -1.
func deniedBy(r *resource.State, i byte) int {
	if r == nil {
		return -1
	}
	return strictness[i][r.Hash]
}

func (m *model) unanswered() (out []*Type) {
	for _, t := range m.Types {
		if len(t.Acks.Unanswered) > 0 {
			out = append(out, t)
		}
	}
	return out
}

// answerOne answers the first response of some type, and reports whether there was one.
func (m *model) answerOne() bool {
	all := m.unanswered()
	if len(all) == 0 {
		return false
	}
	t := all[m.random.IntN(len(all))]
	var o acks.Response
	t.Acks.Answer(t.Acks.Unanswered[0].Nonce, false, &o)
	for _, r := range o.Listed {
		m.has[t.URL][r.Name] = r
	}
	for name := range m.has[t.URL] {
		if len(t.Acks.Unanswered) == 0 && !t.Has.Find(name).IsPresent() {
			delete(m.has[t.URL], name)
		}
	}
	m.Answered(t, &o, m.now.Time)
	t.Open = !t.Acks.Full()
	return true
}
