// SPDX-License-Identifier: Apache-2.0

package prometheus

import (
	"time"

	client "github.com/prometheus/client_golang/prometheus"

	"github.com/pilotkit/pilotkit/internal/options"
	"github.com/pilotkit/pilotkit/xdsupdate"
	"github.com/pilotkit/pilotkit/xdsupdate/ads"
)

// NewServerCollector returns a collector of the current state of a server: its proxies, its queue
// of pushes, and its index of endpoints. All metrics of proxies come from one snapshot. A scrape
// calls Server.Proxies, which reads each subscription under the lock that pushes need:
// docs/performance.md has the cost. A nil server, and more than one Options, panic.
func NewServerCollector(server *ads.Server, opts ...Options) client.Collector {
	const constructor = "prometheus.NewServerCollector"
	if server == nil {
		panic(constructor + ": no server")
	}
	urls := append(typeURLs(constructor, options.One(constructor, opts).TypeURLs), other)
	c := &collector{}
	s := &serverCollector{
		server: server, urls: urls, index: make(map[string]int, len(urls)),
		subscriptions: c.desc(nameSubscriptions, "Subscriptions of connected proxies to a type.", labelTypeURL),
		pending: c.desc(namePendingSubscriptions,
			"Subscriptions with something that the proxy was not sent yet or has not answered.", labelTypeURL),
		overdue: c.desc(nameOverdueSubscriptions, "Subscriptions with a response that the proxy has not answered in time.", labelTypeURL),
		refused: c.desc(nameRefusedResources, "Resources that proxies refuse, once for each proxy.", labelTypeURL),
		quarantined: c.desc(nameQuarantinedResources,
			"Resources that proxies accept only without some object, once for each proxy.", labelTypeURL),
		unmade: c.desc(nameFailedResources,
			"Resources that the server cannot make as they should be, once for each proxy.", labelTypeURL),
		waiting:   c.desc(nameQueueRequests, "Requests that wait to be pushed, by kind.", labelKind),
		wait:      c.desc(nameQueueWait, "How long the oldest request has waited to be pushed, by kind; 0: none waits.", labelKind),
		running:   c.desc(namePushRunning, "How long the push has been running that is; 0: none is."),
		failed:    c.desc(namePushFailures, "Pushes that failed: a push of everything makes up for each."),
		services:  c.desc(nameServices, "Services of which registries have reported endpoints."),
		endpoints: c.desc(nameEndpoints, "Endpoints that registries have reported."),
	}
	for i, url := range urls {
		s.index[url] = i
	}
	c.collect = s.collect
	return c
}

type serverCollector struct {
	server *ads.Server
	urls   []string
	index  map[string]int // of urls

	subscriptions, pending, overdue, refused, quarantined, unmade *client.Desc
	waiting, wait, running, failed                                *client.Desc
	services, endpoints                                           *client.Desc
}

// typeFigures are the figures of one type URL.
type typeFigures struct{ subscriptions, pending, overdue, refused, quarantined, failed int }

func (s *serverCollector) collect(metrics chan<- client.Metric) {
	for i, of := range s.proxies() {
		url := s.urls[i]
		metrics <- gauge(s.subscriptions, of.subscriptions, url)
		metrics <- gauge(s.pending, of.pending, url)
		metrics <- gauge(s.overdue, of.overdue, url)
		metrics <- gauge(s.refused, of.refused, url)
		metrics <- gauge(s.quarantined, of.quarantined, url)
		metrics <- gauge(s.unmade, of.failed, url)
	}
	s.queue(metrics)
	services, endpoints := 0, 0
	for service := range s.server.EndpointIndex().All() {
		services++
		endpoints += service.Len()
	}
	metrics <- gauge(s.services, services)
	metrics <- gauge(s.endpoints, endpoints)
}

// queue emits the metrics of the queue of push requests.
func (s *serverCollector) queue(metrics chan<- client.Metric) {
	pusher, ok := xdsupdate.As[*xdsupdate.Pusher](s.server)
	if !ok {
		return
	}
	now, state := time.Now(), pusher.State()
	for kind, lane := range map[int]xdsupdate.WaitingRequests{kindEndpoints: state.Endpoints, kindFull: state.Full} {
		metrics <- gauge(s.waiting, float64(lane.Requests), kinds()[kind])
		metrics <- gauge(s.wait, since(lane.Since, now), kinds()[kind])
	}
	metrics <- gauge(s.running, since(state.Pushing, now))
	metrics <- client.MustNewConstMetric(s.failed, client.CounterValue, float64(state.Failed))
}

// since returns the seconds from a moment until now, 0 for the zero time.
func since(moment, now time.Time) float64 {
	if moment.IsZero() {
		return 0
	}
	return max(0, now.Sub(moment).Seconds())
}

// proxies returns the figures of the connected proxies, indexed like urls.
func (s *serverCollector) proxies() []typeFigures {
	out := make([]typeFigures, len(s.urls))
	of := func(url string) *typeFigures {
		i, known := s.index[url]
		if !known {
			i = len(s.urls) - 1
		}
		return &out[i]
	}
	for _, proxy := range s.server.Proxies() {
		for url, status := range proxy.Types {
			of(url).add(status)
		}
	}
	type counted struct {
		stream        uint64
		typeURL, name string
		status        ads.FaultStatus
	}
	known := make(map[counted]bool) // a resource has a fault for each object
	faults, _ := s.server.Faults()
	for _, f := range faults {
		if is := (counted{f.Stream, f.TypeURL, f.Name, f.Status}); !known[is] {
			known[is] = true
			of(f.TypeURL).addFault(f.Status)
		}
	}
	return out
}

func (f *typeFigures) add(status ads.TypeStatus) {
	f.subscriptions++
	f.pending += truth(status.Pending)
	f.overdue += truth(status.Overdue)
}

// addFault counts a resource with a fault.
func (f *typeFigures) addFault(status ads.FaultStatus) {
	switch status {
	case ads.FaultLeftOut:
		f.quarantined++
	case ads.FaultNotBuilt, ads.FaultBuiltWithout:
		f.failed++
	default:
		f.refused++
	}
}
