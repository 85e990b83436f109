// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/pprof"
	"time"

	client "github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/pilotkit/pilotkit/xdsupdate/debug"
	"github.com/pilotkit/pilotkit/xdsupdate/prometheus"
)

// admin is the port for operators. It does not authenticate clients.
type admin struct {
	listener net.Listener
	handler  http.Handler
}

func listenAdmin(ctx context.Context, p *plane) (*admin, error) {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", p.settings.admin)
	if err != nil {
		return nil, fmt.Errorf("-admin: %w", err)
	}
	a := &admin{listener: listener}
	a.handler = a.routes(p)
	return a, nil
}

func (a *admin) routes(p *plane) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /live", func(http.ResponseWriter, *http.Request) {})
	mux.Handle("GET /ready", p.ready)
	mux.Handle("GET /{$}", http.RedirectHandler("debug/", http.StatusFound))
	mux.Handle("GET /metrics", metricsOf(p))
	mux.Handle("/debug/", http.StripPrefix("/debug", debug.New(debug.Options{
		Configs: p.sources.configs, Services: p.registries, Server: p.server, Policies: p.policies, Sources: p.sources.watched, Logger: p.log,
	})))
	mux.HandleFunc("GET /debug/pprof/", pprof.Index)
	mux.HandleFunc("GET /debug/pprof/cmdline", pprof.Cmdline)
	mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("GET /debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("GET /debug/pprof/trace", pprof.Trace)
	return mux
}

func metricsOf(p *plane) http.Handler {
	metrics := client.NewRegistry()
	metrics.MustRegister(p.metrics, prometheus.NewServerCollector(p.server), prometheus.NewConfigCollector(p.sources.configs),
		prometheus.NewSourceCollector(p.sources.watched...))
	return promhttp.HandlerFor(metrics, promhttp.HandlerOpts{ErrorHandling: promhttp.ContinueOnError})
}

// run serves until stop is closed. Requests in progress then have one second to finish.
func (a *admin) run(stop <-chan struct{}) error {
	server := &http.Server{Handler: a.handler, ReadHeaderTimeout: 5 * time.Second}
	served := make(chan error, 1)
	go func() { served <- server.Serve(a.listener) }()
	select {
	case err := <-served:
		return err
	case <-stop:
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second) //nolint:forbidigo // the program ends
	defer cancel()
	if server.Shutdown(ctx) != nil {
		server.Close()
	}
	if err := <-served; !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
