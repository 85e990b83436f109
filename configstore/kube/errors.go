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

// Error is a problem of the API server's content. As one of Errors it keeps a kind or an object out
// of the cache. As one of Warnings it concerns an object that is in the cache.
type Error struct {
	// Object is the object with the problem. Its Name is empty if a whole kind cannot be listed or
	// watched, or the kind's objects in one namespace of Options.OnlyNamespaces; the cache then has
	// the objects as of Since. If its Kind is CustomResourceDefinition, the existing kinds cannot
	// be determined.
	Object configstore.ConfigKey
	// ResourceVersion is the version of the object that could not be decoded or is invalid: the
	// cache has an older version or none. For a warning it is the version in which the warning
	// appeared. It is empty for a kind.
	ResourceVersion string
	// Generation is the generation of the same version.
	Generation int64
	// Since is the time of the first occurrence.
	Since time.Time
	// Err is the cause, never nil. The error of an object matches manifest.ErrMalformed or
	// configstore.ErrInvalid. The error of a kind is the API server's, as in
	// k8s.io/apimachinery/pkg/api/errors, or a connection error. A warning of a schema has the form
	// "field: message"; the warning of a status matches manifest.ErrMalformed.
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
	// before is the previous error, if that one lasted, too.
	before error
}

// replace replaces the error by err, which may be nil, and reports whether err is new information.
// Attempts to list and to watch alternate, and so may their errors: each of two alternating errors
// is new once. An error that does not tell why the server did not respond replaces nothing.
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
		return false // The texts differ in the verb, list or watch.
	}
	alternates := f.before != nil && stableText(f.before) == stableText(err)
	f.before, f.err = f.err, err
	return !alternates
}

// stableText returns an error's text without the parts that differ between attempts: the addresses
// of a connection, and the URL of a request.
func stableText(err error) string {
	if op, ok := errors.AsType[*net.OpError](err); ok {
		return op.Op + ": " + op.Err.Error()
	}
	if request, ok := errors.AsType[*url.Error](err); ok {
		return request.Err.Error()
	}
	return err.Error()
}

// Errors returns the present errors, sorted by kind, namespace and name: first the kinds that
// cannot be read, then the objects. The caller owns the slice; the errors are shared.
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

// Warnings returns the schemas' warnings of valid objects, and statuses that cannot be decoded,
// sorted by kind, namespace and name, then in the order of the schema. With Options.SkipValidation
// it returns only the statuses. The caller owns the slice; the warnings are shared.
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
