// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"log/slog"
	"strings"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/pilotkit/pilotkit/aggregate"
	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/checkpoint"
	"github.com/pilotkit/pilotkit/configstore/etcd"
	"github.com/pilotkit/pilotkit/configstore/file"
	"github.com/pilotkit/pilotkit/configstore/istio"
	"github.com/pilotkit/pilotkit/configstore/kube"
	"github.com/pilotkit/pilotkit/configstore/mcp"
	"github.com/pilotkit/pilotkit/configstore/memory"
	"github.com/pilotkit/pilotkit/registry"
	registrykube "github.com/pilotkit/pilotkit/registry/kube"
	"github.com/pilotkit/pilotkit/xdsupdate"
)

// sources are the sources of configs and services.
type sources struct {
	log    *slog.Logger
	caches []configstore.ConfigStoreCache // in order of precedence
	// parts fill the caches.
	parts []configstore.Part
	// watched are the states of the sources, for operators. Registries are added when they are
	// created.
	watched []configstore.Source
	// registries create the registries that read no configs.
	registries []func(xdsupdate.XDSUpdater) registry.Instance
	// configs has the configs of all caches. warm stores them in a file, or is nil.
	configs configstore.ConfigStoreCache
	warm    *checkpoint.Cache
	// close closes connections, after everything has stopped.
	close []func() error
}

// newSources creates the sources in the settings. If several sources have an object, the order of
// precedence is etcd, Kubernetes, the directory, the other control plane.
func newSources(s *settings, log *slog.Logger) (*sources, error) {
	out := &sources{log: log}
	adds := []struct {
		given string
		add   func(*settings) error
	}{{s.etcd, out.addEtcd}, {s.kubeconfig, out.addKubernetes}, {s.dir, out.addDirectory}, {s.mcpFrom, out.addMCP}}
	for _, a := range adds {
		if a.given == "" {
			continue
		}
		if err := a.add(s); err != nil {
			out.closeAll()
			return nil, err
		}
	}
	out.configs = aggregate.MakeCache(out.caches...)
	if s.checkpoint != "" {
		out.warm = checkpoint.New(out.configs, s.checkpoint, checkpoint.Options{Logger: log})
		out.configs = out.warm
		out.watched = append(out.watched, configstore.SourceOf("checkpoint", out.warm))
	}
	return out, nil
}

func (x *sources) closeAll() {
	for _, c := range x.close {
		if err := c(); err != nil {
			x.log.Warn("close", slog.Any("error", err))
		}
	}
}

func (x *sources) addDirectory(s *settings) error {
	store := memory.Make(istio.Schemas())
	source := file.New(s.dir, store, file.Options{Logger: x.log})
	x.caches = append(x.caches, memory.NewController(store, memory.ControllerOptions{Logger: x.log}))
	x.parts = append(x.parts, configstore.Runs("directory", source.Run, nil))
	x.watched = append(x.watched, configstore.SourceOf("directory", source))
	return nil
}

func (x *sources) addEtcd(s *settings) error {
	client, err := clientv3.New(clientv3.Config{
		Endpoints: strings.Split(s.etcd, ","), Logger: zap.NewNop(), // the cache logs the relevant errors itself
	})
	if err != nil {
		return fmt.Errorf("-etcd: %w", err)
	}
	x.close = append(x.close, client.Close)
	cache, err := etcd.New(client, istio.Schemas(), etcd.Options{Prefix: s.etcdPrefix, Logger: x.log})
	if err != nil {
		return fmt.Errorf("-etcd: %w", err)
	}
	x.caches = append(x.caches, cache)
	x.watched = append(x.watched, configstore.SourceOf("etcd", cache))
	return nil
}

func (x *sources) addMCP(s *settings) error {
	conn, err := grpc.NewClient(s.mcpFrom, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return fmt.Errorf("-mcp-from: %w", err)
	}
	x.close = append(x.close, conn.Close)
	store := memory.Make(istio.Schemas())
	source := mcp.NewSource(conn, store, mcp.SourceOptions{Revision: s.revision, Logger: x.log})
	x.caches = append(x.caches, memory.NewController(store, memory.ControllerOptions{Logger: x.log}))
	x.parts = append(x.parts, configstore.Runs("mcp source", source.Run, nil))
	x.watched = append(x.watched, configstore.SourceOf("mcp", source))
	return nil
}

func (x *sources) addKubernetes(s *settings) error {
	config, err := clientcmd.BuildConfigFromFlags("", s.kubeconfig)
	if err != nil {
		return fmt.Errorf("-kubeconfig: %w", err)
	}
	cache, err := kube.New(config, istio.Schemas(), kube.Options{Logger: x.log, Domain: s.domain, Revision: s.revision})
	if err != nil {
		return fmt.Errorf("-kubeconfig: %w", err)
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("-kubeconfig: %w", err)
	}
	x.caches = append(x.caches, cache)
	x.watched = append(x.watched, configstore.SourceOf("kubernetes", cache))
	x.registries = append(x.registries, func(updater xdsupdate.XDSUpdater) registry.Instance {
		services := registrykube.New(client, updater, registrykube.Options{
			ClusterID: registry.ClusterID(s.cluster), DomainSuffix: s.domain, Logger: x.log,
		})
		x.watched = append(x.watched, configstore.SourceOf("kubernetes services", services))
		return services
	})
	return nil
}
