// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"encoding/json"
	"errors"
	"log/slog"
	"slices"
	"time"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/internal/commit"
)

// verdict contains the problems of the latest version of an object: the error that keeps it out of
// the cache, or its warnings. An object without problems has no verdict.
type verdict struct {
	err      *Error
	warnings []*Error
	// status is the error of a status that cannot be decoded. It is one of Warnings, and is not
	// written into the status.
	status *Error
	// uid and revision identify the version, and shown is its status if the cache does not have it.
	uid, revision string
	shown         json.RawMessage
}

// texts returns the texts of the verdict.
func (v *verdict) texts() []string {
	if v == nil {
		return nil
	}
	return texts(v.all())
}

func texts(errs []*Error) (out []string) {
	for _, e := range errs {
		out = append(out, e.Err.Error())
	}
	return out
}

func (v *verdict) all() []*Error {
	if v.err != nil {
		return append([]*Error{v.err}, v.warnings...)
	}
	return v.allWarnings()
}

// allWarnings returns the verdict's part of Warnings.
func (v *verdict) allWarnings() []*Error {
	if v.status != nil {
		return append(slices.Clone(v.warnings), v.status)
	}
	return v.warnings
}

// since returns the time of the first occurrence of a text, or now.
func (v *verdict) since(text string, now time.Time) time.Time {
	if v != nil {
		for _, e := range v.all() {
			if e.Err.Error() == text {
				return e.Since
			}
		}
	}
	return now
}

// judge replaces the verdict on an object. It does not log texts of the previous verdict again. o
// may be nil if there are no findings.
func (k *kind) judge(key objectKey, o *object, found findings) {
	c := k.cache
	c.mu.Lock()
	old := k.verdicts[key]
	if old == nil && found.none() {
		c.mu.Unlock()
		return
	}
	v := k.newVerdict(old, key, o, found)
	if v == nil {
		delete(k.verdicts, key)
	} else {
		k.verdicts[key] = v
	}
	c.mu.Unlock()
	before := old.texts()
	if v != nil {
		for _, e := range v.all() {
			if !slices.Contains(before, e.Err.Error()) {
				c.logObject(e, e == v.err, found)
			}
		}
	}
	c.notifyVerdict(k.configKey(key))
}

// newVerdict returns nil if there are no findings.
func (k *kind) newVerdict(old *verdict, key objectKey, o *object, found findings) *verdict {
	now := time.Now()
	say := func(err error) *Error {
		return &Error{
			Object: k.configKey(key), ResourceVersion: o.ResourceVersion, Generation: o.Generation,
			Since: old.since(err.Error(), now), Err: err,
		}
	}
	if found.err != nil {
		// Warnings of a version that is not in the cache are dropped.
		return &verdict{err: say(found.err), uid: string(o.UID), revision: o.ResourceVersion, shown: o.Status}
	}
	if found.none() {
		return nil
	}
	v := &verdict{}
	for _, w := range found.warnings {
		v.warnings = append(v.warnings, say(errors.New(w.String())))
	}
	if found.status != nil {
		v.status, v.revision, v.shown = say(found.status), o.ResourceVersion, o.Status
	}
	return v
}

// retain drops the verdicts on all objects of a namespace, or of all namespaces for "", except for
// the objects in there.
func (k *kind) retain(namespace string, there map[objectKey]bool) {
	c := k.cache
	var gone []objectKey
	c.mu.Lock()
	for key := range k.verdicts {
		if !there[key] && (namespace == "" || namespace == key.namespace) {
			delete(k.verdicts, key)
			gone = append(gone, key)
		}
	}
	c.mu.Unlock()
	for _, key := range gone {
		c.notifyVerdict(k.configKey(key))
	}
}

func (k *kind) configKey(key objectKey) configstore.ConfigKey {
	return configstore.ConfigKey{Kind: k.gvk(), Namespace: key.namespace, Name: key.name}
}

// onVerdict sets the handler that is called with each object whose verdict has changed; nil removes
// it.
func (c *Cache) onVerdict(handler func(configstore.ConfigKey)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.judged = handler
}

func (c *Cache) notifyVerdict(key configstore.ConfigKey) {
	c.mu.Lock()
	judged := c.judged
	c.mu.Unlock()
	if judged != nil {
		judged(key)
	}
}

// accepted returns the latest version of an object that the cache has seen, and its Accepted
// condition. The generation is 0 if there is no such object.
func (c *Cache) accepted(key configstore.ConfigKey) (subject, Condition) {
	kind := c.kind(key.Kind)
	if kind == nil {
		return subject{}, Condition{}
	}
	c.mu.Lock()
	v := kind.verdicts[objectKey{key.Namespace, key.Name}]
	c.mu.Unlock()
	if v != nil && v.err != nil {
		return subject{v.uid, v.err.Generation}, acceptedCondition(v)
	}
	if published := c.Get(key.Kind, key.Name, key.Namespace); published != nil {
		return subject{published.UID, published.Generation}, acceptedCondition(v)
	}
	return subject{}, Condition{}
}

// logObject logs an error or a warning of an object.
func (c *Cache) logObject(e *Error, refused bool, found findings) {
	log := c.opts.Logger.With(slog.String("object", e.Object.Object()),
		slog.String("resource_version", e.ResourceVersion), slog.Any("error", e.Err))
	if refused {
		commit.LogInvalid(log, found.kept, found.closed)
		return
	}
	log.Warn("object has a warning")
}
