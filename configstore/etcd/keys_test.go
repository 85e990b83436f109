// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"errors"
	"strings"
	"testing"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/istio"
)

func testKeys(tb testing.TB) *keys {
	tb.Helper()
	k, err := newKeys("/pilotkit", istio.Schemas())
	if err != nil {
		tb.Fatal(err)
	}
	return k
}

// TestKeys: keys are readable, and no part of a name is taken for a delimiter.
func TestKeys(t *testing.T) {
	k := testKeys(t)
	for _, e := range []struct{ namespace, name, want string }{
		{"default", "reviews", "/pilotkit/networking.istio.io/VirtualService/default/reviews"},
		{"", "reviews", "/pilotkit/networking.istio.io/VirtualService//reviews"},
		{"a/b", "c%2Fd", "/pilotkit/networking.istio.io/VirtualService/a%2Fb/c%252Fd"},
		{"..", "é\x00 ", "/pilotkit/networking.istio.io/VirtualService/../%C3%A9%00%20"},
	} {
		key := configstore.ConfigKey{Kind: istio.VirtualService, Namespace: e.namespace, Name: e.name}
		got := k.of(key)
		if got != e.want || got >= k.end() || got < k.prefix {
			t.Errorf("the key of %v is %q, want %q", key, got, e.want)
		}
		if back, err := k.parse(got); err != nil || back != key {
			t.Errorf("%q is %v, %v, want %v", got, back, err, key)
		}
	}
	for key, want := range map[string]error{
		"":                                      ErrKey,
		"networking.istio.io/VirtualService/a":  ErrKey,
		"networking.istio.io/VirtualService/a/": ErrKey,
		"networking.istio.io/VirtualService/a/b/c":   ErrKey,
		"networking.istio.io/VirtualService/a/%zz":   ErrKey,
		"networking.istio.io/VirtualService/a/%61":   ErrKey, // two keys for one object
		"networking.istio.io/VirtualService/a/%2f":   ErrKey,
		"networking.istio.io/VirtualServiceList/a/b": configstore.ErrUnknownKind,
	} {
		if object, err := k.parse(k.prefix + key); !errors.Is(err, want) {
			t.Errorf("%q is %v, %v, want %v", key, object, err, want)
		}
	}
}

// FuzzKeys: a key in etcd belongs to at most one object, and an object has one key.
func FuzzKeys(f *testing.F) {
	f.Add("default", "reviews", "networking.istio.io/Gateway/a/b")
	f.Add("a/b", "%", "networking.istio.io/Gateway/a%2Fb/%25")
	k := testKeys(f)
	f.Fuzz(func(t *testing.T, namespace, name, raw string) {
		if name != "" {
			key := configstore.ConfigKey{Kind: istio.Gateway, Namespace: namespace, Name: name}
			if back, err := k.parse(k.of(key)); err != nil || back != key || strings.Count(k.of(key), "/") != 5 {
				t.Errorf("%v has the key %q, which is %v, %v", key, k.of(key), back, err)
			}
		}
		if object, err := k.parse(k.prefix + raw); err == nil && k.of(object) != k.prefix+raw {
			t.Errorf("%q and %q are both %v", k.prefix+raw, k.of(object), object)
		}
	})
}
