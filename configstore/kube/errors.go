// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"cmp"
	"errors"
	"log/slog"
	"net"
	"net/url"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/pilotkit/pilotkit/configstore"
)

// Error is one thing that keeps a part of the API server's content from being in
// the cache, or, as one of Warnings, one thing that is questionable about an object
// that is in it.
type Error struct {
	// Object is what cannot be shown, or is questionable. Its name is empty if the kind as a whole is
	// meant, or its objects of one of Options.OnlyNamespaces: they cannot be listed or
	// watched, and are those of Since. If
	// its kind is CustomResourceDefinition, it cannot be seen which kinds there are.
	Object configstore.ConfigKey
	// ResourceVersion is the version of the object that could not be decoded, or is
	// invalid: the cache has an older one or none. That of a warning is the one in which
	// it appeared. Empty for a kind.
	ResourceVersion string
	// Generation is that of the same version.
	Generation int64
	// Since is when the error appeared.
	Since time.Time
	// Err says what is wrong. It is never nil. That of an object matches
	// manifest.ErrMalformed or configstore.ErrInvalid; that of a kind is the API
	// server's, as in k8s.io/apimachinery/pkg/api/errors, or that of the connection. A
	// warning is the schema's "field: message"; that of a status matches
	// manifest.ErrMalformed.
	Err error
}

// Error returns "Kind namespace/name: reason", "Kind in namespace: reason", or
// "Kind: reason".
func (e *Error) Error() string {
	switch {
	case e.Object.Name == "" && e.Object.Namespace == "":
		return e.Object.Kind.Kind + ": " + e.Err.Error()
	case e.Object.Name == "":
		return e.Object.Kind.Kind + " in " + e.Object.Namespace + ": " + e.Err.Error()
	}
	return e.Object.Object() + ": " + e.Err.Error()
}

// Unwrap returns Err.
func (e *Error) Unwrap() error { return e.Err }

// failure is an error that may last.
type failure struct {
	err   error
	since time.Time
	// before is the error before err, if that one lasted, too.
	before error
}

// replace puts an error, or nil, in the place of the one before, and reports
// whether it is an error that says something new. Attempts to list and to watch alternate,
// and their errors may: of two that do, each is new once. What does not say why there is no
// answer replaces nothing.
func (f *failure) replace(err error) bool {
	switch {
	case err == nil:
		*f = failure{}
		return false
	case f.err == nil:
		f.since = time.Now()
	case errors.Is(err, errNoAnswer), errors.Is(err, errClosed), stableText(f.err) == stableText(err):
		return false
	case apierrors.IsForbidden(f.err) && apierrors.IsForbidden(err):
		return false // The texts say which of list and watch is.
	}
	alternates := f.before != nil && stableText(f.before) == stableText(err)
	f.before, f.err = f.err, err
	return !alternates
}

// stableText returns an error's text without what is another one with each attempt: the
// addresses of a connection, and the URL of a request.
func stableText(err error) string {
	if op, ok := errors.AsType[*net.OpError](err); ok {
		return op.Op + ": " + op.Err.Error()
	}
	if request, ok := errors.AsType[*url.Error](err); ok {
		return request.Err.Error()
	}
	return err.Error()
}

// Errors returns what is wrong at present, sorted by kind, namespace and name:
// first kinds that cannot be read, then objects. The slice is the caller's, the
// errors are shared.
func (c *Cache) Errors() []*Error {
	c.mu.Lock()
	defer c.mu.Unlock()
	var errs []*Error
	add := func(f failure, key configstore.ConfigKey) {
		if f.err != nil {
			errs = append(errs, &Error{Object: key, Since: f.since, Err: f.err})
		}
	}
	add(c.crdErr, crdKey())
	for _, k := range c.kinds {
		for _, s := range k.scopes {
			add(s.err, s.key())
		}
		for _, v := range k.verdicts {
			if v.err != nil {
				errs = append(errs, v.err)
			}
		}
	}
	sortErrors(errs)
	return errs
}

// Warnings returns what schemas find questionable about objects that they accept, and
// statuses that cannot be decoded, sorted by kind, namespace and name, then in the order of
// the schema. With Options.SkipValidation there are only those of statuses. The slice is the caller's, the warnings are
// shared.
func (c *Cache) Warnings() []*Error {
	c.mu.Lock()
	defer c.mu.Unlock()
	var warnings []*Error
	for _, k := range c.kinds {
		for _, v := range k.verdicts {
			if v.err == nil {
				warnings = append(warnings, v.allWarnings()...)
			}
		}
	}
	sortErrors(warnings)
	return warnings
}

func sortErrors(errs []*Error) {
	slices.SortStableFunc(errs, func(a, b *Error) int {
		return cmp.Or(cmp.Compare(min(len(a.Object.Name), 1), min(len(b.Object.Name), 1)), a.Object.Compare(b.Object))
	})
}

// logKind logs that a kind cannot be read.
func (c *Cache) logKind(key configstore.ConfigKey, err error) {
	attrs := []any{slog.String("kind", key.Kind.String()), slog.Any("error", err)}
	if key.Namespace != "" {
		attrs = append(attrs, slog.String("namespace", key.Namespace))
	}
	c.opts.Logger.Warn("kind cannot be read", attrs...)
}
