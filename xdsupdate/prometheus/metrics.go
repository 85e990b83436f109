// SPDX-License-Identifier: Apache-2.0

package prometheus

import (
	client "github.com/prometheus/client_golang/prometheus"

	"github.com/pilotkit/pilotkit/internal/options"
	"github.com/pilotkit/pilotkit/xdsupdate/ads"
)

// Options are the options of New and NewServerCollector. The zero value works.
type Options struct {
	// TypeURLs are additional values of the label type_url, such as the type URLs of the host's own
	// providers. Clusters, load assignments, listeners, routes and secrets are always included.
	// Each type costs about 30 series. All other types share the value "other". A type URL that is
	// empty, "other", or not valid UTF-8 panics.
	TypeURLs []string
}

// Metrics counts the events of ads.Servers. It is their Observer, and a collector. Create it with
// New. Every method is safe for concurrent use.
type Metrics struct {
	ads.NoObserver // for future methods of Observer

	all []client.Collector

	// The slices are indexed like the values of their label.
	connected              []client.Gauge
	opened                 []client.Counter
	closed, refused        []client.Counter
	limits                 map[string]client.Counter
	otherLimit             client.Counter
	failures               []client.Counter
	pushes                 []client.Counter
	debounce, pushed       []client.Observer
	reasons, parts         map[string]client.Counter
	otherReason, otherPart client.Counter

	// types and otherType need no lock, because they are never written after New.
	types     map[string]*typeMetrics
	otherType *typeMetrics
}

// typeMetrics are the metrics of one type URL.
type typeMetrics struct {
	subscriptions, acks, nacks, received client.Counter
	responses, sent, sentBytes, removed  client.Counter
	overdue                              client.Counter
	convergence                          client.Observer
}

var (
	_ ads.Observer     = (*Metrics)(nil)
	_ client.Collector = (*Metrics)(nil)
)

// New returns metrics that are all zero. More than one Options panic.
func New(opts ...Options) *Metrics {
	const constructor = "prometheus.New"
	m := &Metrics{}
	m.addStreams()
	m.addPushes()
	m.addTypes(typeURLs(constructor, options.One(constructor, opts).TypeURLs))
	return m
}

func (m *Metrics) addStreams() {
	connected := client.NewGaugeVec(client.GaugeOpts{
		Name: nameConnectedProxies, Help: "Streams of proxies that are known and connected, by xDS protocol.",
	}, []string{labelProtocol})
	m.all = append(m.all, connected)
	for _, value := range protocols() {
		m.connected = append(m.connected, connected.WithLabelValues(value))
	}
	m.opened = m.counters(nameStreamsOpened, "Streams whose proxy has become known, by xDS protocol.", labelProtocol, protocols())
	m.closed = m.counters(nameStreamsClosed, "Opened streams that have ended, by gRPC status code; OK: the client ended it.",
		labelCode, statusCodes())
	m.refused = m.counters(nameStreamsRefused, "Streams that were not opened, by the gRPC status code that the client was told.",
		labelCode, statusCodes())
	m.limits, m.otherLimit = m.named(nameStreamsLimited, "Streams that were not opened, or ended, because they exceed one of ads.Limits.",
		labelLimit, limits())
}

func (m *Metrics) addPushes() {
	m.pushes = m.counters(namePushes, "Pushes that have ended, by kind.", labelKind, kinds())
	m.debounce = m.histograms(namePushDebounce, "How long the oldest request in a push had waited when the push began, by kind.",
		labelKind, kinds(), []float64{.001, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30})
	m.pushed = m.histograms(namePushDuration, "How long pushes took until all that is new was queued for whom it concerns, by kind.",
		labelKind, kinds(), []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10})
	m.reasons, m.otherReason = m.named(namePushRequests, "Causes of the pushes that have ended, by reason; many make one push.",
		labelReason, reasons())
	m.failures = m.counters(nameResourceFailures,
		"Reports of resources that are not as they should be, by cause: an object is left out for all proxies, or for one that refuses it.",
		labelCause, causes())
	m.parts, m.otherPart = m.named(namePanics, "Panics that were caught, by the part that panicked.", labelPart, parts())
}

func (m *Metrics) addTypes(urls []string) {
	values := append(urls, other)
	by := func(name, help string) []client.Counter { return m.counters(name, help, labelTypeURL, values) }
	var (
		subscriptions = by(nameSubscriptionsSaid, "Requests without the nonce of a response, by type URL.")
		acks          = by(nameAcks, "Requests with the nonce of a response that refuse nothing, by type URL.")
		nacks         = by(nameNacks, "Requests that refuse a response, by type URL.")
		received      = by(nameReceivedBytes, "Bytes of all requests, by type URL.")
		responses     = by(nameResponses, "Responses that were handed to gRPC, by type URL.")
		sentBytes     = by(nameSentBytes, "Bytes of all responses, by type URL.")
		sent          = by(nameSentResources, "Resources in all responses, by type URL.")
		removed       = by(nameRemovedResources, "Resources that responses remove, by type URL.")
		overdue       = by(nameOverdueResponses, "Responses that clients did not answer in time, by type URL.")
		convergence   = m.histograms(nameConvergence,
			"How long after the newest push in a response was asked for a client has accepted it, by type URL.",
			labelTypeURL, values, []float64{.005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 120})
	)
	m.types = make(map[string]*typeMetrics, len(urls))
	for i, url := range values {
		m.otherType = &typeMetrics{
			subscriptions: subscriptions[i], acks: acks[i], nacks: nacks[i], received: received[i],
			responses: responses[i], sent: sent[i], sentBytes: sentBytes[i], removed: removed[i],
			overdue: overdue[i], convergence: convergence[i],
		}
		m.types[url] = m.otherType
	}
}

// counters registers a counter with all values of its label. It returns one counter for each value,
// in the order of values.
func (m *Metrics) counters(name, help, label string, values []string) []client.Counter {
	vec := client.NewCounterVec(client.CounterOpts{Name: name, Help: help}, []string{label})
	m.all = append(m.all, vec)
	out := make([]client.Counter, 0, len(values))
	for _, value := range values {
		out = append(out, vec.WithLabelValues(value))
	}
	return out
}

// named is like counters, but returns the counters by value, and the counter of the last value
// separately, because it stands for all others.
func (m *Metrics) named(name, help, label string, values []string) (known map[string]client.Counter, rest client.Counter) {
	known = make(map[string]client.Counter, len(values))
	for i, counter := range m.counters(name, help, label, values) {
		known[values[i]], rest = counter, counter
	}
	return known, rest
}

// histograms is like counters, for histograms.
func (m *Metrics) histograms(name, help, label string, values []string, buckets []float64) []client.Observer {
	vec := client.NewHistogramVec(client.HistogramOpts{Name: name, Help: help, Buckets: buckets}, []string{label})
	m.all = append(m.all, vec)
	out := make([]client.Observer, 0, len(values))
	for _, value := range values {
		out = append(out, vec.WithLabelValues(value))
	}
	return out
}

// Describe implements Collector.
func (m *Metrics) Describe(descs chan<- *client.Desc) {
	for _, c := range m.all {
		c.Describe(descs)
	}
}

// Collect implements Collector.
func (m *Metrics) Collect(metrics chan<- client.Metric) {
	for _, c := range m.all {
		c.Collect(metrics)
	}
}
