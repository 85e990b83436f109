// SPDX-License-Identifier: Apache-2.0

package aggregate_test

import (
	"context"
	"fmt"
	"iter"
	"testing"

	"github.com/pilotkit/pilotkit/aggregate"
	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/memory"
	"github.com/pilotkit/pilotkit/configstore/storetest"
)

// overtaken is a cache during whose next relist something happens: after the last of
// its changes was read, and before the result is installed.
type overtaken struct {
	*memory.Controller
	relisted func()
}

func (o *overtaken) List(k configstore.GroupVersionKind, namespace string) []*configstore.Config {
	list := o.Controller.List(k, namespace)
	if o.relisted != nil { // so that there are changes to be read after the list
		_, _ = o.Update(object("A", "ns", "x", "while it is listed"))
	}
	return list
}

func (o *overtaken) Watch(ctx context.Context, from uint64) iter.Seq2[configstore.Change, error] {
	changes := o.Controller.Watch(ctx, from)
	return func(yield func(configstore.Change, error) bool) {
		changes(yield)
		if f := o.relisted; f != nil && from+10 > o.Revision() {
			o.relisted = nil
			f()
		}
	}
}

// A relist that another read has overtaken changes nothing any more: handlers do not
// get what is newer taken back.
func TestOvertakenRelistChangesNothing(t *testing.T) {
	m := &overtaken{Controller: memory.NewController(memory.Make(schemas("A"), memory.Options{HistoryLimit: 10}))}
	c := aggregate.MakeCache(m)
	create(t, m, object("A", "ns", "x", "0"))
	var r storetest.Recorder
	c.RegisterEventHandler(kind("A"), r.Handle)
	c.Drain()
	r.Expect(t, "add A ns/x")
	for i := range 20 { // more than the history holds
		if _, err := m.Update(object("A", "ns", "x", fmt.Sprint(i))); err != nil {
			t.Fatal(err)
		}
	}
	overtaking := false
	m.relisted = func() {
		overtaking = true
		create(t, m, object("A", "ns", "newer", "1"))
		if c.Get(kind("A"), "newer", "ns") == nil {
			t.Error("a read during a relist does not see what is newer")
		}
	}
	c.Get(kind("A"), "x", "ns")
	if !overtaking {
		t.Fatal("nothing has overtaken the relist")
	}
	if c.Get(kind("A"), "newer", "ns") == nil {
		t.Error("what is newer was taken back")
	}
	c.Drain()
	for _, call := range r.Take() {
		if call.Event == configstore.EventDelete {
			t.Errorf("handlers got %s", call)
		}
	}
}
