// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"encoding/json"
	"fmt"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/types/known/structpb"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/pilotkit/pilotkit/configstore"
)

// PatchStatus replaces the status of an object at its given ResourceVersion, in one request that
// ends with ctx. The kind must have a status subresource, and statuses of type structpb.Struct. The
// error is ErrConflict if the object has changed. Fields of the stored status that config.Status
// does not have are removed if the cache has seen them.
func (c *Cache) PatchStatus(ctx context.Context, config configstore.Config) error {
	w, err := c.begin(configstore.OpUpdateStatus, config)
	if err != nil {
		return err
	}
	w.cancel()
	w.ctx, w.cancel = context.WithTimeout(quiet(ctx), c.opts.WriteTimeout)
	defer w.cancel()
	body, err := w.statusPatch()
	if err == nil {
		_, err = w.call(func(version int) *rest.Request {
			return c.client.Patch(types.MergePatchType).AbsPath(append(w.path(version), "status")...).Body(body)
		})
	}
	_, err = w.finish("", err)
	return err
}

// statusPatch returns a merge patch of the status, conditional on the given ResourceVersion.
func (w *write) statusPatch() ([]byte, error) {
	status, ok := w.config.Status.(*structpb.Struct)
	if !ok || w.config.ResourceVersion == "" {
		return nil, fmt.Errorf("%w: a status that is not a Struct, or no resourceVersion", configstore.ErrInvalid)
	}
	fields := map[string]json.RawMessage{}
	for name, value := range status.GetFields() {
		text, err := protojson.Marshal(value)
		if err != nil {
			return nil, err
		}
		fields[name] = text
	}
	if old := w.cache.Get(w.kind.gvk(), w.config.Name, w.config.Namespace); old != nil {
		shown, _ := old.Status.(*structpb.Struct)
		for name := range shown.GetFields() {
			if _, stays := fields[name]; !stays {
				fields[name] = json.RawMessage("null")
			}
		}
	}
	return json.Marshal(map[string]any{
		"metadata": map[string]string{"resourceVersion": w.config.ResourceVersion}, "status": fields,
	})
}
