// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"encoding/json"
	"fmt"

	"k8s.io/client-go/rest"

	"github.com/pilotkit/pilotkit/configstore"
)

// Create implements ConfigStore. The API server sets the creation time. A Status is written by a
// second request if the kind has a status subresource; the revision is that of the last request. An
// error with the text "the content was written" comes from the second request: it is ErrConflict if
// another writer changed the object between the two.
func (c *Cache) Create(config configstore.Config) (string, error) {
	w, err := c.begin(configstore.OpCreate, config)
	if err != nil {
		return "", err
	}
	defer w.cancel()
	return w.finish(w.create())
}

// Update implements ConfigStore. It preserves the parts of an object that a Config has no field
// for: see the package comment. The creation time is the API server's. A nil Status preserves the
// stored one. A different Status is written by a second request if the kind has a status
// subresource, at the revision of the first request: if another writer changed the object between
// the two, the error is ErrConflict and says that the content was written, with or without a given
// ResourceVersion. Update reads the object first; without a ResourceVersion it retries after a
// conflict.
func (c *Cache) Update(config configstore.Config) (string, error) {
	w, err := c.begin(configstore.OpUpdate, config)
	if err != nil {
		return "", err
	}
	defer w.cancel()
	return w.finish(w.replace())
}

// UpdateStatus implements ConfigStore. It writes the status subresource if the kind has one. A nil
// Status removes the stored one.
func (c *Cache) UpdateStatus(config configstore.Config) (string, error) {
	w, err := c.begin(configstore.OpUpdateStatus, config)
	if err != nil {
		return "", err
	}
	defer w.cancel()
	return w.finish(w.replaceStatus())
}

// Delete implements ConfigStore. An object with finalizers is only marked for deletion: it stays
// until they have run.
func (c *Cache) Delete(kind configstore.GroupVersionKind, name, namespace string, resourceVersion *string) error {
	w, err := c.begin(configstore.OpDelete, configstore.Config{
		Meta: configstore.Meta{GroupVersionKind: kind, Name: name, Namespace: namespace},
	})
	if err != nil {
		return err
	}
	defer w.cancel()
	_, err = w.finish("", w.remove(resourceVersion))
	return err
}

// write is one write in progress.
type write struct {
	cache  *Cache
	kind   *kind
	op     configstore.Op
	config configstore.Config
	// half is set once the content is written, while the status is pending.
	half   bool
	ctx    context.Context //nolint:containedctx // That of one call.
	cancel context.CancelFunc
}

// begin finds the kind and validates the config.
func (c *Cache) begin(op configstore.Op, config configstore.Config) (*write, error) {
	w := &write{cache: c, op: op, config: config}
	gvk := config.GroupVersionKind
	if gvk == (configstore.GroupVersionKind{}) {
		gvk, _ = c.Schemas().KindOf(config.Spec)
	}
	if w.kind = c.kind(gvk); w.kind == nil {
		return nil, w.fail(c.Schemas().UnknownKind(config.GroupVersionKind, config.Spec))
	}
	w.config.GroupVersionKind = w.kind.gvk()
	if err := w.check(); err != nil {
		return nil, w.fail(err)
	}
	w.ctx, w.cancel = context.WithTimeout(quiet(context.Background()), c.opts.WriteTimeout) //nolint:forbidigo // The methods of ConfigStore take no context.
	return w, nil
}

func (w *write) check() error {
	schema, config := w.kind.schema, w.config
	if w.op == configstore.OpDelete {
		return nil
	}
	if w.op == configstore.OpUpdateStatus {
		config.Spec, schema.Validate = schema.Spec, nil // only the status is validated
	}
	if w.cache.opts.SkipValidation {
		schema.Validate = nil
	}
	if _, err := schema.Check(config); err != nil {
		return err
	}
	if config.Namespace == "" && !schema.ClusterScoped {
		return &configstore.ValidationError{
			Key:        config.Key(),
			Violations: []configstore.Violation{{Field: "metadata.namespace", Message: "must not be empty"}},
		}
	}
	return nil
}

// path returns the path of the object.
func (w *write) path(version int) []string {
	return append(w.kind.path(version, w.config.Namespace), w.config.Name)
}

// call sends a request. While the served version of the kind is unknown, it tries the versions one
// by one.
func (w *write) call(request func(version int) *rest.Request) (*stored, error) {
	k := w.kind
	for version := k.version(); ; version++ {
		result := request(version).Do(w.ctx)
		data, _ := result.Raw()
		err := result.Error() // Unlike the error of Raw, this is the API server's.
		switch {
		case isNoSuchPath(err) && version+1 < len(k.versions):
			continue
		case isNoSuchPath(err):
			return nil, fmt.Errorf("%w: the API server does not serve %s", configstore.ErrUnknownKind, k.crdName())
		case err != nil:
			return nil, err
		}
		return parse(data)
	}
}

// get reads the object.
func (w *write) get() (*stored, error) {
	return w.call(func(version int) *rest.Request { return w.cache.client.Get().AbsPath(w.path(version)...) })
}

// put writes the object, or a subresource of it. It fails with a conflict if the object has changed
// since it was read.
func (w *write) put(s *stored, subresource ...string) (*stored, error) {
	data, err := json.Marshal(s.fields)
	if err != nil {
		return nil, err
	}
	return w.call(func(version int) *rest.Request {
		return w.cache.client.Put().AbsPath(append(w.path(version), subresource...)...).Body(data)
	})
}
