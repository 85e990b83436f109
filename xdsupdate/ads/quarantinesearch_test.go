// SPDX-License-Identifier: Apache-2.0

package ads_test

import (
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
)

// TestQuarantineOfMendedObject: if an object is mended before the client has rejected its bad state, nothing is left
// out.
func TestQuarantineOfMendedObject(t *testing.T) {
	eachShared(t, func(t *testing.T, typeURL string, delta bool) {
		t.Helper()
		s := newQuarantineScene(t, typeURL)
		s.set(map[string]string{"a": "1", "b": "1", "c": "1"})
		answer := make(chan struct{})
		picky := s.judge("picky", delta, func(value string) bool {
			if startsBad(value) {
				<-answer
			}
			return startsBad(value)
		}, "r")
		synctest.Wait()
		s.set(map[string]string{"a": "bad"})
		s.set(map[string]string{"a": "2", "b": "2"})
		close(answer)
		synctest.Wait()
		check(t, "state", picky.state("r"), map[string]string{"a": "2", "b": "2", "c": "1"})
		check(t, "left out", s.leftOut("picky"), []string{})
	})
}

// TestQuarantineOfRestlessHost: an object that is left out, and changes often, is left out more deeply if its new state
// has to be.
func TestQuarantineOfRestlessHost(t *testing.T) {
	eachShared(t, func(t *testing.T, typeURL string, delta bool) {
		t.Helper()
		s := newQuarantineScene(t, typeURL)
		s.set(map[string]string{"a": "1", "b": "1", "c": "1"})
		picky := s.judge("picky", delta, startsBad, "r")
		synctest.Wait()
		for i := range 8 {
			s.step(picky, "bad", map[string]string{"a": fmt.Sprint("bad", i)}, map[string]string{"a": "failing", "b": "1", "c": "1"}, "r a")
		}
		s.step(picky, "host", map[string]string{"a": "bad-host"}, map[string]string{"b": "1", "c": "1"}, "r a")
		s.step(picky, "neighbour", map[string]string{"b": "2"}, map[string]string{"b": "2", "c": "1"}, "r a")
	})
}

// TestQuarantineBesideAnother: an object that is left out entirely stays so during a search for another one, also if a
// third one changes meanwhile, so that no valid object is found to be at fault.
func TestQuarantineBesideAnother(t *testing.T) {
	eachShared(t, func(t *testing.T, typeURL string, delta bool) {
		t.Helper()
		s := newQuarantineScene(t, typeURL)
		first, second, want := map[string]string{"third": "1", "z": "1"}, map[string]string{"o19": "bad"}, map[string]string{"third": "2", "o19": "failing"}
		for i := range 19 {
			object := fmt.Sprintf("o%02d", i)
			first[object], second[object], want[object] = "1", "2", "2"
		}
		s.set(first)
		trial, searching := make(chan struct{}), atomic.Bool{}
		picky := s.judge("picky", delta, func(value string) bool {
			if value == "failing" && searching.Load() {
				<-trial
			}
			return startsBad(value)
		}, "r")
		synctest.Wait()
		s.set(map[string]string{"z": "bad-host"})
		searching.Store(true)
		s.set(second)
		s.set(map[string]string{"third": "2"})
		close(trial)
		synctest.Wait()
		check(t, "state", picky.state("r"), want)
		check(t, "left out", s.leftOut("picky"), []string{"r o19", "r z"})
	})
}
