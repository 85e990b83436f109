// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/pilotkit/pilotkit/configstore"
)

// scope is what one reflector reads of a kind: one namespace, or all.
type scope struct {
	kind *kind
	// namespace is empty for all.
	namespace string

	// What follows is protected by the cache's mu.

	// served is the index in the kind's versions of the one that the server is asked
	// for, or absent.
	served int
	// resolved is set when the objects that existed at first are published, or it is known
	// that there are none, or they may be refused. It stays.
	resolved bool
	// err is why the server does not give the objects.
	err failure
}

// scopesOf returns one scope for each namespace of Options.OnlyNamespaces.
func scopesOf(k *kind) []*scope {
	if k.schema.ClusterScoped || len(k.cache.opts.OnlyNamespaces) == 0 {
		return []*scope{{kind: k}}
	}
	var scopes []*scope
	for _, namespace := range k.cache.opts.OnlyNamespaces {
		scopes = append(scopes, &scope{kind: k, namespace: namespace})
	}
	return scopes
}

func (s *scope) version() int {
	s.kind.cache.mu.Lock()
	defer s.kind.cache.mu.Unlock()
	return max(s.served, 0)
}

// report takes the outcome of an attempt to list or watch.
func (s *scope) report(ctx context.Context, err error) {
	c := s.kind.cache
	unserved := false // all versions were asked for, and none is served
	c.mu.Lock()
	switch {
	case err == nil:
	case apierrors.IsForbidden(err):
		// It may take forever until it is allowed, and the other kinds work.
		s.resolved = s.resolved || s.kind.optional
	case c.crdsForbidden && isNoSuchPath(err):
		// Nobody else says which versions there are.
		s.served++
		if s.served == len(s.kind.versions) {
			s.served, s.resolved, unserved = 0, s.resolved || s.kind.optional, true
		}
	}
	resolved := s.resolved
	c.mu.Unlock()
	s.note(err)
	if unserved && (!resolved || s.shows()) && s.kind.isAbsent(ctx) {
		(&publisher{scope: s}).clear()
		s.resolve()
	}
}

// shows reports whether there is an object, or something to say about one.
func (s *scope) shows() bool {
	k := s.kind
	if len(k.cache.published.List(k.gvk(), s.namespace)) > 0 {
		return true
	}
	k.cache.mu.Lock()
	defer k.cache.mu.Unlock()
	return len(k.verdicts) > 0
}

// note makes an error, or nil, what Errors says of the scope.
func (s *scope) note(err error) {
	c := s.kind.cache
	c.mu.Lock()
	noted := s.err.replace(err)
	c.mu.Unlock()
	if noted {
		c.logKind(s.key(), err)
	}
}

// key is what errors of the scope are about.
func (s *scope) key() configstore.ConfigKey {
	return configstore.ConfigKey{Kind: s.kind.gvk(), Namespace: s.namespace}
}

// resolve notes that the cache has all objects that existed at first.
func (s *scope) resolve() {
	s.kind.cache.mu.Lock()
	defer s.kind.cache.mu.Unlock()
	s.resolved = true
}

// follow follows the objects until ctx ends or they are to be listed again.
func (s *scope) follow(ctx context.Context) {
	k := s.kind
	k.cache.mu.Lock()
	restart := k.restart
	k.cache.mu.Unlock()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		select {
		case <-restart:
			cancel()
		case <-ctx.Done():
		}
	}()
	from := &source{
		client: k.cache.client,
		path:   func() []string { return k.path(s.version(), s.namespace) },
		list:   func() runtime.Object { return &objectList{} },
		report: func(err error) { s.report(ctx, err) },
	}
	k.cache.reflect(ctx, from, &object{}, &publisher{scope: s})
	cancel()
	<-ended
}
