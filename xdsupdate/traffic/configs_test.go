// SPDX-License-Identifier: Apache-2.0

package traffic_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/istio"
)

// configList is the objects of a scene, each younger than the one before.
type configList []*configstore.Config

// add adds an object by its "namespace/name".
func (l *configList) add(kind configstore.GroupVersionKind, key string, spec proto.Message) {
	namespace, name, _ := strings.Cut(key, "/")
	*l = append(*l, &configstore.Config{Meta: configstore.Meta{
		GroupVersionKind: kind, Namespace: namespace, Name: name, CreationTimestamp: time.Unix(int64(len(*l)), 0),
	}, Spec: spec})
}

// objectsOf returns the objects of texts, each "Kind namespace/name {spec in JSON}".
func objectsOf(tb testing.TB, texts ...string) configList {
	tb.Helper()
	var out configList
	for _, text := range texts {
		kind, rest, _ := strings.Cut(text, " ")
		key, body, _ := strings.Cut(rest, " ")
		schema := schemaOf(tb, kind)
		out.add(schema.GroupVersionKind, key, spec(tb, body, schema.NewSpec()))
	}
	return out
}

func schemaOf(tb testing.TB, kind string) configstore.Schema {
	tb.Helper()
	for _, schema := range istio.Schemas().All() {
		if schema.GroupVersionKind.Kind == kind {
			return schema
		}
	}
	tb.Fatalf("no kind %s", kind)
	return configstore.Schema{}
}

// spec decodes JSON into a message.
func spec[M proto.Message](tb testing.TB, text string, m M) M {
	tb.Helper()
	if err := protojson.Unmarshal([]byte(text), m); err != nil {
		tb.Fatalf("%s: %v", text, err)
	}
	return m
}

// serverOf is a server of a Gateway; tls is "", "redirect", "pass", "auto" or the
// credential of a server that terminates TLS.
func serverOf(port uint32, protocol, tls string, hosts ...string) *networking.Server {
	s := &networking.Server{
		Port:  &networking.Port{Number: port, Name: fmt.Sprintf("%s-%d-%s", strings.ToLower(protocol), port, tls), Protocol: protocol},
		Hosts: hosts,
	}
	switch tls {
	case "":
	case "redirect":
		s.Tls = &networking.ServerTLSSettings{HttpsRedirect: true}
	case "pass":
		s.Tls = &networking.ServerTLSSettings{Mode: networking.ServerTLSSettings_PASSTHROUGH}
	case "auto":
		s.Tls = &networking.ServerTLSSettings{Mode: networking.ServerTLSSettings_AUTO_PASSTHROUGH}
	default:
		s.Tls = &networking.ServerTLSSettings{Mode: networking.ServerTLSSettings_SIMPLE, CredentialName: tls}
	}
	return s
}

func bound(bind string, s *networking.Server) *networking.Server {
	s.Bind = bind
	return s
}

// gatewayOf is a Gateway of the router that edge returns.
func gatewayOf(servers ...*networking.Server) *networking.Gateway {
	return &networking.Gateway{Selector: map[string]string{"app": "edge"}, Servers: servers}
}

// toCart is a VirtualService that sends a path of some hosts to cart.
func toCart(path string, gateways []string, hosts ...string) *networking.VirtualService {
	return &networking.VirtualService{Hosts: hosts, Gateways: gateways, Http: []*networking.HTTPRoute{{
		Match: []*networking.HTTPMatchRequest{{Uri: &networking.StringMatch{MatchType: &networking.StringMatch_Prefix{Prefix: path}}}},
		Route: []*networking.HTTPRouteDestination{{Destination: &networking.Destination{Host: "cart"}}},
	}}}
}

// onceIn returns true once in n times.
func onceIn(r *rand.Rand, n int) bool { return r.IntN(n) == 0 }

// pick returns one of a list.
func pick[T any](r *rand.Rand, from []T) T { return from[r.IntN(len(from))] }
