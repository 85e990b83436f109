// SPDX-License-Identifier: Apache-2.0

package storetest

import (
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/pilotkit/pilotkit/configstore"
)

func concurrencyChecks() []check {
	return []check{
		{Name: "Concurrent/Create", Promise: "of n concurrent Creates of a key exactly one succeeds", Source: promisedAtomic, Skip: writes, Run: checkConcurrentCreate},
		{Name: "Concurrent/Update", Promise: "of n concurrent Updates with the same revision exactly one succeeds", Source: promisedAtomic, Skip: writes, Run: checkConcurrentUpdate},
		{Name: "Concurrent/Delete", Promise: "of n concurrent Deletes exactly one succeeds", Source: promisedAtomic, Skip: writes, Run: checkConcurrentDelete},
		{Name: "Concurrent/LostUpdate", Promise: "no update is lost when every writer carries the revision that it read", Source: promisedAtomic, Skip: writes, Run: checkLostUpdate},
		{Name: "Concurrent/Readers", Promise: "readers see whole objects and sorted lists while others write", Source: "configstore, Concurrency", Run: checkConcurrentReaders},
	}
}

const (
	racers = 8
	rounds = 50 // of which s.many are run
)

// race starts f on several goroutines at the same moment and joins them.
func race(n int, f func(i int)) {
	var start, done sync.WaitGroup
	start.Add(1)
	for i := range n {
		done.Go(func() {
			start.Wait()
			f(i)
		})
	}
	start.Done()
	done.Wait()
}

// expectOne lets several goroutines do the same and demands that one succeeds
// and all others fail as documented.
func (s *suite) expectOne(verb string, try func(i int) error, loser ...error) {
	s.Helper()
	results := make([]error, racers)
	race(racers, func(i int) { results[i] = try(i) })
	won := 0
	for _, err := range results {
		switch {
		case err == nil:
			won++
		case !slices.ContainsFunc(loser, func(e error) bool { return errors.Is(err, e) }):
			s.Broken("a %s that came too late = %v, want %v", verb, err, loser)
		}
	}
	if won != 1 {
		s.Stop("%d of %d concurrent %ss succeeded, want 1", won, racers, verb)
	}
}

func checkConcurrentCreate(s *suite) {
	for round := range s.many(rounds) {
		name := fmt.Sprintf("w%d", round)
		s.expectOne("Create", func(i int) error {
			_, err := s.writer.Create(widget("default", name, strconv.Itoa(i)))
			return err
		}, configstore.ErrAlreadyExists)
	}
	s.catchUp()
	if got := len(s.store.List(widgetKind(), "default")); got != s.many(rounds) {
		s.Broken("List has %d objects, want %d", got, s.many(rounds))
	}
}

func checkConcurrentUpdate(s *suite) {
	revision := s.create(widget("default", "foo", ""))
	for round := range s.many(rounds) {
		revisions := make([]string, racers)
		s.expectOne("Update", func(i int) error {
			c := widget("default", "foo", fmt.Sprintf("%d of %d", i, round))
			c.ResourceVersion = revision
			var err error
			revisions[i], err = s.writer.Update(c)
			return err
		}, configstore.ErrConflict)
		s.catchUp()
		// The others returned no revision.
		revision = strings.Join(revisions, "")
		if got := s.get(widget("default", "foo", "")).ResourceVersion; got != revision {
			s.Stop("the Update that succeeded returned the revision %q, Get has %q", revision, got)
		}
	}
}

func checkConcurrentDelete(s *suite) {
	for range s.many(rounds) {
		revision := s.create(widget("default", "foo", ""))
		s.expectOne("Delete", func(int) error {
			return s.writer.Delete(widgetKind(), "foo", "default", &revision)
		}, configstore.ErrNotFound, configstore.ErrConflict)
		s.catchUp()
	}
}

func checkLostUpdate(s *suite) {
	s.create(widget("default", "counter", "0"))
	increments := s.many(20)
	race(racers, func(int) {
		for done := 0; done < increments; {
			read := s.read(widget("default", "counter", ""))
			n, err := strconv.Atoi(valueOf(read))
			if err != nil {
				s.Broken("the counter is %s", describe(read))
				return
			}
			c := *read
			c.Spec = content(strconv.Itoa(n + 1))
			// The others get their chance to be faster.
			runtime.Gosched()
			switch _, err := s.writer.Update(c); {
			case err == nil:
				done++
			case !errors.Is(err, configstore.ErrConflict):
				s.Broken("Update = %v, want success or ErrConflict", err)
				return
			}
			s.catchUp()
		}
	})
	s.catchUp()
	s.expectValue(widget("default", "counter", ""), strconv.Itoa(racers*increments))
}

func checkConcurrentReaders(s *suite) {
	const objects, reads = 20, 100
	stop := make(chan struct{})
	// Busy readers would starve the goroutines that a store depends on, such as the receiver of a
	// server's responses.
	begun := make(chan struct{}, 2)
	var readers sync.WaitGroup
	for range 2 {
		readers.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-stop:
					return
				case <-begun:
				}
				for n := range reads {
					s.expectWhole(fmt.Sprintf("w%02d", (i+n)%objects))
				}
			}
		})
	}
	race(4, func(i int) {
		for n := range s.many(100) {
			select {
			case begun <- struct{}{}:
			default:
			}
			c := widget("default", fmt.Sprintf("w%02d", (n*7+i)%objects), strconv.Itoa(n))
			c.Labels = map[string]string{"value": strconv.Itoa(n)}
			if _, err := s.writer.Create(c); err == nil {
				continue
			}
			if _, err := s.writer.Update(c); err == nil && n%3 == 0 {
				// Another writer may have been faster.
				_ = s.writer.Delete(widgetKind(), c.Name, c.Namespace, nil)
			}
		}
	})
	close(stop)
	readers.Wait()
}

// expectWhole demands that each readable object comes from a single write.
func (s *suite) expectWhole(name string) {
	list := s.store.List(widgetKind(), "default")
	if got := names(list); !slices.IsSorted(got) || len(slices.Compact(got)) != len(list) {
		s.Broken("List = %v while others write, want sorted and without duplicates", got)
	}
	for _, c := range append(slices.Clip(list), s.read(widget("default", name, ""))) {
		if c != nil && c.Labels["value"] != valueOf(c) {
			s.Broken("read %s with the label %q: a part of one write and a part of another", describe(c), c.Labels["value"])
		}
	}
}
