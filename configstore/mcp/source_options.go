// SPDX-License-Identifier: Apache-2.0

package mcp

import (
	"cmp"
	"log/slog"
	"time"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/pilotkit/pilotkit/configstore"
)

// SourceOptions configure a Source. The zero value works.
type SourceOptions struct {
	// Logger receives each error of an object or of the connection once, and a note when the error is
	// gone. Nil discards them.
	Logger *slog.Logger
	// Kinds are the kinds to request, each in the given version, which may be any version that the
	// store's schemas know: "networking.istio.io/v1alpha3/ServiceEntry" for a server that does not
	// know v1. The default is all kinds of the store, in their canonical versions.
	Kinds []configstore.GroupVersionKind
	// Revision selects the objects without a label istio.io/rev, and the objects with this value of
	// it. An object that moves to another revision is deleted. The default, empty, selects all
	// objects.
	Revision string
	// Domain becomes the Domain of every object. The default is empty.
	Domain string
	// Node is the identity that the source sends. It must not be modified. The default is a waypoint
	// of the namespace istio-system, because an istiod sends a waypoint the objects of all namespaces,
	// and a sidecar only the objects that concern it. Its metadata is that of Istio's client:
	// GENERATOR "api", which requests configs, ISTIO_VERSION, and Revision as ISTIO_REVISION. For an
	// istiod with another root namespace, the node has to be in that namespace:
	// "waypoint~127.0.0.1~NAME.NAMESPACE~NAMESPACE.svc.cluster.local".
	Node *core.Node
	// AskAgain is the interval of repeated requests for everything on a SotW stream, without a nonce.
	// An istiod pushes no change of WorkloadGroups, of WasmPlugins, of WorkloadEntries that
	// nothing selects, or of labels alone, but its response to such a request has them. If a server
	// that has responded once does not respond within the next interval, the stream ends with an
	// error, and Status is stale. A Server pushes every change, and does not respond. The default is
	// 1 minute; a negative value means never.
	AskAgain time.Duration
	// Delta makes the source use the delta protocol, or SotW if the server does not implement delta.
	// Do not use it with an istiod: before 1.32 its delta responses do not name the removed configs,
	// and changes that an istiod does not push are not requested by delta. The default is
	// SotW, which every server implements.
	Delta bool
	// EmptyHold is the delay of the first response on a stream if the response removes all objects of
	// its kind: see the package comment. The default is 10 s; with a negative value it is
	// applied at once.
	EmptyHold time.Duration
	// MaxBackoff is the longest time between two attempts to open a stream, without jitter. The
	// default is 30 s.
	MaxBackoff time.Duration
	// RetryInterval is the interval between retries of rejected writes. The default is 15 s.
	RetryInterval time.Duration
	// MaxResponseBytes is the maximum size of a response; a larger one ends the stream with an error.
	// The default is 256 MiB.
	MaxResponseBytes int
}

func (o SourceOptions) withDefaults(schemas configstore.Schemas) SourceOptions {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Kinds == nil {
		o.Kinds = kindsOf(schemas)
	}
	if o.Node == nil {
		o.Node = defaultNode(o.Revision)
	}
	o.AskAgain = cmp.Or(o.AskAgain, time.Minute)
	o.EmptyHold = cmp.Or(o.EmptyHold, 10*time.Second)
	o.MaxBackoff = cmp.Or(o.MaxBackoff, 30*time.Second)
	o.RetryInterval = cmp.Or(o.RetryInterval, 15*time.Second)
	o.MaxResponseBytes = cmp.Or(o.MaxResponseBytes, 256<<20)
	return o
}

// defaultNode returns a node with the metadata of Istio's client. Its version is higher than any other,
// because an istiod leaves out what old proxies do not understand.
func defaultNode(revision string) *core.Node {
	fields := map[string]*structpb.Value{
		"GENERATOR":     structpb.NewStringValue("api"),
		"ISTIO_VERSION": structpb.NewStringValue("65536.65536.65536"),
	}
	if revision != "" {
		fields["ISTIO_REVISION"] = structpb.NewStringValue(revision)
	}
	return &core.Node{
		Id:       "waypoint~127.0.0.1~pilotkit.istio-system~istio-system.svc.cluster.local",
		Metadata: &structpb.Struct{Fields: fields},
	}
}

// revLabel names the revision that an object is for.
const revLabel = "istio.io/rev"

// inRevision reports whether an object is for a revision.
func inRevision(labels map[string]string, revision string) bool {
	label, ok := labels[revLabel]
	return !ok || revision == "" || label == revision
}
