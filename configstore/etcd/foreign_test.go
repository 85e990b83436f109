// SPDX-License-Identifier: Apache-2.0

package etcd_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/etcd"
	"github.com/pilotkit/pilotkit/configstore/istio"
	"github.com/pilotkit/pilotkit/configstore/manifest"
)

// put writes a value as etcdctl does.
func put(t *testing.T, client *clientv3.Client, key, value string) {
	t.Helper()
	if _, err := client.Put(within(t), key, value); err != nil {
		t.Fatal(err)
	}
}

func valueOf(t *testing.T, c configstore.Config) string {
	t.Helper()
	data, err := manifest.MarshalJSON(c)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// TestForeign: an invalid foreign value affects at most one object and is reported while it is
// invalid. A valid one is an object like others.
func TestForeign(t *testing.T) {
	srv, prefix := shared.get(t)
	client := newClient(t, srv.addr)
	r := start(t, srv.addr, etcd.Options{Prefix: prefix})
	good := r.create(t, entry("a", "10.0.0.1"))
	r.create(t, entry("b", "10.0.0.1"))
	r.take(t)
	folder := prefix + "/networking.istio.io/ServiceEntry/ns/"
	invalid := entry("a", "10.0.0.2")
	invalid.Spec = invalid.Spec.ProtoReflect().New().Interface()
	for name, e := range map[string]struct {
		key, value string
		want       error
	}{
		"no JSON":        {folder + "a", "{", manifest.ErrMalformed},
		"empty":          {folder + "a", "", manifest.ErrMalformed},
		"binary":         {folder + "a", "\x00\xff", manifest.ErrMalformed},
		"unknown field":  {folder + "a", strings.Replace(valueOf(t, entry("a", "10.0.0.2")), `"hosts"`, `"hostz"`, 1), manifest.ErrMalformed},
		"two objects":    {folder + "a", valueOf(t, entry("a", "10.0.0.2")) + valueOf(t, entry("b", "10.0.0.2")), manifest.ErrMalformed},
		"list":           {folder + "a", `{"apiVersion":"v1","kind":"List","items":[` + valueOf(t, entry("a", "10.0.0.2")) + `]}`, manifest.ErrMalformed},
		"another name":   {folder + "a", valueOf(t, entry("b", "10.0.0.2")), etcd.ErrMismatch},
		"another kind":   {folder + "a", strings.Replace(valueOf(t, entry("a", "10.0.0.2")), `"kind": "ServiceEntry"`, `"kind": "Gateway"`, 1), nil},
		"invalid":        {folder + "a", valueOf(t, invalid), configstore.ErrInvalid},
		"no kind of it":  {prefix + "/example.org/Thing/ns/a", valueOf(t, entry("a", "10.0.0.2")), configstore.ErrUnknownKind},
		"no key of ours": {prefix + "/README", "hello", etcd.ErrKey},
	} {
		t.Run(name, func(t *testing.T) {
			put(t, client, e.key, e.value)
			eventually(t, "the error shows", func() bool { return len(r.Errors()) == 1 })
			found := r.Errors()[0]
			if found.Key != e.key || found.Revision == 0 || found.Since.IsZero() || e.want != nil && !errors.Is(found, e.want) {
				t.Errorf("the error is %+v, want %v of %s", found, e.want, e.key)
			}
			if got := r.get("a"); got == nil || addressOf(got) != "10.0.0.1" {
				t.Errorf("the last good state is %v", got)
			}
			r.expect(t)
			if strings.HasPrefix(e.key, folder) {
				// A replica that starts now has no good state.
				fresh := newReplica(t, srv.addr, etcd.Options{Prefix: prefix})
				fresh.Drain()
				if fresh.expect(t, "add ns/b"); len(fresh.Errors()) != 1 || !fresh.HasSynced() {
					t.Errorf("a new replica: errors %v, synced %t", fresh.Errors(), fresh.HasSynced())
				}
				// A write does not take the published revision for the stored one.
				stale := entry("a", "10.0.0.3")
				stale.ResourceVersion = good
				if _, err := r.Update(stale); !errors.Is(err, configstore.ErrConflict) {
					t.Errorf("an Update of the last good state: %v, want ErrConflict", err)
				}
				if _, err := r.UpdateStatus(entry("a", "")); !errors.Is(err, manifest.ErrMalformed) && !errors.Is(err, found.Err) && err == nil {
					t.Error("an UpdateStatus of what cannot be decoded succeeded")
				}
				good = r.update(t, entry("a", "10.0.0.1")) // over it
				r.expect(t, "update ns/a")
			} else if _, err := client.Delete(within(t), e.key); err != nil {
				t.Fatal(err)
			}
			eventually(t, "the error is gone", func() bool { return len(r.Errors()) == 0 })
		})
	}
}

// TestForeignObjects: others' objects are objects like others, the same for every replica.
func TestForeignObjects(t *testing.T) {
	srv, prefix := shared.get(t)
	client := newClient(t, srv.addr)
	r := start(t, srv.addr, etcd.Options{Prefix: prefix})
	folder := prefix + "/networking.istio.io/ServiceEntry/ns/"
	yaml := "apiVersion: networking.istio.io/v1beta1\nkind: ServiceEntry\nmetadata: {name: %s, namespace: ns}\n" +
		"spec: {hosts: [%s.example.com], resolution: STATIC, ports: [{number: 80, name: http, protocol: HTTP}], endpoints: [{address: 10.0.0.%d}]}\n"
	put(t, client, folder+"first", fmt.Sprintf(yaml, "first", "first", 1))
	put(t, client, folder+"second", fmt.Sprintf(yaml, "second", "second", 1))
	r.awaits(t, "second", "10.0.0.1")
	put(t, client, folder+"first", fmt.Sprintf(yaml, "first", "first", 2))
	r.awaits(t, "first", "10.0.0.2")
	r.expect(t, "add ns/first", "add ns/second", "update ns/first")
	first, second := r.get("first"), r.get("second")
	if first.GroupVersionKind != istio.ServiceEntry || !first.CreationTimestamp.Before(second.CreationTimestamp) {
		t.Errorf("%+v and %+v, want the first to be older", first.Meta, second.Meta)
	}
	// If an object was deleted unseen and its key has an invalid value now, the object is removed.
	if _, err := client.Delete(within(t), folder+"first"); err != nil {
		t.Fatal(err)
	}
	put(t, client, folder+"first", "?")
	r.awaits(t, "first", "")
	r.expect(t, "delete ns/first")
	fresh := newReplica(t, srv.addr, etcd.Options{Prefix: prefix})
	fresh.Drain()
	sameContent(t, fresh, r)
	r.remove(t, "first")
	if errs := r.Errors(); len(errs) != 0 {
		t.Errorf("errors after the deletion: %v", errs)
	}
}
