// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/pilotkit/pilotkit/xdsupdate/ads"
)

// callers is the number of clients of a load.
const callers = 4

// show runs all scenes in order.
func (d *demonstration) show(ctx context.Context, begun time.Time) error {
	if err := d.firstAnswers(ctx, begun); err != nil {
		return err
	}
	for _, scene := range []func(context.Context) error{d.move, d.lead, d.rotate, d.quarantine} {
		if err := scene(ctx); err != nil {
			return err
		}
	}
	return nil
}

// firstAnswers waits until both hosts are served.
func (d *demonstration) firstAnswers(ctx context.Context, begun time.Time) error {
	c := d.client(true)
	defer c.close()
	d.printf("\nRequests by HTTPS to port %d:\n", d.port)
	for _, host := range []string{shop, blog} {
		var got answer
		after, err := d.await(ctx, host+" is served", begun, func() bool {
			var err error
			got, err = c.ok(ctx, host)
			return err == nil
		})
		if err != nil {
			return err
		}
		d.printf("  %s is answered by backend %s, with certificate %s, %v after the start of the Envoy\n", host, got.body, got.serial, after)
	}
	return nil
}

// move edits a WorkloadEntry while requests continue, so that traffic moves from backend one to
// backend two, and back.
func (d *demonstration) move(ctx context.Context) error {
	requests := d.callShop(ctx)
	defer requests.stop()
	d.printf("\nMoving WorkloadEntry shop/shop-1 to backend two and back, in shop.yaml, under load:\n")
	for _, move := range []struct{ from, to *backend }{{d.backends[0], d.backends[1]}, {d.backends[1], d.backends[0]}} {
		if err := d.moveShop(ctx, requests, move.from, move.to); err != nil {
			return err
		}
	}
	return d.end(requests)
}

// callShop starts requests that backends answer with their names.
func (d *demonstration) callShop(ctx context.Context) *load {
	c := d.client(true)
	l := startLoad(callers, func() (string, error) {
		a, err := c.ok(ctx, shop)
		return a.body, err
	})
	stop := l.stop
	l.stop = func() { stop(); c.close() }
	return l
}

func (d *demonstration) moveShop(ctx context.Context, requests *load, from, to *backend) error {
	begun := time.Now()
	if err := d.edit("shop.yaml", "http: "+strconv.Itoa(from.port), "http: "+strconv.Itoa(to.port)); err != nil {
		return err
	}
	before := requests.answered(to.name)
	after, err := d.await(ctx, "backend "+to.name+" answers", begun, func() bool { return requests.answered(to.name) > before })
	if err != nil {
		return err
	}
	d.printf("  first answer of backend %s %v after the file changed\n", to.name, after)
	return nil
}

// switches is the number of times that lead switches the route: half of them to backend two, half
// back.
const switches = 10

// lead edits the whole of shop.yaml repeatedly while requests continue: the route leads to a new
// service of the other backend, and the former service is removed.
func (d *demonstration) lead(ctx context.Context) error {
	requests := d.callShop(ctx)
	defer requests.stop()
	d.printf("\nLeading the route to a new service and deleting the former one, in one edit of shop.yaml, %d times:\n", switches)
	begun, from, to := time.Now(), d.backends[0], d.backends[1]
	for i := range switches {
		err := d.edit("shop.yaml", serviceHost(i), serviceHost(i+1), "http: "+strconv.Itoa(from.port), "http: "+strconv.Itoa(to.port))
		if err != nil {
			return err
		}
		before := requests.answered(to.name)
		if _, err = d.await(ctx, "backend "+to.name+" answers", begun, func() bool { return requests.answered(to.name) > before }); err != nil {
			return err
		}
		from, to = to, from
	}
	d.printf("  %v from an edit to the first answer of the new service, on average\n", (time.Since(begun) / switches).Round(time.Millisecond))
	return d.end(requests)
}

// serviceHost returns the host of the route's service after some switches.
func serviceHost(switches int) string {
	if switches == 0 {
		return "shop.shop.internal"
	}
	return fmt.Sprintf("shop-%d.shop.internal", switches)
}

// rotate replaces the files of the certificate while clients make connections.
func (d *demonstration) rotate(ctx context.Context) error {
	c := d.client(false)
	connections := startLoad(callers, func() (string, error) {
		a, err := c.ok(ctx, blog)
		return a.serial, err
	})
	defer connections.stop()
	d.printf("\nReplacing the files of the certificate, with a new connection for each request:\n")
	serial, err := d.issue()
	if err != nil {
		return err
	}
	after, err := d.await(ctx, "certificate "+serial+" is used", time.Now(), func() bool { return connections.answered(serial) > 0 })
	if err != nil {
		return err
	}
	d.printf("  first connection with certificate %s %v after the files changed; they are read each second\n", serial, after)
	return d.end(connections)
}

// end ends a load.
func (d *demonstration) end(l *load) error {
	summary, err := l.end()
	d.printf("  %s\n", summary)
	return err
}

// The edit of a VirtualService. By default, but not with every bootstrap, an Envoy rejects the new
// match, a regular expression that compiles to more than 100 instructions.
const (
	goodMatch = "prefix: /"
	badMatch  = `regex: "/api/v[0-9]{1,3}/[a-zA-Z0-9_-]{1,64}/items"`
)

// quarantine breaks the route of one host, which shares a route configuration with the other, and
// repairs it.
func (d *demonstration) quarantine(ctx context.Context) error {
	requests := d.callShop(ctx)
	defer requests.stop()
	d.printf("\nGiving VirtualService blog/blog a regular expression that the Envoy refuses, in blog.yaml:\n")
	if err := d.editBlog(ctx, goodMatch, badMatch, http.StatusInternalServerError); err != nil {
		return err
	}
	if err := d.report(ctx); err != nil {
		return err
	}
	d.printf("  the other team goes on to change its own:\n")
	if err := d.moveShop(ctx, requests, d.backends[0], d.backends[1]); err != nil {
		return err
	}
	d.printf("\nMending it:\n")
	if err := d.editBlog(ctx, badMatch, goodMatch, http.StatusOK); err != nil {
		return err
	}
	if err := d.accepted(ctx); err != nil {
		return err
	}
	return d.end(requests)
}

// editBlog changes the route of one host and waits for a status of its requests.
func (d *demonstration) editBlog(ctx context.Context, old, replacement string, status int) error {
	c := d.client(true)
	defer c.close()
	begun := time.Now()
	if err := d.edit("blog.yaml", old, replacement); err != nil {
		return err
	}
	after, err := d.await(ctx, fmt.Sprintf("%s is answered with %d", blog, status), begun, func() bool {
		a, err := c.get(ctx, blog)
		return err == nil && a.status == status
	})
	if err != nil {
		return err
	}
	d.printf("  requests to %s are answered with %d from %v after the file changed\n", blog, status, after)
	return nil
}

// report shows where the rejected route is reported.
func (d *demonstration) report(ctx context.Context) error {
	var lines []string
	_, err := d.await(ctx, "what is left out is reported", time.Now(), func() bool { lines = d.refusals(); return len(lines) > 0 })
	if err != nil {
		return err
	}
	for _, e := range d.plane.policies.Ineffective() {
		lines = append(lines, "Policies.Ineffective: "+e.String())
	}
	for _, l := range lines {
		d.printf("  %s\n", l)
	}
	return nil
}

// refusals lists the objects that are left out of the resources of proxies.
func (d *demonstration) refusals() (lines []string) {
	faults, _ := d.plane.server.Faults()
	for _, f := range faults {
		if f.Status == ads.FaultLeftOut {
			lines = append(lines, fmt.Sprintf("Server.Faults: %s has %s without %s %s/%s: %s",
				f.Proxy, f.Name, f.Object.Kind.Kind, f.Object.Namespace, f.Object.Name, f.Text))
		}
	}
	return lines
}

// accepted waits until the gateway has accepted all resources.
func (d *demonstration) accepted(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if err := d.plane.server.WaitApplied(ctx, nil); err != nil {
		return err
	}
	d.printf("  the gateway has accepted everything; %d objects are without effect\n", len(d.plane.policies.Ineffective()))
	return nil
}
