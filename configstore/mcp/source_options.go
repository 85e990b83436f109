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
	// Logger gets each error once, when it appears, and a note when it is gone; the
	// same for the connection. Default: nil, which discards.
	Logger *slog.Logger
	// Kinds are requested, each under the version that is named here, which may be any
	// that the store's schemas know: "networking.istio.io/v1alpha3/ServiceEntry" for a
	// server that does not know v1. Default: all kinds of the store, in their canonical
	// versions.
	Kinds []configstore.GroupVersionKind
	// Revision is the revision of the objects to take: those without a label istio.io/rev, and
	// those labelled with this revision. An object that is moved to another revision is deleted.
	// Empty, the default, takes all objects.
	Revision string
	// Domain is written to the Domain of every object. Default: empty.
	Domain string
	// Node is the identity that the source sends. Default: a waypoint of the namespace
	// istio-system, to which an istiod sends the objects of all namespaces (to a sidecar only
	// what that depends on), with the metadata that Istio's client sends: GENERATOR "api",
	// which asks for configs, ISTIO_VERSION, and Revision as ISTIO_REVISION. An istiod with
	// another root namespace needs a node of that one:
	// "waypoint~127.0.0.1~NAME.NAMESPACE~NAMESPACE.svc.cluster.local". It must not be modified.
	Node *core.Node
	// AskAgain is how often everything is requested again on a stream of SotW, without a
	// nonce: an istiod pushes no change of WorkloadGroups, WasmPlugins, WorkloadEntries that
	// nothing selects, or of labels alone, and answers with them when it is asked. If a server
	// that has answered so once does not until the next time, the stream ends with an error,
	// and Status is stale. A Server pushes every change, and does not answer. Default: 1 minute;
	// negative: never.
	AskAgain time.Duration
	// Delta makes the source speak the delta protocol, and SotW if a peer answers that it
	// does not implement that. Do not use it with an istiod: before 1.32 it does not tell
	// in that protocol which configs are removed, and the source does not ask again for
	// what an istiod does not push. Default: SotW, which every peer speaks.
	Delta bool
	// EmptyHold is how long the first answer on a stream is held back if it leaves nothing
	// of the objects of the kind; see the package comment. Default: 10 s;
	// negative: it is taken at once.
	EmptyHold time.Duration
	// MaxBackoff is the longest time between two attempts to open a stream, but for
	// chance. Default: 30 s.
	MaxBackoff time.Duration
	// RetryInterval is the interval between retries of rejected writes. Default: 15 s.
	RetryInterval time.Duration
	// MaxResponseBytes is the size of the largest response that is taken; a larger one
	// ends the stream with an error. Default: 256 MiB.
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

// defaultNode returns a node with the metadata of Istio's client: a version that is higher than
// any keeps an istiod from leaving out what old proxies do not understand.
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
