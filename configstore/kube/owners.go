// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"encoding/json"
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pilotkit/pilotkit/configstore"
)

func owners(refs []metav1.OwnerReference) []configstore.OwnerReference {
	if len(refs) == 0 {
		return nil
	}
	out := make([]configstore.OwnerReference, len(refs))
	for i, r := range refs {
		out[i] = configstore.OwnerReference{
			APIVersion: r.APIVersion, Kind: r.Kind, Name: r.Name, UID: string(r.UID),
			Controller:         r.Controller != nil && *r.Controller,
			BlockOwnerDeletion: r.BlockOwnerDeletion != nil && *r.BlockOwnerDeletion,
		}
	}
	return out
}

// rewriteOwners returns the text of next. An owner with a known UID keeps the fields that a config
// does not have, and an explicit false. old is the decoded stored text.
func rewriteOwners(stored json.RawMessage, old, next []configstore.OwnerReference) (json.RawMessage, error) {
	if slices.Equal(old, next) {
		return stored, nil
	}
	var before []map[string]json.RawMessage
	if !isNull(stored) {
		if err := json.Unmarshal(stored, &before); err != nil {
			return nil, err
		}
	}
	out := make([]map[string]json.RawMessage, len(next))
	for i, o := range next {
		out[i] = map[string]json.RawMessage{}
		j := slices.Index(old, o)
		if j < 0 {
			j = slices.IndexFunc(old, func(b configstore.OwnerReference) bool { return b.UID == o.UID })
		}
		if j >= 0 {
			maps.Copy(out[i], before[j])
		}
		for name, value := range map[string]string{"apiVersion": o.APIVersion, "kind": o.Kind, "name": o.Name, "uid": o.UID} {
			if err := set(out[i], name, value); err != nil {
				return nil, err
			}
		}
		for name, is := range map[string]bool{"controller": o.Controller, "blockOwnerDeletion": o.BlockOwnerDeletion} {
			if _, written := out[i][name]; is || written {
				if err := set(out[i], name, is); err != nil {
					return nil, err
				}
			}
		}
	}
	return json.Marshal(out)
}
