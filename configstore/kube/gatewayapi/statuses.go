// SPDX-License-Identifier: Apache-2.0

package gatewayapi

import (
	"encoding/json"
	"fmt"
	"time"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/types/known/structpb"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/pilotkit/pilotkit/configstore"
)

// SubscribeStatuses sets the function that is called with objects whose present or wanted status
// may have changed. A lock is held, so the function must not block or call the Cache. There is at
// most one; nil removes it. A new subscriber has to read Snapshot.Statuses.
func (c *Cache) SubscribeStatuses(look func([]ObjectKey)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.look = look
}

// PendingStatus returns an object of the source with its wanted status, for UpdateStatus of the
// source, if the present status differs. Conditions whose status has changed get the transition
// time now. A status has the ResourceVersion of the object that the converter read, so that
// concurrent writes are not overwritten. pending is false if there is nothing to write.
func (c *Cache) PendingStatus(key ObjectKey, now time.Time) (config configstore.Config, pending bool, err error) {
	c.mu.Lock()
	wanted := c.converter.Snapshot().Status(key)
	object, shown := c.objects[key], c.converter.shown(key)
	ready := c.ready
	c.mu.Unlock()
	if !ready || object == nil || wanted == nil || apiequality.Semantic.DeepEqual(wanted, shown) {
		return configstore.Config{}, false, nil
	}
	config = *object
	config.Status, err = encodeStatus(wanted, now)
	return config, err == nil, err
}

// shown returns the present status of an object, with the type of Snapshot.Status, or nil if the
// object does not exist.
func (c *Converter) shown(of ObjectKey) Status {
	switch of.Kind {
	case KindGatewayClass:
		if o := c.classes[of.Key]; o != nil {
			return &o.Status
		}
	case KindGateway:
		if o := c.gateways[of.Key]; o != nil {
			return &o.Status
		}
	case KindListenerSet:
		if o := c.listenerSets[of.Key]; o != nil {
			return &o.Status
		}
	case KindBackendTLSPolicy:
		if o := c.policies[of.Key]; o != nil {
			return &o.Status
		}
	default:
		if o := c.routeObjects[routeKey{of.Kind, of.Key}]; o != nil {
			status := commonOf(of.Kind, o).status
			return &status
		}
	}
	return nil
}

// encodeStatus returns a status as a Struct, with the missing transition times set to now.
func encodeStatus(status Status, now time.Time) (*structpb.Struct, error) {
	text, err := json.Marshal(withTimes(status, metav1.NewTime(now)))
	if err != nil {
		return nil, fmt.Errorf("encode the status: %w", err)
	}
	out := &structpb.Struct{}
	if err := protojson.Unmarshal(text, out); err != nil {
		return nil, fmt.Errorf("encode the status: %w", err)
	}
	return out, nil
}

// withTimes returns a copy of a status with the missing transition times set to now.
func withTimes(status Status, now metav1.Time) Status {
	set := func(conditions []metav1.Condition) {
		for i := range conditions {
			if conditions[i].LastTransitionTime.IsZero() {
				conditions[i].LastTransitionTime = now
			}
		}
	}
	switch s := status.(type) {
	case *gatewayv1.GatewayClassStatus:
		next := s.DeepCopy()
		set(next.Conditions)
		return next
	case *gatewayv1.GatewayStatus:
		next := s.DeepCopy()
		set(next.Conditions)
		for i := range next.Listeners {
			set(next.Listeners[i].Conditions)
		}
		return next
	case *gatewayv1.ListenerSetStatus:
		next := s.DeepCopy()
		set(next.Conditions)
		for i := range next.Listeners {
			set(next.Listeners[i].Conditions)
		}
		return next
	case *gatewayv1.RouteStatus:
		next := s.DeepCopy()
		for i := range next.Parents {
			set(next.Parents[i].Conditions)
		}
		return next
	case *gatewayv1.PolicyStatus:
		next := s.DeepCopy()
		for i := range next.Ancestors {
			set(next.Ancestors[i].Conditions)
		}
		return next
	default:
		return status
	}
}
