// SPDX-License-Identifier: Apache-2.0

package traffic_test

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"go.uber.org/atomic"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/internal/test/tier"
	"github.com/pilotkit/pilotkit/xdsupdate/ads"
	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
	"github.com/pilotkit/pilotkit/xdsupdate/xdstest"
)

// refusedWord is the word that the clients of TestRefusedWord reject.
const refusedWord = "unlucky"

// refusesWord returns the answer of clients that reject all bytes with the word. shared is set when
// one of them has rejected a resource that several tenants share.
func refusesWord(shared *atomic.Bool) func(xdstest.Response) error {
	return func(r xdstest.Response) error {
		var refused []string
		for i, res := range r.Resources {
			if !bytes.Contains(res.Any.GetValue(), []byte(refusedWord)) {
				continue
			}
			refused = append(refused, "Error adding/updating "+r.Names()[i]+": the word")
			if r.TypeURL == envoy.RouteType || r.TypeURL == envoy.ListenerType {
				shared.Store(true)
			}
			if r.TypeURL == envoy.RouteType {
				break
			}
		}
		if refused != nil {
			return errors.New(strings.Join(refused, "\n"))
		}
		return nil
	}
}

// worded yields copies of an object in which one text has the refused word.
func worded(c configstore.Config, yield func(where string, c configstore.Config) bool) {
	base := c.Spec
	for path := range leaves(base.ProtoReflect().Descriptor(), nil) {
		last := path[len(path)-1]
		field := last.field
		if field.IsMap() && !last.key {
			field = field.MapValue()
		} else if last.key {
			field = field.MapKey()
		}
		if field.Kind() != protoreflect.StringKind {
			continue
		}
		for _, text := range []string{refusedWord + ".example.com", "/" + refusedWord} {
			out := proto.Clone(base)
			path.set(out.ProtoReflect(), protoreflect.ValueOfString(text))
			worded := c
			worded.Spec = out
			if !yield(fmt.Sprintf("%s = %q", path, text), worded) {
				return
			}
		}
	}
	c.Name = refusedWord
	yield("name", c)
}

// TestRefusedWord: clients that reject any bytes with a word, wherever it stands in one object of a
// tenant, get the changes of another tenant, and the object is named. Of the texts a share is tried,
// and all with -full.
func TestRefusedWord(t *testing.T) {
	for _, o := range tenantObjects {
		t.Run(o.kind.Kind, func(t *testing.T) {
			t.Parallel()
			var shared atomic.Bool
			w := startPickyTown(t, append(configsOf(t, neighbour, 1), configsOf(t, culprit, 1)...), ads.Options{}, refusesWord(&shared))
			base := []map[string]string{nil, w.partsOf(neighbour), nil}
			w.set(configsOf(t, neighbour, 2)...)
			w.applied()
			base[2] = w.partsOf(neighbour)
			healthy, moment, count := tenantConfig(t, o.kind, "edge", o.spec, culprit, 1), 2, 0
			worded(healthy, func(where string, c configstore.Config) bool {
				if count++; !tier.Full() && count%4 != 0 {
					return true
				}
				shared.Store(false)
				w.set(c)
				w.applied()
				moment = 3 - moment
				w.set(configsOf(t, neighbour, moment)...)
				w.applied()
				w.check(where, base[moment])
				faults, _ := w.server.Faults()
				refused := slices.DeleteFunc(faults, func(f ads.Fault) bool { return f.Status != ads.FaultLeftOut })
				named := slices.ContainsFunc(refused, func(f ads.Fault) bool { return f.Object.Namespace == culprit })
				if named != shared.Load() {
					t.Errorf("%s: left out are %v", where, refused)
				}
				for _, l := range refused {
					if l.Object.Namespace != culprit {
						t.Errorf("%s: %v is left out", where, l.Object)
					}
				}
				if c.Name != healthy.Name {
					w.must(w.store.Delete(c.GroupVersionKind, c.Name, c.Namespace, nil))
				}
				w.set(healthy)
				w.applied()
				if refused, _ := w.server.Faults(); len(refused) > 0 {
					t.Errorf("%s: still left out are %v", where, refused)
				}
				return true
			})
			t.Logf("%d texts", count)
		})
	}
}
