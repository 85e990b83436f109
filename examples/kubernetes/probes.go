// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"

	"go.uber.org/atomic"

	"github.com/pilotkit/pilotkit/xdsupdate/traffic"
)

// probes serves the probes of the kubelet: /healthz succeeds while the program runs, /readyz while
// it serves. The text of /readyz has the policies that are closed because they cannot be read.
type probes struct {
	address string
	ready   atomic.Bool
	stop    func()
}

func startProbes(ctx context.Context, address string, closed func() []traffic.Ineffective) (*probes, error) {
	lis, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	p := &probes{address: lis.Addr().String()}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(http.ResponseWriter, *http.Request) {})
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		if !p.ready.Load() {
			http.Error(w, "not ready", http.StatusServiceUnavailable)
			return
		}
		for _, found := range closed() {
			fmt.Fprintln(w, found)
		}
	})
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second}
	var serving sync.WaitGroup
	serving.Go(func() { _ = server.Serve(lis) }) // it returns when it is closed
	p.stop = func() {
		server.Close()
		serving.Wait()
	}
	return p, nil
}
