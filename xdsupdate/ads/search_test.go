// SPDX-License-Identifier: Apache-2.0

package ads_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/pilotkit/pilotkit/xdsupdate/ads"
	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
	"github.com/pilotkit/pilotkit/xdsupdate/xdstest"
)

// TestChangesDuringSearch: objects that change, come and go while the server searches for rejected
// ones take part in the search.
func TestChangesDuringSearch(t *testing.T) {
	for _, changes := range []map[string]string{
		{"z": "bad"}, {"z": "1"}, {"a": "2"}, {"b": "bad2"}, {"b": "3"}, {"b": ""}, {"a": "", "z": "bad"},
	} {
		for at := 2; at <= 7; at++ {
			eachShared(t, func(t *testing.T, typeURL string, delta bool) {
				t.Helper()
				s := newQuarantineScene(t, typeURL)
				values := make(map[string]string)
				for _, object := range []string{"a", "b", "c", "d", "e", "f", "g", "h"} {
					values[object] = "1"
				}
				values["b"] = "bad"
				s.provider.set("r", values)
				s.flush()
				picky := newJudge(startsBad)
				responses := 0
				picky.Client = s.client(xdstest.ClientOptions{Delta: delta, Node: node("picky", "shop"), Answer: func(r xdstest.Response) error {
					if responses++; responses == at {
						s.provider.set("r", changes)
						s.flush()
					}
					return picky.answer(r)
				}})
				if typeURL == envoy.ListenerType {
					s.subscribe(picky.Client, typeURL)
				} else {
					s.subscribe(picky.Client, typeURL, "r")
				}
				synctest.Wait()
				leftOut := []string{}
				want := make(map[string]string)
				for _, object := range []string{"a", "b", "c", "d", "e", "f", "g", "h", "z"} {
					value, ok := s.provider.objects["r"][object]
					if ok && startsBad(value) {
						leftOut, value = append(leftOut, "r "+object), "failing"
					}
					if ok {
						want[object] = value
					}
				}
				check(t, fmt.Sprintf("%v at response %d", changes, at), picky.state("r"), want)
				check(t, fmt.Sprintf("%v at response %d: left out", changes, at), s.leftOut("picky"), leftOut)
			})
		}
	}
}

// TestTrialThatIsKnown: a trial that equals the state that the client has just answered is not
// sent, and has the same answer.
func TestTrialThatIsKnown(t *testing.T) {
	eachShared(t, func(t *testing.T, typeURL string, delta bool) {
		t.Helper()
		s := newQuarantineScene(t, typeURL)
		// The first objects are the same whether or not they are left out.
		s.provider.set("r", map[string]string{"a": "failing", "b": "failing", "c": "failing", "d": "bad", "e": "1"})
		s.flush()
		picky := s.judge("picky", delta, startsBad, "r")
		synctest.Wait()
		check(t, "state", picky.state("r"), map[string]string{"a": "failing", "b": "failing", "c": "failing", "d": "failing", "e": "1"})
		check(t, "left out", s.leftOut("picky"), []string{"r d"})
		s.provider.set("r", map[string]string{"a": "bad", "d": "failing"})
		s.flush()
		synctest.Wait()
		check(t, "state", picky.state("r"), map[string]string{"a": "failing", "b": "failing", "c": "failing", "d": "failing", "e": "1"})
		check(t, "left out", s.leftOut("picky"), []string{"r a"})
	})
}

// TestQuarantineIsNotTriedByTime: an object that is left out waits for its own change.
func TestQuarantineIsNotTriedByTime(t *testing.T) {
	eachShared(t, func(t *testing.T, typeURL string, delta bool) {
		t.Helper()
		s := newQuarantineScene(t, typeURL)
		s.provider.set("r", map[string]string{"a": "1", "b": "bad"})
		s.provider.set("q", map[string]string{"a": "bad", "b": "bad"})
		s.provider.set("p", map[string]string{"a": "1"})
		s.flush()
		refused := 0
		picky := s.judge("picky", delta, func(value string) bool {
			if startsBad(value) {
				refused++
			}
			return startsBad(value)
		}, "p", "q", "r")
		synctest.Wait()
		check(t, "left out", s.leftOut("picky"), []string{"q a", "q b", "r b"})
		answers, before := picky.count(), refused
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		if picky.count() != answers || refused != before {
			t.Errorf("%d responses later, %d values refused", picky.count()-answers, refused-before)
		}
	})
}

// TestTrialIsAwaited: a client that takes its time for a trial is not sent more for that.
func TestTrialIsAwaited(t *testing.T) {
	eachShared(t, func(t *testing.T, typeURL string, delta bool) {
		t.Helper()
		s := newQuarantineScene(t, typeURL)
		s.provider.set("r", map[string]string{"a": "1", "b": "bad"})
		s.flush()
		count := func(name string, pause time.Duration) int {
			c := s.client(xdstest.ClientOptions{Delta: delta, Node: node(name, "shop"), Manual: true})
			if typeURL == envoy.ListenerType {
				s.subscribe(c, typeURL)
			} else {
				s.subscribe(c, typeURL, "r")
			}
			answers := 0
			for synctest.Wait(); answers < len(c.Responses()); synctest.Wait() {
				time.Sleep(pause)
				r := c.Responses()[answers]
				m, err := r.Resources[0].Message()
				if err == nil && valuesOf(m)["b"] == "bad" {
					err = c.Nack(r, "bad value")
				} else if err == nil {
					err = c.Ack(r)
				}
				if err != nil {
					t.Fatal(err)
				}
				answers++
			}
			return answers
		}
		check(t, "responses to a slow client", count("slow", 5*time.Second), count("quick", 0))
	})
}

// watchedProvider calls a function while resources are made without something.
type watchedProvider struct {
	*sharedProvider
	during func()
}

type watchedLayer struct {
	ads.Provided
	during func()
}

func (p *watchedProvider) Provide(push *ads.PushContext) (ads.Provided, ads.Changes) {
	layer, changes := p.sharedProvider.Provide(push)
	return watchedLayer{layer, func() { p.during() }}, changes
}

func (l watchedLayer) Lookup(v ads.View, typeURL, name string) ads.Answer {
	a := l.Provided.Lookup(v, typeURL, name)
	if without := a.Without; without != nil {
		a.Without = func(out func(ads.Contribution) ads.Omission) (proto.Message, []ads.Contribution, error) {
			l.during()
			return without(out)
		}
	}
	return a
}

// TestPendingDuringSearch: a client is pending while the server builds its next trial, although it
// has answered all responses.
func TestPendingDuringSearch(t *testing.T) {
	for protocol, delta := range protocols() {
		t.Run(protocol, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := &watchedProvider{sharedProvider: &sharedProvider{typeURL: envoy.RouteType, objects: make(map[string]map[string]string)}}
				s := &quarantineScene{fixture: serve(t, ads.Options{Providers: []ads.Provider{p}}), provider: p.sharedProvider}
				trials := 0
				p.during = func() {
					trials++
					for _, proxy := range s.Proxies() {
						if status := proxy.Types[envoy.RouteType]; !status.Pending {
							t.Errorf("trial %d: nothing is pending: %+v", trials, status)
						}
					}
				}
				s.provider.set("r", map[string]string{"a": "1", "b": "1", "c": "bad", "d": "1"})
				s.flush()
				picky := s.judge("picky", delta, startsBad, "r")
				synctest.Wait()
				check(t, "state", picky.state("r"), map[string]string{"a": "1", "b": "1", "c": "failing", "d": "1"})
				if trials < 2 {
					t.Errorf("%d trials", trials)
				}
			})
		})
	}
}
