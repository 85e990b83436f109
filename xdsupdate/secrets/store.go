// SPDX-License-Identifier: Apache-2.0

package secrets

import (
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
)

// store has the secrets that proxies have asked for, as they were read last.
type store struct {
	opts Options

	mu      sync.Mutex
	entries map[Name]*entry
}

// entry is a secret that is in use. A mutex of its own makes one read at a time.
type entry struct {
	reading sync.Mutex
	read    bool
	secret  *Secret // nil: there is none; the last good one, if reading failed since
	failure string  // the last one that was logged
}

func newStore(o Options) *store { return &store{opts: o, entries: make(map[Name]*entry)} }

// get returns the secret of a name; nil: there is none. It is read once.
func (s *store) get(n Name) *Secret {
	s.mu.Lock()
	e := s.entries[n]
	if e == nil {
		e = &entry{}
		s.entries[n] = e
	}
	s.mu.Unlock()
	e.reading.Lock()
	defer e.reading.Unlock()
	if !e.read {
		s.refresh(n, e)
	}
	return e.secret
}

// refreshAll reads all secrets that are in use again and returns those that have
// changed, sorted.
func (s *store) refreshAll() []Name {
	s.mu.Lock()
	entries := maps.Clone(s.entries)
	s.mu.Unlock()
	var changed []Name
	for n, e := range entries {
		e.reading.Lock()
		// What was not read yet is what somebody is just about to read.
		if e.read && s.refresh(n, e) {
			changed = append(changed, n)
		}
		e.reading.Unlock()
	}
	slices.SortFunc(changed, func(a, b Name) int { return strings.Compare(a.String(), b.String()) })
	return changed
}

// retain forgets the secrets that are no longer in use.
func (s *store) retain(used func(Name) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for n := range s.entries {
		if !used(n) {
			delete(s.entries, n)
		}
	}
}

// refresh reads a secret and reports whether it has changed. What cannot be read or
// served leaves the former one in place; that is logged when it begins.
func (s *store) refresh(n Name, e *entry) bool {
	next, err := s.read(n)
	e.read = true
	if err == nil && next != nil {
		err = next.check()
	}
	if err != nil {
		if text := err.Error(); text != e.failure {
			e.failure = text
			s.opts.Logger.Error("secret is not served",
				slog.String("namespace", n.Namespace), slog.String("name", n.Name), slog.Any("error", err))
		}
		return false
	}
	e.failure = ""
	changed := !e.secret.equal(next)
	e.secret = next
	return changed
}

// read returns the secret of a name from its files or else from the function; nil:
// there is none.
func (s *store) read(n Name) (*Secret, error) {
	files, ok := s.opts.Files[n]
	if !ok {
		files, ok = s.opts.Files[Name{Name: n.Name}]
	}
	if ok {
		return files.read()
	}
	if s.opts.Function == nil {
		return nil, nil
	}
	secret, err := s.ask(n)
	if errors.Is(err, ErrNotFound) {
		return nil, nil
	}
	return secret, err
}

// ask calls the function. What it panics with may be anything, so it is not shown.
func (s *store) ask(n Name) (secret *Secret, err error) {
	defer func() {
		if recover() != nil {
			err = errPanic
		}
	}()
	return s.opts.Function(n)
}

var errPanic = errors.New("the function panicked")

func (f Files) read() (*Secret, error) {
	var out Secret
	var key []byte
	for _, part := range []struct {
		file string
		to   *[]byte
	}{{f.Certificate, &out.Certificate}, {f.Key, &key}, {f.Authorities, &out.Authorities}} {
		if part.file == "" {
			continue
		}
		data, err := os.ReadFile(part.file)
		if err != nil {
			return nil, err
		}
		if len(data) == 0 {
			return nil, fmt.Errorf("%s is empty", part.file)
		}
		*part.to = data
	}
	out.Key = key
	return &out, nil
}
