// SPDX-License-Identifier: Apache-2.0

package istio_test

import (
	"testing"

	"github.com/pilotkit/pilotkit/configstore/istio"
)

const destinationRuleBase = `
host: reviews.prod.svc.cluster.local
trafficPolicy:
  loadBalancer:
    simple: ROUND_ROBIN
    warmup: {duration: 30s, minimumPercent: 10, aggression: 1.5}
    localityLbSetting:
      distribute:
      - from: us-west/zone1/*
        to: {us-west/zone1/*: 80, us-west/zone2/*: 20}
  connectionPool:
    tcp:
      maxConnections: 100
      connectTimeout: 0.030s
      maxConnectionDuration: 3600s
      idleTimeout: 0s
      tcpKeepalive: {time: 7200s, interval: 75s, probes: 3}
    http:
      http1MaxPendingRequests: 1
      http2MaxRequests: 2
      maxRequestsPerConnection: 3
      maxRetries: 4
      maxConcurrentStreams: 5
      idleTimeout: 5s
      h2UpgradePolicy: UPGRADE
      http2KeepAlive: {interval: 10s, timeout: 1s}
  outlierDetection:
    consecutive5xxErrors: 7
    interval: 300s
    baseEjectionTime: 900s
    maxEjectionPercent: 50
    minHealthPercent: 0
    splitExternalLocalOriginErrors: true
    consecutiveLocalOriginFailures: 3
    outlierDetectionHttpErrorCodes: [100, 599]
  tls: {mode: MUTUAL, clientCertificate: a, privateKey: b, caCertificates: c}
  portLevelSettings:
  - port: {number: 80}
    tls: {mode: ISTIO_MUTUAL}
  proxyProtocol: {version: V2}
  retryBudget: {percent: 20, minRetryConcurrency: 3}
subsets:
- {name: v1, labels: {version: v1}, trafficPolicy: {loadBalancer: {simple: RANDOM}}}
- {name: v2}
exportTo: [., other]
`

func TestDestinationRule(t *testing.T) {
	testRules(t, istio.DestinationRule, destinationRuleBase, []ruleTest{
		{name: "short host", spec: `host: reviews`},
		{name: "wildcard", spec: `host: "*.example.com"`},
		{name: "everything", spec: `host: "*"`},
		{name: "no host", spec: `host: ""`, violations: []string{"spec.host: is required"}},
		{
			name:       "IP address",
			spec:       `host: 1.2.3.4`,
			violations: []string{`spec.host: must be a domain name, is "1.2.3.4": its last label must not be a number`},
		},
		{name: "no policy", spec: `trafficPolicy: null`},
		{name: "empty policy", spec: `trafficPolicy: {}`, violations: []string{"spec.trafficPolicy: must not be empty"}},
		{
			name: "subsets",
			spec: `subsets: [{name: v1}, {name: v_1, labels: {a b: c}, trafficPolicy: {}}, {}, {name: v1}]`,
			violations: []string{
				`spec.subsets[1].name: must be a DNS label (letters, digits and inner dashes, at most 63 characters), is "v_1"`,
				"spec.subsets[1].labels[a b]: key must end in a name (letters, digits, and inside also '-', '_' and '.', at most 63 characters)",
				"spec.subsets[1].trafficPolicy: must not be empty",
				"spec.subsets[2].name: is required",
				`spec.subsets[3].name: repeats spec.subsets[0].name: "v1"`,
			},
		},
		{
			name:       "exported to nobody",
			spec:       `exportTo: ["~"]`,
			violations: []string{"spec.exportTo[0]: must not be ~ for a DestinationRule"},
		},
		{name: "selector", spec: `{workloadSelector: {matchLabels: {app: a}}, exportTo: [.]}`},
		{name: "selector, own namespace by name", spec: `{workloadSelector: {matchLabels: {app: a}}, exportTo: [ns]}`},
		{name: "selector, exported by default", spec: `{workloadSelector: {matchLabels: {app: a}}, exportTo: []}`},
		{
			name: "selector, exported",
			spec: `{workloadSelector: {matchLabels: {app: "a*"}}, exportTo: [., other]}`,
			violations: []string{
				`spec.workloadSelector.matchLabels[app]: must not contain a wildcard, is "a*"`,
				`spec.exportTo[1]: must be the own namespace together with a workloadSelector, is "other"`,
			},
		},
		{
			name:     "empty selector",
			spec:     `{workloadSelector: {}, exportTo: []}`,
			warnings: []string{"spec.workloadSelector.matchLabels: is empty: will be applied to all workloads in the namespace"},
		},
	})
}

func TestTrafficPolicy(t *testing.T) {
	testRules(t, istio.DestinationRule, destinationRuleBase, []ruleTest{
		{
			name: "port settings",
			spec: `trafficPolicy: {portLevelSettings: [{}, {port: {number: 0}, tls: {}}, {port: {number: 65536}, tls: {}}, {port: {number: 80}, tls: {}}, {port: {number: 80}, tls: {}}]}`,
			violations: []string{
				"spec.trafficPolicy.portLevelSettings[0].port: is required",
				"spec.trafficPolicy.portLevelSettings[0]: must have one of loadBalancer, connectionPool, outlierDetection, tls",
				"spec.trafficPolicy.portLevelSettings[1].port.number: must be 1–65535, is 0",
				"spec.trafficPolicy.portLevelSettings[2].port.number: must be 1–65535, is 65536",
			},
			warnings: []string{"spec.trafficPolicy.portLevelSettings[4].port: repeats portLevelSettings[3].port: 80"},
		},
		{
			name: "tunnel",
			spec: `trafficPolicy: {tunnel: {protocol: GET, targetHost: a_b, targetPort: 0}, proxyProtocol: {version: 7}}`,
			violations: []string{
				`spec.trafficPolicy.tunnel.protocol: must be CONNECT or POST, is "GET"`,
				`spec.trafficPolicy.tunnel.targetHost: must be an IP address or a domain name, is "a_b"`,
				"spec.trafficPolicy.tunnel.targetPort: must be 1–65535, is 0",
				"spec.trafficPolicy.proxyProtocol.version: must be one of V1, V2, is 7",
				"spec.trafficPolicy.proxyProtocol: must not be set together with a tunnel",
			},
		},
		{
			name:       "tunnel without host",
			spec:       `trafficPolicy: {tunnel: {targetPort: 1}}`,
			violations: []string{"spec.trafficPolicy.tunnel.targetHost: is required"},
		},
		{name: "tunnel to an address", spec: `trafficPolicy: {tunnel: {protocol: POST, targetHost: "::1", targetPort: 1}}`},
		{
			name: "retry budget",
			spec: `trafficPolicy: {retryBudget: {percent: 101, budgetInterval: 0.0005s}}`,
			violations: []string{
				"spec.trafficPolicy.retryBudget.percent: must be 0–100, is 101",
				"spec.trafficPolicy.retryBudget.budgetInterval: must be at least 1ms, is 500µs",
			},
		},
		{
			name:     "retry budget over an interval",
			spec:     `trafficPolicy: {retryBudget: {budgetInterval: 1s}}`,
			warnings: []string{"spec.trafficPolicy.retryBudget.budgetInterval: has no effect, is 1s; retries are compared with the requests of the moment"},
		},
		{name: "retry budget of the moment", spec: `trafficPolicy: {retryBudget: {budgetInterval: 0s}}`},
		{
			name:       "empty pool",
			spec:       `trafficPolicy: {connectionPool: {}}`,
			violations: []string{"spec.trafficPolicy.connectionPool: must have one of tcp, http"},
		},
		{
			name: "TCP pool",
			spec: `trafficPolicy: {connectionPool: {tcp: {maxConnections: -1, connectTimeout: 0s, maxConnectionDuration: 0.0015s, idleTimeout: -1s, tcpKeepalive: {time: 0s, interval: 0s}}}}`,
			violations: []string{
				"spec.trafficPolicy.connectionPool.tcp.maxConnections: must not be negative, is -1",
				"spec.trafficPolicy.connectionPool.tcp.connectTimeout: must be at least 1ms, is 0s",
				"spec.trafficPolicy.connectionPool.tcp.maxConnectionDuration: must be whole milliseconds, is 1.5ms",
				"spec.trafficPolicy.connectionPool.tcp.idleTimeout: must be at least 1ms, is -1s",
				"spec.trafficPolicy.connectionPool.tcp.tcpKeepalive.time: must be at least 1ms, is 0s",
				"spec.trafficPolicy.connectionPool.tcp.tcpKeepalive.interval: must be at least 1ms, is 0s",
			},
		},
		{
			name: "HTTP pool",
			spec: `trafficPolicy: {connectionPool: {http: {http1MaxPendingRequests: -1, http2MaxRequests: -2, maxRequestsPerConnection: -3, maxRetries: -4, maxConcurrentStreams: -5, idleTimeout: 0s, h2UpgradePolicy: 9}}}`,
			violations: []string{
				"spec.trafficPolicy.connectionPool.http.http1MaxPendingRequests: must not be negative, is -1",
				"spec.trafficPolicy.connectionPool.http.http2MaxRequests: must not be negative, is -2",
				"spec.trafficPolicy.connectionPool.http.maxRequestsPerConnection: must not be negative, is -3",
				"spec.trafficPolicy.connectionPool.http.maxRetries: must not be negative, is -4",
				"spec.trafficPolicy.connectionPool.http.maxConcurrentStreams: must not be negative, is -5",
				"spec.trafficPolicy.connectionPool.http.idleTimeout: must be at least 1ms, is 0s",
				"spec.trafficPolicy.connectionPool.http.h2UpgradePolicy: must be one of DEFAULT, DO_NOT_UPGRADE, UPGRADE, is 9",
			},
		},
		{
			name: "HTTP upgrades and keepalive",
			spec: `trafficPolicy: {connectionPool: {http: {useClientProtocol: true, h2UpgradePolicy: UPGRADE, http2KeepAlive: {timeout: 0s}}}}`,
			violations: []string{
				"spec.trafficPolicy.connectionPool.http.useClientProtocol: must not be set together with h2UpgradePolicy UPGRADE",
				"spec.trafficPolicy.connectionPool.http.http2KeepAlive.interval: is required",
				"spec.trafficPolicy.connectionPool.http.http2KeepAlive.timeout: must be at least 1ms, is 0s",
			},
		},
		{
			name: "outlier detection",
			spec: `trafficPolicy: {outlierDetection: {consecutiveErrors: -1, interval: 0s, baseEjectionTime: 0s, maxEjectionPercent: 101, minHealthPercent: -1, consecutiveLocalOriginFailures: 3, outlierDetectionHttpErrorCodes: [99, 600]}}`,
			violations: []string{
				"spec.trafficPolicy.outlierDetection.consecutiveErrors: must not be negative, is -1",
				"spec.trafficPolicy.outlierDetection.interval: must be at least 1ms, is 0s",
				"spec.trafficPolicy.outlierDetection.baseEjectionTime: must be at least 1ms, is 0s",
				"spec.trafficPolicy.outlierDetection.maxEjectionPercent: must be 0–100, is 101",
				"spec.trafficPolicy.outlierDetection.minHealthPercent: must be 0–100, is -1",
				"spec.trafficPolicy.outlierDetection.consecutiveLocalOriginFailures: must not be set without splitExternalLocalOriginErrors, is 3",
				"spec.trafficPolicy.outlierDetection.outlierDetectionHttpErrorCodes[0]: must be 100–599, is 99",
				"spec.trafficPolicy.outlierDetection.outlierDetectionHttpErrorCodes[1]: must be 100–599, is 600",
			},
			warnings: []string{"spec.trafficPolicy.outlierDetection.consecutiveErrors: is deprecated; use consecutive5xxErrors or consecutiveGatewayErrors"},
		},
	})
}

func TestLoadBalancer(t *testing.T) {
	testRules(t, istio.DestinationRule, destinationRuleBase, []ruleTest{
		{
			name:       "unknown algorithm",
			spec:       `trafficPolicy: {loadBalancer: {simple: 9}}`,
			violations: []string{"spec.trafficPolicy.loadBalancer.simple: must be one of UNSPECIFIED, LEAST_CONN, RANDOM, PASSTHROUGH, ROUND_ROBIN, LEAST_REQUEST, is 9"},
		},
		{
			name:     "deprecated algorithm",
			spec:     `trafficPolicy: {loadBalancer: {simple: LEAST_CONN}}`,
			warnings: []string{"spec.trafficPolicy.loadBalancer.simple: LEAST_CONN is deprecated; use LEAST_REQUEST"},
		},
		{
			name: "cookie",
			spec: `trafficPolicy: {loadBalancer: {consistentHash: {httpCookie: {ttl: -1s, attributes: [{name: a}, {}, {name: a}]}}}}`,
			violations: []string{
				"spec.trafficPolicy.loadBalancer.consistentHash.httpCookie.name: is required",
				"spec.trafficPolicy.loadBalancer.consistentHash.httpCookie.ttl: must be at least 1ms, is -1s",
				"spec.trafficPolicy.loadBalancer.consistentHash.httpCookie.attributes[1].name: is required",
				`spec.trafficPolicy.loadBalancer.consistentHash.httpCookie.attributes[2].name: repeats attributes[0].name: "a"`,
			},
		},
		{name: "session cookie", spec: `trafficPolicy: {loadBalancer: {consistentHash: {httpCookie: {name: a, ttl: 0s}}}}`},
		{
			name:       "empty header",
			spec:       `trafficPolicy: {loadBalancer: {consistentHash: {httpHeaderName: ""}}}`,
			violations: []string{"spec.trafficPolicy.loadBalancer.consistentHash.httpHeaderName: must not be empty"},
		},
		{
			name:       "empty parameter",
			spec:       `trafficPolicy: {loadBalancer: {consistentHash: {httpQueryParameterName: ""}}}`,
			violations: []string{"spec.trafficPolicy.loadBalancer.consistentHash.httpQueryParameterName: must not be empty"},
		},
		{
			name:     "no hash key",
			spec:     `trafficPolicy: {loadBalancer: {consistentHash: {}}}`,
			warnings: []string{"spec.trafficPolicy.loadBalancer.consistentHash: has no hash key: every request is hashed at random"},
		},
		{
			name: "two rings",
			spec: `trafficPolicy: {loadBalancer: {consistentHash: {useSourceIp: true, minimumRingSize: 1, ringHash: {minimumRingSize: 1}}}}`,
			violations: []string{
				"spec.trafficPolicy.loadBalancer.consistentHash.minimumRingSize: must not be set together with ringHash or maglev",
			},
			warnings: []string{
				"spec.trafficPolicy.loadBalancer.consistentHash.minimumRingSize: is deprecated; use ringHash.minimumRingSize",
			},
		},
		{
			name:       "table that is not prime",
			spec:       `trafficPolicy: {loadBalancer: {consistentHash: {useSourceIp: true, maglev: {tableSize: 65536}}}}`,
			violations: []string{"spec.trafficPolicy.loadBalancer.consistentHash.maglev.tableSize: must be a prime number less than 1048576, is 65536"},
		},
		{
			name:       "table that is too large",
			spec:       `trafficPolicy: {loadBalancer: {consistentHash: {useSourceIp: true, maglev: {tableSize: 1048583}}}}`,
			violations: []string{"spec.trafficPolicy.loadBalancer.consistentHash.maglev.tableSize: must be a prime number less than 1048576, is 1048583"},
		},
		{name: "table", spec: `trafficPolicy: {loadBalancer: {consistentHash: {useSourceIp: true, maglev: {tableSize: 65537}}}}`},
		{
			name: "default table",
			spec: `trafficPolicy: {loadBalancer: {consistentHash: {useSourceIp: true, maglev: {}}}}`,
			violations: []string{
				"spec.trafficPolicy.loadBalancer.consistentHash.maglev.tableSize: must be a prime number less than 1048576, is 0",
			},
		},
		{
			name: "warm-up",
			spec: `trafficPolicy: {loadBalancer: {simple: RANDOM, warmupDurationSecs: 0s, warmup: {minimumPercent: 101, aggression: 0}}}`,
			violations: []string{
				"spec.trafficPolicy.loadBalancer.warmupDurationSecs: must be at least 1ms, is 0s",
				"spec.trafficPolicy.loadBalancer.warmupDurationSecs: must not be set together with warmup",
				"spec.trafficPolicy.loadBalancer.warmup.duration: is required",
				"spec.trafficPolicy.loadBalancer.warmup.minimumPercent: must be 0–100, is 101",
				"spec.trafficPolicy.loadBalancer.warmup.aggression: must be above 0, is 0",
			},
			warnings: []string{
				"spec.trafficPolicy.loadBalancer.warmupDurationSecs: is deprecated; use warmup.duration",
				"spec.trafficPolicy.loadBalancer: warm-up has no effect with RANDOM, only with ROUND_ROBIN and LEAST_REQUEST",
			},
		},
		{
			name: "warm-up in the old form",
			spec: `trafficPolicy: {loadBalancer: {simple: LEAST_REQUEST, warmupDurationSecs: 30s}}`,
			warnings: []string{
				"spec.trafficPolicy.loadBalancer.warmupDurationSecs: is deprecated; use warmup.duration",
			},
		},
		{
			name: "numbers that are none",
			spec: `trafficPolicy: {loadBalancer: {warmup: {duration: 1s, minimumPercent: NaN, aggression: NaN}}}`,
			violations: []string{
				"spec.trafficPolicy.loadBalancer.warmup.minimumPercent: must be 0–100, is NaN",
				"spec.trafficPolicy.loadBalancer.warmup.aggression: must be above 0, is NaN",
			},
		},
		{
			name:     "warm-up with hashing",
			spec:     `trafficPolicy: {loadBalancer: {consistentHash: {useSourceIp: true}, warmup: {duration: 1s}}}`,
			warnings: []string{"spec.trafficPolicy.loadBalancer: warm-up has no effect with consistentHash, only with ROUND_ROBIN and LEAST_REQUEST"},
		},
		{
			name:       "locality and zone",
			spec:       `trafficPolicy: {loadBalancer: {localityLbSetting: {}, zoneAwareLbSetting: {}}}`,
			violations: []string{"spec.trafficPolicy.loadBalancer.zoneAwareLbSetting: must not be set together with localityLbSetting"},
		},
	})
}

func TestLocality(t *testing.T) {
	testRules(t, istio.DestinationRule, destinationRuleBase, []ruleTest{
		{
			name: "everything at once",
			spec: `trafficPolicy: {loadBalancer: {localityLbSetting: {distribute: [{from: a, to: {b: 100}}], failover: [{from: a, to: b}], failoverPriority: [a]}}}`,
			violations: []string{
				"spec.trafficPolicy.loadBalancer.localityLbSetting: must have only one of distribute, failover",
			},
			warnings: []string{
				"spec.trafficPolicy.loadBalancer.localityLbSetting: has a failover, which has no effect without outlierDetection",
			},
		},
		{
			name: "distribute",
			spec: `
trafficPolicy:
  loadBalancer:
    localityLbSetting:
      distribute:
      - {from: a/*, to: {a: 50, b: 49}}
      - {from: a/b, to: {"*": 50, a/b: 50}}
      - {from: a/*/b, to: {a: 0, b: 101}}
      - {from: "", to: {a/b/c/d: 100}}
      - {from: a/*, to: {}}`,
			violations: []string{
				"spec.trafficPolicy.loadBalancer.localityLbSetting.distribute[0].to: must add up to 100, adds up to 99",
				`spec.trafficPolicy.loadBalancer.localityLbSetting.distribute[1].to[a/b]: is covered by "*"`,
				`spec.trafficPolicy.loadBalancer.localityLbSetting.distribute[2].from: must have a wildcard at its end only, is "a/*/b"`,
				"spec.trafficPolicy.loadBalancer.localityLbSetting.distribute[2].to[a]: must be 1–100, is 0",
				"spec.trafficPolicy.loadBalancer.localityLbSetting.distribute[2].to[b]: must be 1–100, is 101",
				"spec.trafficPolicy.loadBalancer.localityLbSetting.distribute[2].to: must add up to 100, adds up to 101",
				`spec.trafficPolicy.loadBalancer.localityLbSetting.distribute[3].from: must be region/zone/subzone, is ""`,
				`spec.trafficPolicy.loadBalancer.localityLbSetting.distribute[3].to[a/b/c/d]: must be region/zone/subzone, is "a/b/c/d"`,
				`spec.trafficPolicy.loadBalancer.localityLbSetting.distribute[4].from: repeats "a/*"`,
				"spec.trafficPolicy.loadBalancer.localityLbSetting.distribute[4].to: must add up to 100, adds up to 0",
				`spec.trafficPolicy.loadBalancer.localityLbSetting.distribute[1].from: is "a/b", which "a/*" covers`,
				`spec.trafficPolicy.loadBalancer.localityLbSetting.distribute[2].from: is "a/*/b", which "a/*" covers`,
			},
		},
		{
			name: "failover",
			spec: `trafficPolicy: {loadBalancer: {localityLbSetting: {failover: [{from: a, to: b}, {from: a, to: a}, {from: a/b, to: "*"}, {}]}}}`,
			violations: []string{
				`spec.trafficPolicy.loadBalancer.localityLbSetting.failover[1].to: must be another region than from, is "a"`,
				`spec.trafficPolicy.loadBalancer.localityLbSetting.failover[2].from: must be a region without zones and wildcards, is "a/b"`,
				`spec.trafficPolicy.loadBalancer.localityLbSetting.failover[2].to: must be a region without zones and wildcards, is "*"`,
				`spec.trafficPolicy.loadBalancer.localityLbSetting.failover[3].to: must be another region than from, is ""`,
			},
			warnings: []string{
				"spec.trafficPolicy.loadBalancer.localityLbSetting.failover[3].from: is empty, which is not a region",
				"spec.trafficPolicy.loadBalancer.localityLbSetting.failover[3].to: is empty, which is not a region",
				"spec.trafficPolicy.loadBalancer.localityLbSetting: has a failover, which has no effect without outlierDetection",
			},
		},
		{
			name: "priorities",
			spec: `trafficPolicy: {loadBalancer: {localityLbSetting: {failoverPriority: [topology.istio.io/network, version=v1, a b, "a=b c"]}}}`,
			warnings: []string{
				`spec.trafficPolicy.loadBalancer.localityLbSetting.failoverPriority[2]: has no effect: the key must end in a name (letters, digits, and inside also '-', '_' and '.', at most 63 characters), is "a b"`,
				`spec.trafficPolicy.loadBalancer.localityLbSetting.failoverPriority[3]: has no effect: the part after '=' is not a label value (letters, digits, and inside also '-', '_' and '.', at most 63 characters), is "b c"`,
				"spec.trafficPolicy.loadBalancer.localityLbSetting: has a failover, which has no effect without outlierDetection",
			},
		},
		{
			name: "zone-aware",
			spec: `trafficPolicy: {loadBalancer: {zoneAwareLbSetting: {failover: [{from: a, to: a}], failoverPriority: [version=v1, topology.kubernetes.io/region, topology.kubernetes.io/zone=x, topology.istio.io/subzone], minClusterSize: 0}}}`,
			violations: []string{
				`spec.trafficPolicy.loadBalancer.zoneAwareLbSetting.failover[0].to: must be another region than from, is "a"`,
				"spec.trafficPolicy.loadBalancer.zoneAwareLbSetting.failoverPriority[1]: must not be topology.kubernetes.io/region here, where it is always taken into account",
				"spec.trafficPolicy.loadBalancer.zoneAwareLbSetting.failoverPriority[3]: must not be topology.istio.io/subzone here, where it is always taken into account",
				"spec.trafficPolicy.loadBalancer.zoneAwareLbSetting.minClusterSize: must be at least 1, is 0",
			},
			warnings: []string{
				"spec.trafficPolicy.loadBalancer.zoneAwareLbSetting: has a failover, which has no effect without outlierDetection",
			},
		},
		{name: "zone-aware defaults", spec: `trafficPolicy: {loadBalancer: {zoneAwareLbSetting: {enabled: true}}}`},
	})
}

func TestClientTLS(t *testing.T) {
	testRules(t, istio.DestinationRule, destinationRuleBase, []ruleTest{
		{name: "credential", spec: `trafficPolicy: {tls: {mode: MUTUAL, credentialName: a}}`},
		{
			name: "credential and files",
			spec: `trafficPolicy: {tls: {mode: SIMPLE, credentialName: a, clientCertificate: a, privateKey: b, caCertificates: c, caCrl: d}}`,
			violations: []string{
				"spec.trafficPolicy.tls.clientCertificate: must not be set together with credentialName",
				"spec.trafficPolicy.tls.privateKey: must not be set together with credentialName",
				"spec.trafficPolicy.tls.caCertificates: must not be set together with credentialName",
				"spec.trafficPolicy.tls.caCrl: must not be set together with credentialName",
			},
		},
		{
			name: "mutual without files",
			spec: `trafficPolicy: {tls: {mode: MUTUAL}}`,
			violations: []string{
				"spec.trafficPolicy.tls.clientCertificate: is required for mode MUTUAL without credentialName",
				"spec.trafficPolicy.tls.privateKey: is required for mode MUTUAL without credentialName",
			},
		},
		{
			name:       "unknown mode",
			spec:       `trafficPolicy: {tls: {mode: 9}}`,
			violations: []string{"spec.trafficPolicy.tls.mode: must be one of DISABLE, SIMPLE, MUTUAL, ISTIO_MUTUAL, is 9"},
		},
		{
			name: "files for Istio's own certificates",
			spec: `trafficPolicy: {tls: {mode: ISTIO_MUTUAL, caCertificates: c}}`,
			warnings: []string{
				"spec.trafficPolicy.tls: the certificates have no effect for mode ISTIO_MUTUAL",
			},
		},
		{
			name:     "half a pair",
			spec:     `trafficPolicy: {tls: {mode: SIMPLE, privateKey: c}}`,
			warnings: []string{"spec.trafficPolicy.tls: clientCertificate and privateKey have an effect only together"},
		},
	})
}
