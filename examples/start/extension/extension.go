// SPDX-License-Identifier: Apache-2.0

// Package extension is an example of a mesh extension whose tests need no cluster.
package extension

import (
	"errors"
	"log/slog"

	"google.golang.org/protobuf/types/known/wrapperspb"
	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/istio"
)

// Protect gives each ServiceEntry outside of the mesh a DestinationRule that ejects failing
// endpoints. It writes the rules into the store of the entries.
func Protect(configs configstore.ConfigStoreCache, log *slog.Logger) {
	rules := configstore.Typed[*networking.DestinationRule](configs)
	configs.RegisterEventHandler(istio.ServiceEntry, configstore.TypedHandler(
		func(_, entry configstore.ConfigOf[*networking.ServiceEntry], event configstore.Event) {
			err := error(nil)
			if event == configstore.EventDelete || entry.Spec.GetLocation() != networking.ServiceEntry_MESH_EXTERNAL {
				if err = rules.Delete(entry.Name, entry.Namespace, nil); errors.Is(err, configstore.ErrNotFound) {
					err = nil
				}
			} else {
				_, err = rules.Upsert(configstore.NewConfig(entry.Name, entry.Namespace, protection(entry.Spec.GetHosts()[0])))
			}
			if err != nil {
				log.Error("no protection", slog.String("entry", entry.Namespace+"/"+entry.Name), slog.Any("error", err))
			}
		},
	))
}

func protection(host string) *networking.DestinationRule {
	return &networking.DestinationRule{Host: host, TrafficPolicy: &networking.TrafficPolicy{
		OutlierDetection: &networking.OutlierDetection{Consecutive_5XxErrors: wrapperspb.UInt32(5)},
	}}
}
