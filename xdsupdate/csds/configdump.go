// SPDX-License-Identifier: Apache-2.0

package csds

import (
	"fmt"

	admin "github.com/envoyproxy/go-control-plane/envoy/admin/v3"
	statusv3 "github.com/envoyproxy/go-control-plane/envoy/service/status/v3"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/pilotkit/pilotkit/xdsupdate/ads"
	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
)

const (
	secretType    = "type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.Secret" //nolint:gosec // a type URL
	extensionType = "type.googleapis.com/envoy.config.core.v3.TypedExtensionConfig"
)

// ConfigDump returns the resources of a stream as JSON, in the format of Envoy's admin page
// /config_dump?include_eds (envoy.admin.v3.ConfigDump): ClustersConfigDump, EndpointsConfigDump,
// ListenersConfigDump, RoutesConfigDump, SecretsConfigDump and EcdsConfigDump. Resources of other
// types are in a ClientConfig of CSDS. Empty parts are omitted. All resources are dynamic ones,
// because the server knows neither the bootstrap nor the warming state of an Envoy.
//
// As on Envoy's page, the state of a resource is the one that the proxy uses, according to its
// ACKs, and error_state has the rejected state and the error of the NACK. A state without ACK or
// NACK has the client_status REQUESTED and is the last one sent. Two kinds of resources are
// omitted: those that the proxy does not have, and those that it brought from another server,
// because their content is unknown. version_info is the version of each resource, also with SotW.
// The error names a resource that cannot be decoded.
func ConfigDump(p ads.ProxyResources) ([]byte, error) {
	var d dump
	for _, r := range p.Resources {
		if err := d.add(r); err != nil {
			return nil, fmt.Errorf("config dump of %s: %s %s: %w", p.Stream.Node, r.TypeURL, r.Name, err)
		}
	}
	out := &admin.ConfigDump{}
	for _, m := range d.messages() {
		packed, err := anypb.New(m)
		if err != nil {
			return nil, fmt.Errorf("config dump of %s: %w", p.Stream.Node, err)
		}
		out.Configs = append(out.Configs, packed)
	}
	data, err := (protojson.MarshalOptions{UseProtoNames: true, Multiline: true, Indent: " "}).Marshal(out)
	if err != nil {
		return nil, fmt.Errorf("config dump of %s: %w", p.Stream.Node, err)
	}
	return data, nil
}

// dump collects the parts of a config dump.
type dump struct {
	clusters  admin.ClustersConfigDump
	endpoints admin.EndpointsConfigDump
	listeners admin.ListenersConfigDump
	routes    admin.RoutesConfigDump
	secrets   admin.SecretsConfigDump
	filters   admin.EcdsConfigDump
	others    statusv3.ClientConfig
}

// messages returns the parts that are not empty.
func (d *dump) messages() (out []proto.Message) {
	for _, m := range []proto.Message{&d.clusters, &d.endpoints, &d.listeners, &d.routes, &d.secrets, &d.filters, &d.others} {
		if proto.Size(m) > 0 {
			out = append(out, m)
		}
	}
	return out
}

func (d *dump) add(r ads.ProxyResource) error {
	shown := r.Accepted
	if r.Status == ads.StatusStale {
		shown = r.Sent
	}
	state, err := pack(shown)
	if err != nil {
		return err
	}
	failed := errorState(r)
	if failed != nil {
		if failed.FailedConfiguration, err = pack(r.Sent); err != nil {
			return err
		}
	}
	if state == nil && failed == nil {
		return nil
	}
	version, updated, is := shown.Version(), timestamp(shown.Made()), clientStatus(r)
	switch r.TypeURL {
	case envoy.ClusterType:
		d.clusters.DynamicActiveClusters = append(d.clusters.DynamicActiveClusters, &admin.ClustersConfigDump_DynamicCluster{
			VersionInfo: version, Cluster: state, LastUpdated: updated, ErrorState: failed, ClientStatus: is,
		})
	case envoy.LoadAssignmentType:
		d.endpoints.DynamicEndpointConfigs = append(d.endpoints.DynamicEndpointConfigs, &admin.EndpointsConfigDump_DynamicEndpointConfig{
			VersionInfo: version, EndpointConfig: state, LastUpdated: updated, ErrorState: failed, ClientStatus: is,
		})
	case envoy.ListenerType:
		l := &admin.ListenersConfigDump_DynamicListener{Name: r.Name, ErrorState: failed, ClientStatus: is}
		if state != nil {
			l.ActiveState = &admin.ListenersConfigDump_DynamicListenerState{VersionInfo: version, Listener: state, LastUpdated: updated}
		}
		d.listeners.DynamicListeners = append(d.listeners.DynamicListeners, l)
	case envoy.RouteType:
		d.routes.DynamicRouteConfigs = append(d.routes.DynamicRouteConfigs, &admin.RoutesConfigDump_DynamicRouteConfig{
			VersionInfo: version, RouteConfig: state, LastUpdated: updated, ErrorState: failed, ClientStatus: is,
		})
	case secretType:
		d.secrets.DynamicActiveSecrets = append(d.secrets.DynamicActiveSecrets, &admin.SecretsConfigDump_DynamicSecret{
			Name: r.Name, VersionInfo: version, Secret: state, LastUpdated: updated, ErrorState: failed, ClientStatus: is,
		})
	case extensionType:
		d.filters.EcdsFilters = append(d.filters.EcdsFilters, &admin.EcdsConfigDump_EcdsFilterConfig{
			VersionInfo: version, EcdsFilter: state, LastUpdated: updated, ErrorState: failed, ClientStatus: is,
		})
	default:
		other, err := genericConfig(r, false)
		if err != nil {
			return err
		}
		d.others.GenericXdsConfigs = append(d.others.GenericXdsConfigs, other)
	}
	return nil
}
