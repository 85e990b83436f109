// SPDX-License-Identifier: Apache-2.0

package kube_test

import (
	"errors"
	"fmt"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/kube"
)

// TestForbidden: a kind that access control refuses hurts no other.
func TestForbidden(t *testing.T) {
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
			c := newCache(t, restConfig(server.ConfigFor(user.name)), schemas, kube.Options{})
			runSynced(t, c)
			eventually(t, "the kind that is allowed is there", func() bool { return c.Get(allowed.GroupVersionKind, "a", ns) != nil })
			if c.Get(refused.GroupVersionKind, "a", ns) != nil {
				t.Error("the kind that is refused can be read")
			}
			eventually(t, "errors of "+user.errors, func() bool { // It takes a moment until a right counts.
				var groups []string
				for _, e := range c.Errors() {
					groups = append(groups, e.Object.Kind.Group)
				}
				return fmt.Sprint(groups) == user.errors
			})
			for _, e := range c.Errors() {
				if !apierrors.IsForbidden(errors.Unwrap(e)) {
					t.Errorf("%v is not forbidden", e)
				}
			}
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

func isForbidden(err error) bool {
	var status apierrors.APIStatus
	return errors.As(err, &status) && status.Status().Reason == metav1.StatusReasonForbidden
}
