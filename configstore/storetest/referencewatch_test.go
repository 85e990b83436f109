// SPDX-License-Identifier: Apache-2.0

package storetest_test

import (
	"context"
	"iter"
	"maps"
	"slices"

	"github.com/pilotkit/pilotkit/configstore"
)

func (r *reference) Revision() uint64 {
	r.lock()
	defer r.unlock()
	return r.revision
}

// remember keeps the history for Watch.
func (r *reference) remember(c configstore.Change) {
	r.changes = append(r.changes, c)
	if len(r.changes) > r.history {
		r.changes = slices.Clone(r.changes[1:])
	}
	close(r.grown)
	r.grown = make(chan struct{})
}

func (r *reference) Watch(ctx context.Context, from uint64) iter.Seq2[configstore.Change, error] {
	return func(yield func(configstore.Change, error) bool) {
		end := ctx.Done()
		if r.is("watch ignores its context") {
			end = r.dead
		}
		for {
			r.lock()
			grown, changes := r.grown, slices.Clone(r.changes)
			compacted := len(changes) > 0 && changes[0].Revision > from+1
			r.unlock()
			if compacted && !r.is("watch has silent gaps") {
				yield(configstore.Change{}, configstore.ErrCompacted)
				return
			}
			for _, c := range changes {
				if c.Revision <= from {
					continue
				}
				from = c.Revision
				if r.is("watch forgets deletes") && c.Event == configstore.EventDelete {
					continue
				}
				if !yield(c, nil) {
					return
				}
			}
			select {
			case <-grown:
			case <-end:
				return
			}
		}
	}
}

// Apply is a batch.
func (r *reference) Apply(mutations ...configstore.Mutation) (uint64, error) {
	r.lock()
	defer r.unlock()
	objects, revision, queue := r.objects, r.revision, len(r.queue)
	r.objects = make(map[configstore.ConfigKey]*configstore.Config, len(objects))
	maps.Copy(r.objects, objects)
	if r.is("batches lose the last") {
		mutations = mutations[:len(mutations)-1]
	}
	for _, m := range mutations {
		r.trusting = m.Checked != nil && r.is("any evidence will do")
		p, err := r.plan(m.Op.String(), m.Config, nil)
		r.trusting = false
		if err != nil {
			if !r.is("batches are not atomic") {
				r.objects, r.revision, r.queue = objects, revision, r.queue[:queue]
			}
			return 0, err
		}
		r.commit(p)
	}
	if r.is("events of a batch are reversed") {
		slices.Reverse(r.queue[queue:])
	}
	return r.revision, nil
}
