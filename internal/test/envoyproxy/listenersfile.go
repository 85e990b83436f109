// SPDX-License-Identifier: Apache-2.0

package envoyproxy

import (
	"os"
	"testing"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/types/known/anypb"
)

// fileSource is a file that an Envoy reads again when another takes its place.
func fileSource(path string) *core.ConfigSource {
	return &core.ConfigSource{
		ConfigSourceSpecifier: &core.ConfigSource_PathConfigSource{PathConfigSource: &core.PathConfigSource{Path: path}},
		ResourceApiVersion:    core.ApiVersion_V3,
	}
}

// WriteListeners writes a file of Options.ListenersFile. An Envoy that runs follows
// it; its listener_manager.lds.version_text is the version then.
func WriteListeners(tb testing.TB, path, version string, listeners ...*listenerv3.Listener) {
	tb.Helper()
	response := &discovery.DiscoveryResponse{VersionInfo: version}
	for _, l := range listeners {
		packed, err := anypb.New(l)
		if err != nil {
			tb.Fatal(err)
		}
		response.Resources = append(response.Resources, packed)
	}
	data, err := protojson.Marshal(response)
	if err != nil {
		tb.Fatal(err)
	}
	next := path + ".next"
	if err := os.WriteFile(next, data, 0o600); err != nil {
		tb.Fatal(err)
	}
	if err := os.Rename(next, path); err != nil {
		tb.Fatal(err)
	}
}
