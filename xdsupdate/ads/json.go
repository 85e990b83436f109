// SPDX-License-Identifier: Apache-2.0

package ads

import (
	"encoding/json"
	"fmt"

	"github.com/pilotkit/pilotkit/internal/excerpt"
	"github.com/pilotkit/pilotkit/registry"
)

// viewJSON is the JSON of a View.
type viewJSON struct {
	Namespace string             `json:"namespace"`
	Cluster   registry.ClusterID `json:"cluster,omitempty"`
	Addresses addressesJSON      `json:"addresses"`
	Client    string             `json:"client"`
	Group     string             `json:"group,omitempty"`
	Policy    string             `json:"policy,omitempty"`
}

type addressesJSON struct {
	IPv4      bool `json:"ipv4"`
	IPv6      bool `json:"ipv6"`
	Allocated bool `json:"allocated"`
}

// MarshalJSON implements json.Marshaler. Group and Policy may be any values, of which some
// have no JSON and others would fail for all that is beside them, so that they are text.
func (v View) MarshalJSON() ([]byte, error) {
	return json.Marshal(viewJSON{
		Namespace: v.Namespace, Cluster: v.Cluster, Addresses: addressesJSON(v.Addresses),
		Client: v.Client.String(), Group: textOf(v.Group), Policy: textOf(v.Policy),
	})
}

// textOf returns the text of a value, "" for nil.
func textOf(v any) string {
	if v == nil {
		return ""
	}
	return excerpt.Cut(fmt.Sprint(v))
}

// leftOutJSON is the JSON of a LeftOut.
type leftOutJSON struct {
	Group     string `json:"group,omitempty"`
	Kind      string `json:"kind"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
	Error     string `json:"error"`
}

// MarshalJSON implements json.Marshaler.
func (l LeftOut) MarshalJSON() ([]byte, error) {
	o := l.Object
	return json.Marshal(leftOutJSON{o.Kind.Group, o.Kind.Kind, o.Namespace, o.Name, l.Error})
}
