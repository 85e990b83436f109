// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/pilotkit/pilotkit/configstore"
)

// scope is the part of a kind that one reflector reads: one namespace, or all namespaces.
type scope struct {
	kind *kind
	// namespace is empty for all namespaces.
	namespace string

	// The fields below are protected by the cache's mu.

	// served is the index in the kind's versions of the requested version, or absent.
	served int
	// resolved is set once the initial objects are published, or once the kind is known to be
	// absent or may be missing because it is optional. It is never reset.
	resolved bool
	// err is the reason why the server does not return the objects.
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

// report records the outcome of an attempt to list or watch.
func (s *scope) report(ctx context.Context, err error) {
	c := s.kind.cache
	unserved := false // the server serves none of the versions
	c.mu.Lock()
	switch {
	case err == nil:
	case apierrors.IsForbidden(err):
		// Permission may never be granted, and the other kinds work.
		s.resolved = s.resolved || s.kind.optional
	case c.crdsForbidden && isNoSuchPath(err):
		// Without CRDs the served versions can only be found by trying.
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

// shows reports whether the scope has an object or a verdict.
func (s *scope) shows() bool {
	k := s.kind
	if len(k.cache.published.List(k.gvk(), s.namespace)) > 0 {
		return true
	}
	k.cache.mu.Lock()
	defer k.cache.mu.Unlock()
	return len(k.verdicts) > 0
}

// note sets the scope's error for Errors; nil clears it.
func (s *scope) note(err error) {
	c := s.kind.cache
	c.mu.Lock()
	noted := s.err.replace(err)
	c.mu.Unlock()
	if noted {
		c.logKind(s.key(), err)
	}
}

// key returns the key of the scope's errors.
func (s *scope) key() configstore.ConfigKey {
	return configstore.ConfigKey{Kind: s.kind.gvk(), Namespace: s.namespace}
}

// resolve records that all initial objects are in the cache.
func (s *scope) resolve() {
	s.kind.cache.mu.Lock()
	defer s.kind.cache.mu.Unlock()
	s.resolved = true
}

// follow lists and watches the objects until ctx ends or a relist is requested.
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
