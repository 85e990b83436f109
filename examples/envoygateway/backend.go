// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"io"
	"net"
	"net/http"
	"time"
)

// backend is an HTTP server that responds with its name.
type backend struct {
	name   string
	port   int
	server *http.Server
	done   chan struct{}
}

// startBackend serves on a free port of the loopback interface until stop.
func startBackend(ctx context.Context, name string) (*backend, error) {
	lis, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	b := &backend{
		name: name, port: lis.Addr().(*net.TCPAddr).Port, done: make(chan struct{}),
		server: &http.Server{
			ReadHeaderTimeout: 10 * time.Second,
			Handler:           http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, name) }),
		},
	}
	go func() {
		defer close(b.done)
		_ = b.server.Serve(lis) // it returns an error only when it is stopped
	}()
	return b, nil
}

func (b *backend) stop() {
	_ = b.server.Close()
	<-b.done
}
