// SPDX-License-Identifier: Apache-2.0

package randomobjects

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"google.golang.org/protobuf/encoding/protojson"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/istio"
)

// GoodTenants returns the other namespaces. Each of them has a service TENANT.good.test, and a VirtualService for that
// host of the Gateway ingress/edge. Their objects are created at the Unix time 1000 and thereafter, before 2000.
func GoodTenants() []string { return []string{"shop", "billing", "ledger"} }

// Hostile returns random objects of the namespace evil. Objects that reference hosts or ports of the
// good tenants are younger than theirs, because by the threat model the oldest object counts.
func Hostile(seed uint64) []*configstore.Config {
	r := rand.New(rand.NewPCG(seed, 39)) //nolint:gosec // chosen to be repeated
	var out []*configstore.Config
	for i := range 1 + r.IntN(20) {
		kind, name, _, object := Dice{r}.Object()
		if onceIn(r, 12) {
			kind, object = istio.PeerAuthentication, Dice{r}.peerAuthentication()
		}
		text, created := protojson.Format(object), time.Unix(int64(i), 0)
		if onceIn(r, 2) {
			victim := pick(r, GoodTenants()) + ".good.test"
			text = strings.NewReplacer("api.example.com", victim, "cart.shop.svc.cluster.local", victim, "*.example.com", "*.good.test").Replace(text)
			created = time.Unix(int64(2000+i), 0)
		}
		if kind == istio.Gateway {
			created = time.Unix(int64(2000+i), 0)
		}
		if onceIn(r, 3) {
			text, created = garbled(r, text), time.Unix(int64(2000+i), 0) // it may reference a good tenant now
		}
		c := &configstore.Config{Meta: configstore.Meta{GroupVersionKind: kind, Namespace: "evil", Name: fmt.Sprint(name, i), CreationTimestamp: created}}
		schema, _ := istio.Schemas().Find(kind)
		if c.Spec = schema.NewSpec(); protojson.Unmarshal([]byte(text), c.Spec) != nil {
			c.Spec = object // the garbled text cannot be decoded as a spec
		}
		out = append(out, c)
	}
	return out
}

// garbled replaces one of the quoted texts in a JSON object.
func garbled(r *rand.Rand, text string) string {
	parts := strings.Split(text, `"`)
	if values := len(parts) / 2; values > 0 {
		parts[2*r.IntN(values)+1] = pick(r, []string{
			"", "*", "*.", "~", ".", "/", "*/*", "%ENVIRONMENT(HOME)%", "(", "[", "[::1", "\u0000", "http://x", "unix:///tmp/x", "10.9.9.1", "0.0.0.0",
			"::", strings.Repeat("x", 300), "good.test", "*.good.test", "shop/shop.good.test", "SHOP.good.test.", "ingress/edge", "<b>",
		})
	}
	return strings.Join(parts, `"`)
}

// Unvalidated returns the schemas of Istio's kinds without validation.
func Unvalidated() configstore.Schemas {
	schemas := configstore.NewSchemasBuilder()
	for _, s := range istio.Schemas().All() {
		s.Validate, s.Text = nil, nil
		schemas.MustAdd(s)
	}
	return schemas.Build()
}
