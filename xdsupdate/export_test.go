// SPDX-License-Identifier: Apache-2.0

package xdsupdate

import "github.com/pilotkit/pilotkit/registry"

// Collect merges requests as a Pusher does: part by part, then the parts.
func Collect(parts ...[]*PushRequest) *PushRequest {
	var all pending
	for _, part := range parts {
		var p pending
		for _, r := range part {
			p.add(r)
		}
		all.addAll(&p)
	}
	return all.take()
}

// ShardWriter writes to an index by a claim of a shard.
type ShardWriter struct {
	index  *EndpointIndex
	writer writer
}

// Claim takes a shard over, as Pusher.Claim does.
func (x *EndpointIndex) Claim(shard ShardKey) ShardWriter { return ShardWriter{x, x.claim(shard)} }

func (w ShardWriter) Shard() ShardKey { return w.writer.shard.key }

func (w ShardWriter) Valid() bool { return w.writer.valid() }

func (w ShardWriter) UpdateServiceEndpoints(hostname registry.Hostname, namespace string, endpoints []*registry.Endpoint) PushType {
	return w.index.write(w.writer, serviceName{hostname, namespace}, update{list: endpoints})
}

func (w ShardWriter) UpdateEndpoints(hostname registry.Hostname, namespace string, changes []EndpointChange) PushType {
	return w.index.write(w.writer, serviceName{hostname, namespace}, update{changes: changes, delta: true})
}

func (w ShardWriter) DeleteService(hostname registry.Hostname, namespace string) {
	w.index.delete(w.writer, serviceName{hostname, namespace})
}

func (w ShardWriter) Remove() []ConfigKey { return w.index.removeWhere(w.writer, anyShard) }

func (w ShardWriter) Prune() []ConfigKey { return w.index.removeWhere(w.writer, w.writer.outdated) }

func (w ShardWriter) Close() { w.writer.close() }
