// SPDX-License-Identifier: Apache-2.0

package bridge_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"

	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/registry/bridge"
)

// consul is a catalogue of the services of one Consul datacenter, by its HTTP API.
// Consul's services have no port that clients use, as its clients connect to instances:
// here all are called on port.
type consul struct {
	client  *http.Client
	address string // such as "http://127.0.0.1:8500"
	token   string // of Consul's ACL system, or ""
	port    registry.Port
}

// instance is an element of the answers of /v1/health/service, as far as it is used.
type instance struct {
	Node    struct{ Address string }
	Service struct {
		ID, Address string
		Port        uint32
		Tags        []string
		Weights     struct{ Passing, Warning uint32 }
	}
	Checks []struct{ Status string }
}

// List reads the names of all services, and then the instances of each. The revision is read first,
// so that Watch does not miss changes in between.
func (c *consul) List(ctx context.Context) (bridge.Listing, error) {
	var names map[string][]string
	services, err := c.get(ctx, "/v1/catalog/services", nil, &names)
	if err != nil {
		return bridge.Listing{}, err
	}
	checks, err := c.get(ctx, "/v1/health/state/any", nil, new([]struct{}))
	if err != nil {
		return bridge.Listing{}, err
	}
	out := bridge.Listing{Revision: services + " " + checks, Records: make([]bridge.Record, 0, len(names))}
	for name := range names {
		out.Records = append(out.Records, bridge.Record{Service: c.service(name)})
	}
	return out, c.instances(ctx, names, out.Records)
}

// instances fills in the endpoints of all records, some requests at a time.
func (c *consul) instances(ctx context.Context, names map[string][]string, records []bridge.Record) error {
	var group sync.WaitGroup
	const parallel = 8
	errs := make([]error, parallel)
	for worker := range parallel {
		group.Go(func() {
			for i := worker; i < len(records) && errs[worker] == nil; i += parallel {
				errs[worker] = c.fill(ctx, &records[i])
			}
		})
	}
	group.Wait()
	return errors.Join(errs...)
}

// fill asks for the instances of one service. An error is one of the whole list; what
// cannot be used in an answer is the affair of the bridge.
func (c *consul) fill(ctx context.Context, r *bridge.Record) error {
	var instances []instance
	if _, err := c.get(ctx, "/v1/health/service/"+url.PathEscape(r.Service.Attributes.Name), nil, &instances); err != nil {
		return err
	}
	for _, i := range instances {
		r.Endpoints = append(r.Endpoints, c.endpoint(&i))
	}
	return nil
}

func (c *consul) service(name string) *registry.Service {
	return &registry.Service{
		Hostname: registry.Hostname(name + ".service.consul"), Ports: []*registry.Port{&c.port},
		Attributes: registry.ServiceAttributes{Name: name, Namespace: "consul"},
	}
}

// endpoint converts an instance. Its tags are labels: "version=v1" has a value, "canary"
// has none.
func (c *consul) endpoint(i *instance) *registry.Endpoint {
	labels := registry.Labels{}
	for _, tag := range i.Service.Tags {
		name, value, _ := strings.Cut(tag, "=")
		labels[name] = value
	}
	e := &registry.Endpoint{
		Addresses: []string{cmp.Or(i.Service.Address, i.Node.Address)}, EndpointPort: i.Service.Port,
		ServicePort: c.port.Number, ServicePortName: c.port.Name, WorkloadName: i.Service.ID,
		HealthStatus: registry.Healthy,
		Shared:       &registry.EndpointAttributes{Labels: labels, LbWeight: i.Service.Weights.Passing},
	}
	// The status of an instance is the worst of its checks.
	for _, check := range i.Checks {
		switch check.Status {
		case "critical", "maintenance":
			e.HealthStatus = registry.UnHealthy
		case "warning":
			e.Shared.LbWeight = i.Service.Weights.Warning
		}
	}
	return e
}

// Watch asks two blocking queries at once: the one returns when services or instances
// come and go, the other when checks change. An index that is not the last one means that
// something has changed; one that is less, that the server begins again.
func (c *consul) Watch(ctx context.Context, revision string) error {
	services, checks, _ := strings.Cut(revision, " ")
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	answers := make(chan error, 2)
	go func() { answers <- c.await(ctx, "/v1/catalog/services", services) }()
	go func() { answers <- c.await(ctx, "/v1/health/state/any", checks) }()
	err := <-answers
	cancel()
	if other := <-answers; other == nil {
		return nil
	}
	return err
}

// await returns nil when the index of a path is another one.
func (c *consul) await(ctx context.Context, path, index string) error {
	for {
		next, err := c.get(ctx, path, url.Values{"index": {index}, "wait": {"5m"}}, new(json.RawMessage))
		if err != nil || next != index {
			return err
		}
	}
}

// get asks for a path and decodes the answer. It returns the index of the answer.
func (c *consul) get(ctx context.Context, path string, query url.Values, into any) (index string, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, c.address+path+"?"+query.Encode(), nil)
	if err != nil {
		return "", err
	}
	if c.token != "" {
		request.Header.Set("X-Consul-Token", c.token)
	}
	response, err := c.client.Do(request)
	if err != nil {
		return "", err
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(io.LimitReader(response.Body, 200))
		return "", fmt.Errorf("%s: %s: %s", path, response.Status, strings.TrimSpace(string(text)))
	}
	if err := json.NewDecoder(response.Body).Decode(into); err != nil {
		return "", fmt.Errorf("%s: %w", path, err)
	}
	return response.Header.Get("X-Consul-Index"), nil
}

// A bridge and a catalogue make a registry of Consul.
func Example() {
	server := startConsul()
	defer server.stop()
	server.register("web", "web-1", "10.0.0.1", 8080, "version=v1")
	server.register("web", "web-2", "10.0.0.2", 8080, "version=v2", "canary")

	reg := bridge.New(
		&consul{client: server.client(), address: "http://consul", port: registry.Port{Name: "http", Number: 80, Protocol: registry.ProtocolHTTP}},
		bridge.Options{Provider: "Consul", Cluster: "east"},
	)
	stop, done := make(chan struct{}), make(chan struct{})
	events := make(chan string)
	reg.AppendServiceHandler(func(_, curr *registry.Service, event registry.Event) { events <- event.String() + " " + curr.Key() })
	go func() {
		defer close(done)
		reg.Run(stop)
	}()
	fmt.Println(<-events)
	for _, i := range reg.InstancesByPort(reg.GetService("web.service.consul"), 80) {
		fmt.Println(i.Endpoint.Address(), i.Endpoint.EndpointPort, i.Endpoint.Attributes().Labels)
	}
	server.register("db", "db-1", "10.0.0.3", 5432)
	fmt.Println(<-events)
	close(stop)
	<-done
	// Output:
	// add consul/web.service.consul
	// 10.0.0.1 8080 version=v1
	// 10.0.0.2 8080 canary=,version=v2
	// add consul/db.service.consul
}
