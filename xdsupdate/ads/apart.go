// SPDX-License-Identifier: Apache-2.0

package ads

import (
	"slices"
	"strings"
	"time"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/pilotkit/pilotkit/xdsupdate/ads/internal/acks"
	"github.com/pilotkit/pilotkit/xdsupdate/ads/internal/difference"
	"github.com/pilotkit/pilotkit/xdsupdate/ads/internal/reference"
	"github.com/pilotkit/pilotkit/xdsupdate/ads/internal/resource"
	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
)

// A rejected resource must not keep others from a client. Envoy applies the valid clusters or
// listeners of a response, and names the rejected ones. Of any other type it applies no resource
// behind the rejected one, and does not name it. So secrets, routes and few load assignments come
// in responses of their own, and the resources of a rejected response are sent again in parts,
// until each rejected resource was rejected alone.

// namedBy returns the resources of a response that the error of its NACK names. Of clusters and
// listeners Envoy names all rejected ones.
func (l *rejections) namedBy(o *acks.Response, text string) []*resource.State {
	var out []*resource.State
	among := func(name string) *resource.State { return l.Has.Find(name) }
	if !o.Full {
		among = o.Find
		if len(o.Listed) < 2 {
			return nil
		}
	}
	for word := range strings.FieldsSeq(text) {
		word = strings.Trim(word, `'"(),;:.`)
		if r := among(word); word != "" && r != nil && r.Marker == resource.Present && !slices.Contains(out, r) {
			out = append(out, r)
		}
	}
	return out
}

// divide has the resources of a rejected response sent again that the client has not accepted: each
// resource that the error names alone, and the others together, or in two halves if the error names
// no resource. all means that the error names all rejected resources.
func (l *rejections) divide(o *acks.Response, named []*resource.State, all bool) {
	for _, r := range named {
		l.Apart = append(l.Apart, []*resource.State{r})
	}
	rest := slices.DeleteFunc(slices.Clone(o.Listed), func(r *resource.State) bool { return slices.Contains(named, r) })
	switch half := len(rest) / 2; {
	case all:
	case len(named) > 0:
		l.Apart = append(l.Apart, rest)
	default:
		l.Apart = append(l.Apart, rest[:half], rest[half:])
	}
}

// takeApart returns a response with the next resources that are sent apart, or nil after the last
// of them. The selection has a snapshot.
func (s *subscription) takeApart() *difference.Content {
	all := &difference.Content{After: s.Has}
	state, traits := s.state(), s.conn.Traits(&s.Type)
	for ; len(s.Apart) > 0 && len(all.Parts) < difference.MostParts; s.Apart = s.Apart[1:] {
		var list []*resource.State
		for _, r := range s.Apart[0] {
			if now := state.Snapshot.Find(r.Name); now.IsPresent() {
				list = append(list, now)
			}
		}
		if len(list) == 0 {
			continue
		}
		all.After = all.After.WithAll(list)
		if s.URL == difference.SecretType {
			s.rejections.vary(list)
		}
		part := state.NewContent(list, nil, traits)
		if s.URL == envoy.ClusterType {
			part.Fresh = reference.NewClusterNames(list, resource.NameOf) // the client may not have them
		}
		all.Parts = append(all.Parts, difference.Part{Content: part, Sum: all.After.Sum})
	}
	if len(all.Parts) == 0 {
		return nil
	}
	return all
}

// A client may accept a rejected resource later, when the cause is not in the resource: a missing file, a port in
// use.

const firstRetry, lastRetry = time.Second, 64 * time.Second

// tryAgain sends the rejected resources that are due. The others follow soon after they are due, because attempts
// for many resources are made together.
func (l *rejections) tryAgain(now time.Time) {
	next, more := now.Add(lastRetry), false
	l.ForgetGone()
	for name, r := range l.byName {
		switch {
		case r.times == 0:
			continue
		case l.searched(name) != nil:
			// It is sent again when a rejected contribution has changed.
		case r.next.After(now):
			if r.next.Before(next) {
				next = r.next
			}
		case name == "" || l.Offers(name):
			r.next = now.Add(lastRetry) // unless the client answers
			l.again(name)
		default:
			l.end(r)
			continue
		}
		more = true
	}
	switch soon := now.Add(firstRetry); {
	case !more:
		l.retryAt = time.Time{}
	case next.Before(soon):
		l.retryAt = soon
	default:
		l.retryAt = next
	}
}

// again has a rejected resource sent again. An empty name means that the resource is not known.
func (l *rejections) again(name string) {
	switch full := !l.conn.Delta && l.selection != nil && l.state().FullState(); {
	case name == "":
		l.MustAnswer = l.MustAnswer || full
	case full:
		l.Forget([]string{name})
	default:
		l.Apart = append(l.Apart, []*resource.State{{Name: name}})
	}
}

// Envoy looks at a rejected secret again only if the secret differs from the rejected one.
// Otherwise it ACKs the secret without using it (Envoy 1.36 and 1.40: SdsApi::onConfigUpdate
// compares hashes, and stores the hash of a secret before it reads the secret's files). So each
// attempt alternates between two encodings of a rejected secret.

// vary replaces rejected secrets in a list by their other encodings, in every other attempt. The
// secrets keep their versions.
func (l *rejections) vary(list []*resource.State) {
	for i, res := range list {
		if f := l.byName[res.Name]; f != nil && f.times > 0 {
			if f.varied = !f.varied; f.varied {
				list[i] = otherEncoding(res)
			}
		}
	}
}

// otherEncoding returns a secret with the same meaning and another encoding, or r if there is none.
func otherEncoding(r *resource.State) *resource.State {
	var s tlsv3.Secret
	if proto.Unmarshal(r.Value, &s) != nil {
		return r
	}
	switch t := s.GetType().(type) {
	case *tlsv3.Secret_TlsCertificate:
		if t.TlsCertificate.GetPassword() == nil { // of a key that is not encrypted
			t.TlsCertificate.Password = &core.DataSource{Specifier: &core.DataSource_InlineString{}}
		}
	case *tlsv3.Secret_ValidationContext:
		const byDefault = 100
		if t.ValidationContext.GetMaxVerifyDepth() == nil {
			t.ValidationContext.MaxVerifyDepth = wrapperspb.UInt32(byDefault)
		}
	}
	value, err := resource.Marshal(&s)
	if err != nil {
		return r
	}
	out := &resource.State{TypeURL: r.TypeURL, Name: r.Name, Hash: r.Hash, Value: value}
	out.SetMade()
	return out
}
