// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"encoding/json"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// isAbsent reports whether the API server's discovery does not list the kind. A 404 for the kind's
// path is not sufficient, because any proxy on the way may return it.
func (k *kind) isAbsent(ctx context.Context) bool {
	var groups metav1.APIGroupList
	if !k.discover(ctx, &groups, "apis") || groups.Kind != "APIGroupList" || len(groups.Groups) == 0 {
		return false
	}
	i := slices.IndexFunc(groups.Groups, func(g metav1.APIGroup) bool { return g.Name == k.gvk().Group })
	if i < 0 {
		return true
	}
	for _, version := range groups.Groups[i].Versions {
		if !slices.Contains(k.versions, version.Version) {
			continue
		}
		var resources metav1.APIResourceList
		if !k.discover(ctx, &resources, "apis", k.gvk().Group, version.Version) || resources.Kind != "APIResourceList" ||
			slices.ContainsFunc(resources.APIResources, func(r metav1.APIResource) bool { return r.Name == k.schema.Plural }) {
			return false
		}
	}
	return true
}

// discover reads a document of the API server's discovery, and reports whether that succeeded.
func (k *kind) discover(ctx context.Context, into any, path ...string) bool {
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	result := k.cache.client.Get().AbsPath(path...).MaxRetries(0).Do(ctx)
	data, err := result.Raw()
	return err == nil && result.Error() == nil && json.Unmarshal(data, into) == nil
}
