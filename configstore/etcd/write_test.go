// SPDX-License-Identifier: Apache-2.0

package etcd_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/etcd"
	"github.com/pilotkit/pilotkit/configstore/istio"
)

// TestReadable: the keys and values are readable for users of etcdctl, and the object has the key's
// revision.
func TestReadable(t *testing.T) {
	srv, prefix := shared.get(t)
	r := newReplica(t, srv.addr, etcd.Options{Prefix: prefix, Domain: "cluster.local"})
	c := entry("a", "10.0.0.1")
	c.CreationTimestamp = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	c.Labels = map[string]string{"app": "a"}
	revision := r.create(t, c)
	got, err := newClient(t, srv.addr).Get(within(t), prefix+"/networking.istio.io/ServiceEntry/ns/a")
	if err != nil || len(got.Kvs) != 1 {
		t.Fatalf("%v, %v", got, err)
	}
	want := `{
    "apiVersion": "networking.istio.io/v1",
    "kind": "ServiceEntry",
    "metadata": {
        "creationTimestamp": "2026-01-02T03:04:05Z",
        "generation": 1,
        "labels": {
            "app": "a"
        },
        "name": "a",
        "namespace": "ns"
    },
    "spec": {
        "endpoints": [
            {
                "address": "10.0.0.1"
            }
        ],
        "hosts": [
            "a.example.com"
        ],
        "location": "MESH_INTERNAL",
        "ports": [
            {
                "name": "http",
                "number": 80,
                "protocol": "HTTP"
            }
        ],
        "resolution": "STATIC"
    }
}
`
	if value := string(got.Kvs[0].Value); value != want {
		t.Errorf("the value is\n%s\nwant\n%s", value, want)
	}
	if mod := fmt.Sprint(got.Kvs[0].ModRevision); revision != mod || r.get("a").ResourceVersion != mod || r.get("a").Domain != "cluster.local" {
		t.Errorf("the mod revision is %s, Create returned %s, and the object is %+v", mod, revision, r.get("a").Meta)
	}
}

// TestOthersWrites: a write is based on the state of etcd, not of the replica.
func TestOthersWrites(t *testing.T) {
	srv, prefix := shared.get(t)
	a, b := newReplica(t, srv.addr, etcd.Options{Prefix: prefix}), newReplica(t, srv.addr, etcd.Options{Prefix: prefix})
	first := a.create(t, entry("x", "10.0.0.1"))
	// b has read nothing yet, and does not run.
	if _, err := b.Create(entry("x", "10.0.0.2")); !errors.Is(err, configstore.ErrAlreadyExists) {
		t.Errorf("Create of what another one has created: %v", err)
	}
	second := b.update(t, entry("x", "10.0.0.2"))
	if got := b.get("x"); got.Generation != 2 || second == first {
		t.Errorf("after another one's Create and an Update: %+v", got.Meta)
	}
	// The cached state of a is outdated now.
	stale := *a.get("x")
	stale.Labels = map[string]string{"a": "b"}
	if _, err := a.Update(stale); !errors.Is(err, configstore.ErrConflict) || !strings.HasPrefix(err.Error(), "update ServiceEntry ns/x: ") {
		t.Errorf("Update of an outdated revision: %v, want ErrConflict", err)
	}
	if err := a.Delete(istio.ServiceEntry, "x", "ns", &first); !errors.Is(err, configstore.ErrConflict) {
		t.Errorf("Delete of an outdated revision: %v, want ErrConflict", err)
	}
	// An Update to the cached state of a is still a change.
	third := a.update(t, entry("x", "10.0.0.1"))
	if third == first || a.get("x").Generation != 3 {
		t.Errorf("the Update back: revision %s, %+v", third, a.get("x").Meta)
	}
	// b knows this revision only from the write of a.
	next := entry("x", "10.0.0.4")
	next.ResourceVersion = third
	b.update(t, next)
	a.remove(t, "x")
	if err := b.Delete(istio.ServiceEntry, "x", "ns", nil); !errors.Is(err, configstore.ErrNotFound) {
		t.Errorf("Delete of what another one has deleted: %v", err)
	}
	b.Drain()
	b.expect(t, "add ns/x", "update ns/x", "update ns/x", "update ns/x", "delete ns/x")
}

// TestTooLarge: a batch that exceeds the limit of a transaction fails with the limit, and nothing
// is written.
func TestTooLarge(t *testing.T) {
	srv, prefix := shared.get(t)
	batch := func(n int) (batch []configstore.Mutation) {
		for i := range n {
			batch = append(batch, configstore.Mutation{Op: configstore.OpUpsert, Config: entry(fmt.Sprint("e", i), "10.0.0.1")})
		}
		return batch
	}
	r := newReplica(t, srv.addr, etcd.Options{Prefix: prefix})
	if _, err := r.Apply(batch(129)...); !errors.Is(err, etcd.ErrTooLarge) || !strings.Contains(err.Error(), "129 objects") ||
		!strings.Contains(err.Error(), "MaxTxnOps is 128") {
		t.Errorf("a batch of 129: %v", err)
	}
	wrong := newReplica(t, srv.addr, etcd.Options{Prefix: prefix, MaxTxnOps: 1000})
	if _, err := wrong.Apply(batch(129)...); !errors.Is(err, etcd.ErrTooLarge) || !strings.Contains(err.Error(), "--max-txn-ops") {
		t.Errorf("a batch of more than the server's limit: %v", err)
	}
	for _, kib := range []int{1600, 4096} { // more than the server takes, and than the client sends
		huge := entry("huge", "10.0.0.1")
		huge.Annotations = map[string]string{"text": strings.Repeat("x", kib<<10)}
		if _, err := r.Create(huge); !errors.Is(err, etcd.ErrTooLarge) || !strings.Contains(err.Error(), "ns/huge") {
			t.Errorf("an object of %d KiB: %v", kib, err)
		}
	}
	if n := len(r.List(istio.ServiceEntry, "")); n != 0 {
		t.Errorf("%d objects were written", n)
	}
	if _, err := r.Apply(batch(128)...); err != nil {
		t.Errorf("a batch of 128: %v", err)
	}
	// An object counts once.
	if _, err := r.Apply(append(batch(128), batch(128)...)...); err != nil {
		t.Errorf("a batch of 256 mutations of 128 objects: %v", err)
	}
	if n := len(r.List(istio.ServiceEntry, "")); n != 128 {
		t.Errorf("%d objects, want 128", n)
	}
}

// slowStream is a stream whose messages are received while the gate is open.
type slowStream struct {
	grpc.ClientStream
	gate chan struct{}
}

// RecvMsg implements grpc.ClientStream.
func (s slowStream) RecvMsg(m any) error {
	err := s.ClientStream.RecvMsg(m)
	if r, ok := m.(*etcdserverpb.WatchResponse); ok && len(r.GetEvents()) > 0 {
		<-s.gate
	}
	return err
}

// TestNotShown: a write that is committed while the watch hangs returns ErrNotShown with the
// revision.
func TestNotShown(t *testing.T) {
	t.Parallel()
	srv, prefix := shared.get(t)
	gate := make(chan struct{})
	slow := func(ctx context.Context, desc *grpc.StreamDesc, conn *grpc.ClientConn, method string, streamer grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
		s, err := streamer(ctx, desc, conn, method, opts...)
		if err != nil {
			return nil, err
		}
		return slowStream{s, gate}, nil
	}
	client, err := clientv3.New(clientv3.Config{
		Endpoints: []string{srv.addr}, Logger: zap.NewNop(), DialOptions: []grpc.DialOption{grpc.WithChainStreamInterceptor(slow)},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	r := replicaOf(t, client, etcd.Options{Prefix: prefix, Timeout: 5 * time.Second, ProgressInterval: patience})
	r.run(t)
	eventually(t, "the cache has synced", r.HasSynced)
	revision, err := r.Create(entry("a", "10.0.0.1"))
	if !errors.Is(err, etcd.ErrNotShown) || revision == "" || r.get("a") != nil {
		t.Errorf("a write that is not shown: %q, %v", revision, err)
	}
	close(gate)
	r.awaits(t, "a", "10.0.0.1")
	if got := r.get("a").ResourceVersion; got != revision {
		t.Errorf("it has the revision %s, Create returned %s", got, revision)
	}
}

// TestOptions: invalid options are rejected.
func TestOptions(t *testing.T) {
	srv, _ := shared.get(t)
	client := newClient(t, srv.addr)
	twoVersions := configstore.NewSchemasBuilder()
	for _, version := range []string{"v1", "v2"} {
		s, _ := istio.Schemas().Find(istio.Gateway)
		s.GroupVersionKind.Version, s.Aliases = version, nil
		twoVersions.MustAdd(s)
	}
	for name, e := range map[string]struct {
		client  *clientv3.Client
		schemas configstore.Schemas
		opts    etcd.Options
	}{
		"no client":    {nil, istio.Schemas(), etcd.Options{}},
		"prefix":       {client, istio.Schemas(), etcd.Options{Prefix: "/a/"}},
		"limit":        {client, istio.Schemas(), etcd.Options{MaxTxnOps: -1}},
		"timeout":      {client, istio.Schemas(), etcd.Options{Timeout: -1}},
		"two versions": {client, twoVersions.Build(), etcd.Options{}},
	} {
		if _, err := etcd.New(e.client, e.schemas, e.opts); err == nil || !strings.HasPrefix(err.Error(), "etcd.New: ") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestWarnings: the host receives the validator's warnings.
func TestWarnings(t *testing.T) {
	srv, prefix := shared.get(t)
	schema := configstore.Schema{
		GroupVersionKind: istio.ServiceEntry, Spec: entry("a", "").Spec,
		Validate: func(configstore.Config) (warnings, violations []configstore.Violation) {
			return []configstore.Violation{{Field: "spec", Message: "is odd"}}, nil
		},
	}
	var got []string
	c, err := etcd.New(newClient(t, srv.addr), configstore.NewSchemasBuilder().MustAdd(schema).Build(), etcd.Options{
		Prefix: prefix,
		OnWarning: func(key configstore.ConfigKey, warnings []configstore.Violation) {
			got = append(got, fmt.Sprint(key.Object(), warnings))
			panic("the host's mistake")
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Create(entry("a", "10.0.0.1")); err != nil {
		t.Error(err)
	}
	if _, err := c.Create(entry("a", "10.0.0.1")); !errors.Is(err, configstore.ErrAlreadyExists) {
		t.Error(err)
	}
	if want := "[ServiceEntry ns/a[spec: is odd]]"; fmt.Sprint(got) != want {
		t.Errorf("warnings %q, want %s", got, want)
	}
}
