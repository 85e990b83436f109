// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestTrimMeta: the annotation that restricts the visibility of a Service stays, because otherwise routes
// would lead to Services that are not exported to them.
func TestTrimMeta(t *testing.T) {
	o := &corev1.Service{ObjectMeta: metav1.ObjectMeta{
		Name: "cart", Annotations: map[string]string{exportTo: ".", "other": "long"}, ManagedFields: []metav1.ManagedFieldsEntry{{}},
	}}
	trimMeta(o)
	if diff := cmp.Diff(metav1.ObjectMeta{Name: "cart", Annotations: map[string]string{exportTo: "."}}, o.ObjectMeta); diff != "" {
		t.Error(diff)
	}
}
