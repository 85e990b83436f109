// SPDX-License-Identifier: Apache-2.0

package etcd_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/pilotkit/pilotkit/configstore/etcd"
)

// usersClient returns a client of a user, which the test closes.
func usersClient(t *testing.T, addr, user string) *clientv3.Client {
	t.Helper()
	client, err := clientv3.New(clientv3.Config{
		Endpoints: []string{addr}, Username: user, Password: "secret of " + user, Logger: zap.NewNop(),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	return client
}

// must returns a function that fails the test on an error.
func must[T any](t *testing.T) func(T, error) {
	t.Helper()
	return func(_ T, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
}

// protect makes a server require users: root, and pilot, whose permission, below the prefix only,
// the returned function sets.
func protect(t *testing.T, srv *server, prefix string) (root *clientv3.Client, allow func(allowed bool)) {
	t.Helper()
	client := newClient(t, srv.addr)
	for _, user := range []string{"root", "pilot"} {
		must[*clientv3.AuthRoleAddResponse](t)(client.RoleAdd(within(t), user))
		must[*clientv3.AuthUserAddResponse](t)(client.UserAdd(within(t), user, "secret of "+user))
		must[*clientv3.AuthUserGrantRoleResponse](t)(client.UserGrantRole(within(t), user, user))
	}
	must[*clientv3.AuthEnableResponse](t)(client.AuthEnable(within(t)))
	root = usersClient(t, srv.addr, "root")
	return root, func(allowed bool) {
		t.Helper()
		from, to := prefix+"/", prefix+"0"
		if allowed {
			must[*clientv3.AuthRoleGrantPermissionResponse](t)(
				root.RoleGrantPermission(within(t), "pilot", from, to, clientv3.PermissionType(clientv3.PermReadWrite)))
		} else {
			must[*clientv3.AuthRoleRevokePermissionResponse](t)(root.RoleRevokePermission(within(t), "pilot", from, to))
		}
	}
}

// TestUsers: a user who may read and write below the prefix is sufficient. If etcd loses its
// tokens, the permission is revoked, or the password changes, the last state stays, and Status
// returns the reason; afterwards the cache receives the difference.
func TestUsers(t *testing.T) {
	t.Parallel()
	begun, srv := time.Now(), newServer(t)
	root, allow := protect(t, srv, "/pilotkit")
	allow(true)
	p := newProxy(t, srv.addr)
	r := replicaOf(t, usersClient(t, p.addr(), "pilot"), impatient(""))
	r.run(t)
	eventually(t, "the cache has synced", r.HasSynced)
	r.create(t, entry("a", "10.0.0.1"))
	r.expect(t, "add ns/a")

	p.set(refusing)
	srv.stop()
	r.isStale(t, begun)
	srv.restart(t) // tokens are in its memory
	p.set(passing)
	r.isLive(t)
	r.update(t, entry("a", "10.0.0.2"))
	r.expect(t, "update ns/a")

	for name, e := range map[string]struct {
		take, give func()
		want       error
		text       string
	}{
		"permission": {func() { allow(false) }, func() { allow(true) }, rpctypes.ErrPermissionDenied, "permission denied"},
		"password": {
			func() {
				must[*clientv3.AuthUserChangePasswordResponse](t)(root.UserChangePassword(within(t), "pilot", "another one"))
			},
			func() {
				must[*clientv3.AuthUserChangePasswordResponse](t)(root.UserChangePassword(within(t), "pilot", "secret of pilot"))
			},
			rpctypes.ErrAuthFailed, "authentication failed",
		},
	} {
		e.take()
		p.set(refusing) // etcd asks who it is when a watch begins
		p.set(passing)
		r.isStale(t, begun)
		eventually(t, name+": the status says why", func() bool {
			err := r.Status().Err
			return err != nil && strings.Contains(err.Error(), e.text)
		})
		if _, err := r.Update(entry("a", "10.0.0.3")); !errors.Is(err, e.want) || errors.Is(err, etcd.ErrUnavailable) {
			t.Errorf("%s: a write: %v, want %v", name, err, e.want)
		}
		put(t, root, "/pilotkit/networking.istio.io/ServiceEntry/ns/"+name, valueOf(t, entry(name, "10.0.0.1")))
		r.expect(t)
		if addressOf(r.get("a")) != "10.0.0.2" {
			t.Errorf("%s: the last state is gone", name)
		}
		e.give()
		r.isLive(t)
		r.awaits(t, name, "10.0.0.1")
		r.expect(t, "add ns/"+name)
	}
}
