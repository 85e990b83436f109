// SPDX-License-Identifier: Apache-2.0

package secrets

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"

	"github.com/pilotkit/pilotkit/internal/regularfile"
)

// store has the secrets that proxies have subscribed to and the permissions for them, as the host
// last returned them.
type store struct {
	opts        Options
	secrets     lookups[Name, *Secret] // the value is nil if there is no such secret
	permissions lookups[permission, bool]
	// poke has capacity one. It holds a token if changed has results.
	poke chan struct{}
	// readFile is regularfile.Read, except in tests.
	readFile func(path string, limit int) ([]byte, error)
}

// permission is the key of a call of Options.Allow.
type permission struct {
	proxyNamespace string
	credential     Name
}

func newStore(o Options) *store {
	s := &store{opts: o, poke: make(chan struct{}, 1), readFile: func(path string, limit int) ([]byte, error) {
		data, _, err := regularfile.Read(path, limit)
		return data, err
	}}
	changed := func() {
		select {
		case s.poke <- struct{}{}:
		default:
		}
	}
	s.secrets = lookups[Name, *Secret]{
		find: s.find, equal: (*Secret).equal, failed: s.notServed,
		changed: changed, timeout: o.Timeout,
		entries: make(map[Name]*lookup[*Secret]), pending: make(map[Name]struct{}),
	}
	s.permissions = lookups[permission, bool]{
		find:  func(p permission, _ bool) (bool, error) { return o.Allow(p.proxyNamespace, p.credential), nil },
		equal: func(a, b bool) bool { return a == b }, failed: s.notDecided,
		changed: changed, timeout: o.Timeout,
		entries: make(map[permission]*lookup[bool]), pending: make(map[permission]struct{}),
	}
	return s
}

func (s *store) notServed(n Name, err error) {
	s.opts.Logger.Error("secret is not served",
		append(s.opts.attrs(n.String(), err), slog.String("namespace", n.Namespace), slog.String("name", n.Name))...)
}

func (s *store) notDecided(p permission, err error) {
	s.opts.Logger.Error("permission for a secret is not decided", append(s.opts.attrs(p.credential.String(), err),
		slog.String("proxy_namespace", p.proxyNamespace),
		slog.String("namespace", p.credential.Namespace), slog.String("name", p.credential.Name))...)
}

// get returns the secret of a name, nil if there is none or if it is not known yet.
func (s *store) get(n Name) *Secret {
	source, _ := s.source(n)
	return s.secrets.get(source)
}

// allowed reports whether proxies of another namespace may have a credential.
func (s *store) allowed(namespace string, credential Name) bool {
	return s.opts.Allow != nil && s.permissions.get(permission{namespace, credential})
}

// changed returns the sorted names of the secrets whose content or permissions changed.
func (s *store) changed() []Name {
	var out []Name
	for n := range s.secrets.take() {
		out = append(out, n)
	}
	for p := range s.permissions.take() {
		out = append(out, p.credential)
	}
	slices.SortFunc(out, func(a, b Name) int { return strings.Compare(a.String(), b.String()) })
	return slices.Compact(out)
}

// restore adds secrets to the result of the next call of changed.
func (s *store) restore(names []Name) {
	s.secrets.mu.Lock()
	defer s.secrets.mu.Unlock()
	for _, n := range names {
		s.secrets.pending[n] = struct{}{}
	}
}

// retain drops the secrets whose names are not in use.
func (s *store) retain(used func(Name) bool) {
	s.secrets.retain(used)
	s.permissions.retain(func(p permission) bool { return used(p.credential) })
}

// source returns the files of a secret and the key of the lookup. Secrets of all namespaces share
// the key if the files are for every namespace. Without files the key is the name of the secret.
func (s *store) source(n Name) (Name, *Files) {
	for _, of := range []Name{n, {Name: n.Name}} {
		if files, ok := s.opts.Files[of]; ok {
			return of, &files
		}
	}
	return n, nil
}

// find reads a secret from its files, or calls the function; nil if there is none. A secret that
// proxies would reject is an error.
func (s *store) find(n Name, last *Secret) (*Secret, error) {
	next, err := s.read(n)
	if err == nil && next != nil && !next.equal(last) {
		err = next.check(s.opts.MaxBytes)
	}
	if err != nil {
		return nil, err
	}
	return next, nil
}

func (s *store) read(n Name) (*Secret, error) {
	if _, files := s.source(n); files != nil {
		return s.readFiles(*files)
	}
	if s.opts.Function == nil {
		return nil, nil
	}
	secret, err := s.opts.Function(n)
	if errors.Is(err, ErrNotFound) {
		return nil, nil
	}
	return secret, err
}

func (s *store) readFiles(f Files) (*Secret, error) {
	var out Secret
	var key []byte
	for _, part := range []struct {
		file string
		to   *[]byte
	}{{f.Certificate, &out.Certificate}, {f.Key, &key}, {f.Authorities, &out.Authorities}, {f.Revocations, &out.Revocations}} {
		if part.file == "" {
			continue
		}
		data, err := s.readFile(part.file, s.opts.MaxBytes)
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
