// SPDX-License-Identifier: Apache-2.0

package traffic_test

import (
	"fmt"
	"strings"

	"github.com/pilotkit/pilotkit/registry"
)

func repeat(n int, separator string, of func(i int) string) string {
	out := make([]string, n)
	for i := range out {
		out[i] = of(i)
	}
	return strings.Join(out, separator)
}

// nested is "*.x.x.x.example.com" with i labels.
func nested(i int) string { return `"*.` + strings.Repeat("x.", i) + `example.com"` }

const toEvil = `"route":[{"destination":{"host":"evil.example.com"}}]`

// longMultiplications take long.
var longMultiplications = []string{"one delegate and many roots", "a policy and services", "a wildcard and services"}

// multiplications are objects of a few KB that multiply with one another.
var multiplications = map[string]struct {
	add func(m *multiplying)
	// left is the kind of what is left out; empty: everything fits.
	left string
}{
	"matches and destinations": {func(m *multiplying) {
		m.object("VirtualService", "evil/v", `{"hosts":["evil.example.com"],"gateways":["mesh","ingress/edge"],"http":[{"match":[`+
			repeat(80, ",", func(i int) string { return fmt.Sprintf(`{"uri":{"prefix":"/%d"}}`, i) })+`],"route":[`+
			repeat(80, ",", func(i int) string { return fmt.Sprintf(`{"destination":{"host":"e%d"},"weight":1}`, i) })+`]}]}`)
	}, "VirtualService"},
	"matches and mirrors": {func(m *multiplying) {
		m.object("VirtualService", "evil/v", `{"hosts":["evil.example.com"],"gateways":["mesh","ingress/edge"],"http":[{`+toEvil+`,"match":[`+
			repeat(80, ",", func(i int) string { return fmt.Sprintf(`{"uri":{"prefix":"/%d"}}`, i) })+`],"mirrors":[`+
			repeat(80, ",", func(i int) string { return fmt.Sprintf(`{"destination":{"host":"e%d"}}`, i) })+`]}]}`)
	}, "VirtualService"},
	"matches and headers": {func(m *multiplying) {
		m.object("VirtualService", "evil/v", `{"hosts":["evil.example.com"],"gateways":["mesh","ingress/edge"],"http":[{`+toEvil+`,"match":[`+
			repeat(80, ",", func(i int) string { return fmt.Sprintf(`{"uri":{"prefix":"/%d"}}`, i) })+`],"headers":{"request":{"remove":[`+
			repeat(400, ",", func(i int) string { return fmt.Sprintf(`"x-%d"`, i) })+`]}},"corsPolicy":{"allowOrigins":[`+
			repeat(100, ",", func(i int) string { return fmt.Sprintf(`{"exact":"x-%d"}`, i) })+`]}}]}`)
	}, "VirtualService"},
	"one delegate and many rules": {func(m *multiplying) {
		m.object("VirtualService", "evil/v", `{"hosts":["evil.example.com"],"gateways":["mesh","ingress/edge"],"http":[`+
			repeat(100, ",", func(i int) string {
				return fmt.Sprintf(`{"match":[{"headers":{"x":{"exact":"%d"}}}],"delegate":{"name":"d"}}`, i)
			})+`]}`)
		m.object("VirtualService", "evil/d", `{"http":[{`+toEvil+`,"match":[`+repeat(100, ",", func(i int) string { return fmt.Sprintf(`{"uri":{"prefix":"/%d"}}`, i) })+`]}]}`)
	}, "VirtualService"},
	"one delegate and many roots": {func(m *multiplying) {
		for i := range 80 {
			m.object("VirtualService", fmt.Sprintf("evil/v%d", i), fmt.Sprintf(`{"hosts":["e%d.example.com"],"gateways":["mesh","ingress/edge"],"http":[{"delegate":{"name":"d"}}]}`, i))
		}
		m.object("VirtualService", "evil/d", `{"http":[{`+toEvil+`,"match":[`+repeat(80, ",", func(i int) string { return fmt.Sprintf(`{"uri":{"prefix":"/%d"}}`, i) })+`]}]}`)
	}, "VirtualService"},
	"nested wildcards": {func(m *multiplying) {
		m.object("Gateway", "evil/nested", `{"selector":{"app":"edge"},"servers":[{"port":{"number":80,"name":"http","protocol":"HTTP"},"hosts":[`+repeat(100, ",", func(i int) string { return nested(i + 1) })+`]}]}`)
		for i := range 100 {
			m.object("VirtualService", fmt.Sprintf("evil/v%d", i), `{"hosts":[`+nested(i+1)+`],"gateways":["nested"],"http":[{`+toEvil+`,"match":[`+
				repeat(10, ",", func(i int) string { return fmt.Sprintf(`{"uri":{"prefix":"/%d"}}`, i) })+`]}]}`)
		}
	}, "VirtualService"},
	"a wildcard over unlike hosts": {func(m *multiplying) {
		m.object("Gateway", "evil/unlike", `{"selector":{"app":"edge"},"servers":[{"port":{"number":80,"name":"http","protocol":"HTTP"},"hosts":[`+repeat(200, ",", func(i int) string { return fmt.Sprintf(`"e%d.example.com"`, i) })+`]}]}`)
		m.object("VirtualService", "evil/all", `{"hosts":["*"],"gateways":["unlike"],"http":[{`+toEvil+`,"match":[`+
			repeat(100, ",", func(i int) string { return fmt.Sprintf(`{"uri":{"prefix":"/%d"}}`, i) })+`]}]}`)
		for i := range 200 {
			m.object("VirtualService", fmt.Sprintf("evil/v%d", i), fmt.Sprintf(`{"hosts":["e%d.example.com"],"gateways":["unlike"],"http":[{%s}]}`, i, toEvil))
		}
	}, "VirtualService"},
	"a wildcard and services": {func(m *multiplying) {
		for i := range 60 {
			m.service("evil", registry.Hostname(fmt.Sprintf("e%d.evil.example.com", i)), 80)
		}
		m.object("VirtualService", "evil/v", `{"hosts":["*.evil.example.com"],"http":[{`+toEvil+`,"match":[`+
			repeat(60, ",", func(i int) string { return fmt.Sprintf(`{"uri":{"prefix":"/%d"}}`, i) })+`]}]}`)
	}, "VirtualService"},
	"routes and ports": {func(m *multiplying) {
		var ports []uint32
		for i := range uint32(120) {
			ports = append(ports, 10_000+i)
		}
		m.service("evil", "evil.example.com", ports...)
		m.object("VirtualService", "evil/v", `{"hosts":["evil.example.com"],"http":[{`+toEvil+`,"match":[`+
			repeat(60, ",", func(i int) string { return fmt.Sprintf(`{"uri":{"prefix":"/%d"}}`, i) })+`]}]}`)
	}, "VirtualService"},
	"routes and servers": {func(m *multiplying) {
		m.object("Gateway", "evil/many", `{"selector":{"app":"edge"},"servers":[`+
			repeat(200, ",", func(i int) string {
				return fmt.Sprintf(`{"port":{"number":%d,"name":"http","protocol":"HTTP"},"hosts":["evil.example.com"]}`, 10_000+i)
			})+`]}`)
		m.object("VirtualService", "evil/v", `{"hosts":["evil.example.com"],"gateways":["many"],"http":[{`+toEvil+`,"match":[`+
			repeat(100, ",", func(i int) string { return fmt.Sprintf(`{"uri":{"prefix":"/%d"}}`, i) })+`]}]}`)
	}, "VirtualService"},
	"TLS matches and destinations": {func(m *multiplying) {
		m.object("VirtualService", "evil/v", `{"hosts":["*.evil.example.com"],"gateways":["ingress/edge"],"tls":[{"match":[`+
			repeat(80, ",", func(i int) string { return fmt.Sprintf(`{"sniHosts":["e%d.evil.example.com"]}`, i) })+`],"route":[`+
			repeat(80, ",", func(i int) string { return fmt.Sprintf(`{"destination":{"host":"e%d"},"weight":1}`, i) })+`]}]}`)
	}, "VirtualService"},
	"TLS routes and servers": {func(m *multiplying) {
		m.object("Gateway", "evil/many", `{"selector":{"app":"edge"},"servers":[`+
			repeat(200, ",", func(i int) string {
				return fmt.Sprintf(`{"port":{"number":%d,"name":"tls","protocol":"TLS"},"hosts":["evil.example.com"],"tls":{"mode":"PASSTHROUGH"}}`, 10_000+i)
			})+`]}`)
		m.object("VirtualService", "evil/v", `{"hosts":["evil.example.com"],"gateways":["many"],"tls":[{"match":[{"sniHosts":["evil.example.com"]}],"route":[`+
			repeat(200, ",", func(i int) string { return fmt.Sprintf(`{"destination":{"host":"e%d"},"weight":1}`, i) })+`]}]}`)
	}, "VirtualService"},
	"many TLS routes": {func(m *multiplying) {
		for i := range 60 {
			m.object("VirtualService", fmt.Sprintf("evil/v%d", i), fmt.Sprintf(`{"hosts":["*.e%d.example.com"],"gateways":["ingress/edge"],"tls":[{"match":[`, i)+
				repeat(20, ",", func(j int) string { return fmt.Sprintf(`{"sniHosts":["e%d.e%d.example.com"]}`, j, i) })+`],"route":[`+
				repeat(20, ",", func(i int) string { return fmt.Sprintf(`{"destination":{"host":"e%d"},"weight":1}`, i) })+`]}]}`)
		}
	}, "VirtualService"},
	"TCP routes and servers": {func(m *multiplying) {
		m.object("Gateway", "evil/many", `{"selector":{"app":"edge"},"servers":[`+
			repeat(200, ",", func(i int) string {
				return fmt.Sprintf(`{"port":{"number":%d,"name":"tcp","protocol":"TCP"},"hosts":["*"]}`, 10_000+i)
			})+`]}`)
		m.object("VirtualService", "evil/v", `{"hosts":["evil.example.com"],"gateways":["many"],"tcp":[{"route":[`+
			repeat(200, ",", func(i int) string { return fmt.Sprintf(`{"destination":{"host":"e%d"},"weight":1}`, i) })+`]}]}`)
	}, "VirtualService"},
	"subsets and ports": {func(m *multiplying) {
		var ports []uint32
		for i := range uint32(100) {
			ports = append(ports, 10_000+i)
		}
		m.service("evil", "evil.example.com", ports...)
		m.object("DestinationRule", "evil/r", `{"host":"evil.example.com","subsets":[`+repeat(100, ",", func(i int) string { return fmt.Sprintf(`{"name":"v%d"}`, i) })+`]}`)
	}, "DestinationRule"},
	"subsets and services": {func(m *multiplying) {
		for i := range 60 {
			m.service("evil", registry.Hostname(fmt.Sprintf("e%d.evil.example.com", i)), 80)
		}
		m.object("DestinationRule", "evil/r", `{"host":"*.example.com","subsets":[`+repeat(60, ",", func(i int) string { return fmt.Sprintf(`{"name":"v%d"}`, i) })+`]}`)
	}, "DestinationRule"},
	"a policy and services": {func(m *multiplying) {
		for i := range 100 {
			m.service("evil", registry.Hostname(fmt.Sprintf("e%d.evil.example.com", i)), 80)
		}
		m.object("DestinationRule", "evil/r", `{"host":"*.example.com","trafficPolicy":{"tls":{"mode":"SIMPLE","subjectAltNames":[`+repeat(1000, ",", func(i int) string { return fmt.Sprintf(`"v%d"`, i) })+`]}}}`)
	}, "DestinationRule"},
	"a ring, ports and subsets": {func(m *multiplying) {
		m.service("evil", "evil.example.com", 80, 81, 82, 83)
		m.object("DestinationRule", "evil/r", `{"host":"evil.example.com","trafficPolicy":{"loadBalancer":{"consistentHash":{"httpHeaderName":"x"}}},"subsets":[`+
			repeat(40, ",", func(i int) string { return fmt.Sprintf(`{"name":"v%d"}`, i) })+`]}`)
	}, "DestinationRule"},
	"a ring and services": {func(m *multiplying) {
		for i := range 100 {
			m.service("evil", registry.Hostname(fmt.Sprintf("e%d.evil.example.com", i)), 80)
		}
		m.object("DestinationRule", "evil/r", `{"host":"*.evil.example.com","trafficPolicy":{"loadBalancer":{"consistentHash":{"httpHeaderName":"x"}}}}`)
	}, "DestinationRule"},
	"tables and priorities": {func(m *multiplying) {
		m.service("evil", "evil.example.com", 80)
		m.object("DestinationRule", "evil/r", `{"host":"evil.example.com","trafficPolicy":{"loadBalancer":{"localityLbSetting":{"failoverPriority":["a","b","c"]},`+
			`"consistentHash":{"httpHeaderName":"x","maglev":{"tableSize":"16411"}}},"outlierDetection":{}}}`)
	}, "DestinationRule"},
	"regular expressions": {func(m *multiplying) {
		m.object("VirtualService", "evil/v", `{"hosts":["evil.example.com"],"gateways":["mesh","ingress/edge"],"http":[{`+toEvil+`,"match":[`+
			repeat(100, ",", func(i int) string { return fmt.Sprintf(`{"uri":{"regex":"/%d[a-z]{1000}"}}`, i) })+`]}]}`)
	}, "VirtualService"},
	"mirrors": {func(m *multiplying) {
		m.object("VirtualService", "evil/v", `{"hosts":["evil.example.com"],"http":[{`+toEvil+`,"mirrors":[`+
			repeat(1000, ",", func(int) string { return `{"destination":{"host":"evil.example.com"}}` })+`]}]}`)
	}, "VirtualService"},
	"port settings and subsets": {func(m *multiplying) {
		m.service("evil", "evil.example.com", 80, 81, 82, 83)
		m.object("DestinationRule", "evil/r", `{"host":"evil.example.com","trafficPolicy":{"portLevelSettings":[`+
			repeat(100, ",", func(i int) string {
				return fmt.Sprintf(`{"port":{"number":%d},"tls":{"mode":"SIMPLE","sni":"a"}}`, 80+i)
			})+`]},"subsets":[`+
			repeat(40, ",", func(i int) string { return fmt.Sprintf(`{"name":"v%d"}`, i) })+`]}`)
	}, ""},
	"AUTO_PASSTHROUGH servers": {func(m *multiplying) {
		for i := range 50 {
			m.service("evil", registry.Hostname(fmt.Sprintf("e%d.evil.example.com", i)), 80, 81)
		}
		m.object("Gateway", "evil/auto", `{"selector":{"app":"edge"},"servers":[`+
			repeat(100, ",", func(i int) string {
				return fmt.Sprintf(`{"port":{"number":%d,"name":"auto","protocol":"TLS"},"hosts":["*.example.com"],"tls":{"mode":"AUTO_PASSTHROUGH"}}`, 10_000+i)
			})+`]}`)
	}, "Gateway"},
	"egress listeners": {func(m *multiplying) {
		for i := range 50 {
			m.service("evil", registry.Hostname(fmt.Sprintf("e%d.evil.example.com", i)), 80)
		}
		m.object("Sidecar", "evil/s", `{"egress":[`+repeat(200, ",", func(i int) string {
			return fmt.Sprintf(`{"port":{"number":%d,"name":"http","protocol":"HTTP_PROXY"},"hosts":["*/*"]}`, 10_000+i)
		})+`]}`)
	}, "Sidecar"},
	"exports": {func(m *multiplying) {
		m.object("VirtualService", "evil/v", `{"hosts":["evil.example.com"],"exportTo":[`+repeat(1000, ",", func(i int) string { return fmt.Sprintf(`"n%d"`, i) })+`,"good"],
			"gateways":["mesh","ingress/edge"],"http":[{`+toEvil+`}]}`)
	}, ""},
}
