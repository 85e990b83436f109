// SPDX-License-Identifier: Apache-2.0

package kube_test

import (
	"errors"
	"fmt"
	"net/http"
	"path"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/kube"
)

// TestForbidden: an optional kind that access control forbids does not affect other kinds.
func TestForbidden(t *testing.T) {
	t.Parallel()
	server := apiserver.Server(t)
	allowed, refused := limit("allowed.example.com"), limit("refused.example.com")
	schemas := configstore.NewSchemasBuilder().MustAdd(allowed).MustAdd(refused).Build()
	server.ApplyCRDs(t, crdsOf(schemas))
	ns := server.Namespace(t)
	admin := newCache(t, restConfig(server.Config()), schemas, kube.Options{})
	create(t, admin, object(allowed.GroupVersionKind, ns, "a", "1"))
	create(t, admin, object(refused.GroupVersionKind, ns, "a", "1"))

	for _, user := range []struct {
		name  string
		rules []string
		// errors are the groups of the kinds in Errors.
		errors string
	}{
		{"reader", []string{"apiextensions.k8s.io/customresourcedefinitions", "allowed.example.com/limits"}, "[refused.example.com]"},
		{"blind", []string{"allowed.example.com/limits"}, "[apiextensions.k8s.io refused.example.com]"},
	} {
		t.Run(user.name, func(t *testing.T) {
			allow(t, server, user.name, user.rules...)
			c := newCache(t, restConfig(server.ConfigFor(user.name)), schemas, kube.Options{
				Optional: []configstore.GroupVersionKind{refused.GroupVersionKind, {Kind: "Other"}},
			})
			runSynced(t, c)
			eventually(t, "the kind that is allowed is there", func() bool { return c.Get(allowed.GroupVersionKind, "a", ns) != nil })
			if c.Get(refused.GroupVersionKind, "a", ns) != nil {
				t.Error("the kind that is refused can be read")
			}
			// A granted permission takes a while to take effect.
			eventually(t, "errors of "+user.errors, func() bool { return forbiddenGroups(c) == user.errors })
			if _, err := c.Update(object(allowed.GroupVersionKind, ns, "a", "2")); !isForbidden(err) {
				t.Errorf("a write that is forbidden = %v", err)
			}
			allow(t, server, user.name+"-more", "refused.example.com/limits", "apiextensions.k8s.io/customresourcedefinitions")
			bind(t, server, user.name, user.name+"-more")
			eventually(t, "the other kind is there once it is allowed", func() bool {
				return c.Get(refused.GroupVersionKind, "a", ns) != nil && len(c.Errors()) == 0
			})
		})
	}
}

// forbiddenGroups returns the groups of the kinds that cannot be read because they are
// forbidden.
func forbiddenGroups(c *kube.Cache) string {
	var groups []string
	for _, e := range c.Errors() {
		if apierrors.IsForbidden(errors.Unwrap(e)) {
			groups = append(groups, e.Object.Kind.Group)
		}
	}
	return fmt.Sprint(groups)
}

// TestForbiddenAtStart: a cache that starts before its permissions are granted has not synced until
// everything may be read.
func TestForbiddenAtStart(t *testing.T) {
	t.Parallel()
	server := apiserver.Server(t)
	early, late := limit("early.example.com"), limit("late.example.com")
	schemas := configstore.NewSchemasBuilder().MustAdd(early).MustAdd(late).MustAdd(limit("absent.example.com")).Build()
	present := configstore.NewSchemasBuilder().MustAdd(early).MustAdd(late).Build()
	server.ApplyCRDs(t, crdsOf(present))
	ns := server.Namespace(t)
	admin := newCache(t, restConfig(server.Config()), present, kube.Options{})
	for _, s := range present.All() {
		create(t, admin, object(s.GroupVersionKind, ns, "a", "1"))
	}
	c := newCache(t, restConfig(server.ConfigFor("newcomer")), schemas, kube.Options{})
	run(t, c)
	for _, step := range []struct{ allowed, forbidden string }{
		// The list of the kinds is forbidden, too.
		{"", "[absent.example.com apiextensions.k8s.io early.example.com late.example.com]"},
		{"early.example.com/limits", "[absent.example.com apiextensions.k8s.io late.example.com]"},
		{"apiextensions.k8s.io/customresourcedefinitions", "[late.example.com]"},
	} {
		if step.allowed != "" {
			allow(t, server, "newcomer-"+path.Dir(step.allowed), step.allowed)
			bind(t, server, "newcomer", "newcomer-"+path.Dir(step.allowed))
		}
		eventually(t, "errors of "+step.forbidden, func() bool { return forbiddenGroups(c) == step.forbidden })
		if c.HasSynced() {
			t.Errorf("it has synced without %s", step.forbidden)
		}
	}
	if c.Get(early.GroupVersionKind, "a", ns) == nil {
		t.Error("what may be read is not there")
	}
	allow(t, server, "newcomer-late", "late.example.com/limits")
	bind(t, server, "newcomer", "newcomer-late")
	eventually(t, "it has synced", c.HasSynced)
	if c.Get(late.GroupVersionKind, "a", ns) == nil {
		t.Error("it has synced without an object")
	}
	expectErrors(t, c)
}

// TestForbiddenWhileStarting: an API server that initially forbids everything, or does not know its
// paths, is not regarded as empty.
func TestForbiddenWhileStarting(t *testing.T) {
	server, schemas, kind, ns, _ := serveLimits(t, "starting.example.com")
	create(t, newCache(t, restConfig(server.Config()), schemas, kube.Options{}), object(kind, ns, "a", "1"))
	for name, status := range map[string]int{"Forbidden": http.StatusForbidden, "NotFound": http.StatusNotFound} {
		t.Run(name, func(t *testing.T) {
			config := restConfig(server.Config())
			refused := refuseAll(config, status)
			c := newCache(t, config, schemas, kube.Options{})
			run(t, c)
			eventually(t, "all was asked for, under all versions", func() bool { return len(c.Errors()) == 2 && refused.answers.Load() > 8 })
			if c.HasSynced() {
				t.Errorf("it has synced with %v", c.Errors())
			}
			refused.answer.Store(false)
			eventually(t, "it has synced", c.HasSynced)
			if c.Get(kind, "a", ns) == nil {
				t.Error("it has synced without an object")
			}
			eventually(t, "no error remains", func() bool { return len(c.Errors()) == 0 })
		})
	}
}

func isForbidden(err error) bool {
	var status apierrors.APIStatus
	return errors.As(err, &status) && status.Status().Reason == metav1.StatusReasonForbidden
}
