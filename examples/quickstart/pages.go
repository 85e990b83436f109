// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"net"
	"net/http"
	"time"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/xdsupdate/debug"
)

// servePages serves debug pages for the pipeline on an address until stop. It does not authenticate
// their users.
func (p *pipeline) servePages(ctx context.Context, address string) (where string, stop func(), err error) {
	lis, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
	if err != nil {
		return "", nil, err
	}
	server := &http.Server{ReadHeaderTimeout: 10 * time.Second, Handler: debug.New(debug.Options{
		Configs: p.configs, Services: p.registries, Server: p.server, Policies: p.policies,
		Sources: []configstore.Source{configstore.SourceOf("directory", p.files)},
	})}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = server.Serve(lis) // it returns when it is stopped
	}()
	return lis.Addr().String(), func() {
		_ = server.Close()
		<-done
	}, nil
}
