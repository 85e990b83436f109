// SPDX-License-Identifier: Apache-2.0

// Command gateway is a gateway in Go: net/http and httputil.ReverseProxy forward requests by the
// Gateways, VirtualServices, policies and ServiceEntries of a directory, without an Envoy.
//
//	go run ./examples/gateway -config DIR -certificates DIR -http :8080 -https :8443
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/signal"
	"strings"
	"time"

	"github.com/pilotkit/pilotkit/aggregate"
	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/file"
	"github.com/pilotkit/pilotkit/configstore/istio"
	"github.com/pilotkit/pilotkit/configstore/memory"
	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/registry/serviceentry"
	"github.com/pilotkit/pilotkit/xdsupdate"
	"github.com/pilotkit/pilotkit/xdsupdate/ads"
	"github.com/pilotkit/pilotkit/xdsupdate/secrets"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic/route"
)

// settings are the flags.
type settings struct {
	config, certificates string
	// namespace and app identify the gateway: Gateways select it by the label app.
	namespace, app string
}

func main() {
	var s settings
	flag.StringVar(&s.config, "config", "config", "directory with YAML of Istio")
	flag.StringVar(&s.certificates, "certificates", "certificates", "directory with NAME.crt and NAME.key of each credentialName")
	flag.StringVar(&s.namespace, "namespace", "ingress", "namespace of the gateway")
	flag.StringVar(&s.app, "app", "edge", "label app of the gateway")
	plain := flag.String("http", "127.0.0.1:8080", "address for port 80 of the Gateways")
	encrypted := flag.String("https", "127.0.0.1:8443", "address for port 443 of the Gateways")
	flag.Parse()
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt) //nolint:forbidigo // main has no caller
	defer cancel()
	if err := s.serve(ctx, *plain, *encrypted, func(plain, encrypted string) {
		fmt.Fprintln(os.Stdout, "serves", plain, "and", encrypted)
	}); err != nil {
		fmt.Fprintln(os.Stderr, "gateway:", err)
		os.Exit(1) //nolint:gocritic // nothing is left to clean up
	}
}

// serve serves until the context ends. It calls ready with the addresses that it listens on.
func (s settings) serve(ctx context.Context, plain, encrypted string, ready func(plain, encrypted string)) error {
	store := memory.Make(istio.Schemas())
	configs, files := memory.NewController(store), file.New(s.config, store)
	policies, keys := traffic.New(configs), secrets.New(configs, secrets.Options{Function: s.secret, Interval: time.Second})
	registries := aggregate.NewController()
	engine := ads.New(registries, ads.Options{Providers: []ads.Provider{policies, keys}})
	registries.AddRegistry(func(updater xdsupdate.XDSUpdater) registry.Instance { return serviceentry.New(configs, updater) })
	watch := policies.Watch(route.Gateway, &registry.Proxy{Namespace: s.namespace, Labels: registry.Labels{"app": s.app}})
	defer watch.Close()
	transport := &route.Transport{Secrets: keys.Secrets(s.namespace)}
	defer transport.CloseIdleConnections()
	pushes := configstore.Runs("pushes", engine.Run, nil)
	pushes.AfterSync = true
	group := configstore.Group{Parts: []configstore.Part{
		configstore.Runs("files", files.Run, files), configstore.Runs("configs", configs.Run, configs),
		configstore.Runs("registries", registries.Run, registries), pushes, configstore.Runs("policies", policies.Run, nil),
		configstore.Runs("secrets", keys.Run, nil), configstore.Runs("router", func(stop <-chan struct{}) { watch.Run(stop, nil) }, nil),
	}}
	var addresses [2]string
	for i, at := range []string{plain, encrypted} {
		g := &gateway{port: []uint32{80, 443}[i], watch: watch, transport: transport}
		listener, err := new(net.ListenConfig).Listen(ctx, "tcp", at)
		if err != nil {
			return err
		}
		defer listener.Close()
		addresses[i] = listener.Addr().String()
		group.Parts = append(group.Parts, configstore.Part{Name: addresses[i], Run: func(stop <-chan struct{}) error { return g.run(listener, stop) }})
	}
	ready(addresses[0], addresses[1])
	return group.Run(ctx)
}

// secret reads the files of a credential.
func (s settings) secret(n secrets.Name) (*secrets.Secret, error) {
	dir, name := os.DirFS(s.certificates), strings.TrimPrefix(n.Name, "kubernetes://")
	certificate, err := fs.ReadFile(dir, name+".crt")
	key, noKey := fs.ReadFile(dir, name+".key")
	authorities, noAuthorities := fs.ReadFile(dir, name+".ca")
	if err = errors.Join(err, noKey); err != nil && noAuthorities != nil {
		return nil, fmt.Errorf("%w: %w", secrets.ErrNotFound, err)
	}
	return &secrets.Secret{Certificate: certificate, Key: key, Authorities: authorities}, nil
}
