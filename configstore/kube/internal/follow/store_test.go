// SPDX-License-Identifier: Apache-2.0

package follow

import (
	"fmt"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestLists: the batch of a list deletes the known objects that the list lacks.
func TestLists(t *testing.T) {
	var got []string
	s := New(nil, (*nothing)(nil), &corev1.Node{}, Options{Apply: func(changes []Change) {
		for _, c := range changes {
			got = append(got, fmt.Sprint(c.Object.GetName(), " gone ", c.Gone))
		}
	}})
	node := func(name string) any { return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}} }
	for _, step := range []struct {
		do   func() error
		want []string
	}{
		{func() error { return (*store)(s).Replace([]any{node("a"), node("b")}, "1") }, []string{"a gone false", "b gone false"}},
		{func() error { return (*store)(s).Add(node("c")) }, []string{"c gone false"}},
		{func() error { return (*store)(s).Delete(node("b")) }, []string{"b gone true"}},
		{func() error { return (*store)(s).Replace([]any{node("c")}, "2") }, []string{"a gone true", "c gone false"}},
		{func() error { return (*store)(s).Replace(nil, "3") }, []string{"c gone true"}},
	} {
		got = nil
		if err := step.do(); err != nil {
			t.Fatal(err)
		}
		if slices.Sort(got); !slices.Equal(got, step.want) {
			t.Errorf("got %q, want %q", got, step.want)
		}
	}
}

// nothing is a resource that is not read.
type nothing struct{ Resource[*corev1.NodeList] }
