// SPDX-License-Identifier: Apache-2.0

package debug

import (
	"bytes"
	"encoding/json"
	"errors"
	"strconv"

	"google.golang.org/protobuf/encoding/protojson"

	"github.com/pilotkit/pilotkit/xdsupdate/ads"
)

// resourcePage is the content of the page of one resource of a proxy.
type resourcePage struct {
	Proxy  string `json:"proxy"`
	Stream uint64 `json:"stream"`
	resourceRow
	// SentContent is the state last sent. AcceptedContent is the state that the proxy uses, if it
	// is another one. Secrets are redacted.
	SentContent     content `json:"sent_content"`
	AcceptedContent content `json:"accepted_content,omitzero"`
}

// content is a state of a resource.
type content struct {
	Message json.RawMessage `json:"message,omitempty"`
	// Missing explains why there is no content.
	Missing string `json:"missing,omitempty"`

	// Text is the message for the HTML page. A long one is truncated, and then Cut is set.
	Text string `json:"-"`
	Cut  bool   `json:"-"`
}

func (h *handler) resource(q *query) (any, error) {
	status, resources, err := h.streamOf(q)
	if err != nil {
		return nil, err
	}
	for _, r := range resources.Resources {
		if r.Name != q.values.Get("name") || r.TypeURL != q.text("type") && typeName(r.TypeURL) != q.text("type") {
			continue
		}
		out := &resourcePage{Proxy: status.ID, Stream: status.Stream, resourceRow: resourceRowOf(r), SentContent: contentOf(r.Sent)}
		if r.Accepted != r.Sent && r.Accepted.Exists() {
			out.AcceptedContent = contentOf(r.Accepted)
		}
		return out, nil
	}
	return nil, notFound("the proxy has no resource %q of the type %q", q.values.Get("name"), q.text("type"))
}

func contentOf(s ads.StateOfResource) content {
	m, err := s.Message()
	switch {
	case !s.Exists():
		return content{Missing: "nothing was sent"}
	case errors.Is(err, ads.ErrNoState):
		return content{Missing: "the proxy has brought it from another server, so that its content is not known here"}
	case err != nil:
		return content{Missing: redactText(err.Error())}
	}
	data, err := protojson.MarshalOptions{UseProtoNames: true}.Marshal(m)
	if err != nil {
		return content{Missing: redactText(err.Error())}
	}
	var text bytes.Buffer
	if err := json.Indent(&text, data, "", "  "); err != nil {
		return content{Missing: err.Error()}
	}
	c := content{Message: data}
	c.Text, c.Cut = shown(text.String())
	return c
}

func number(n uint64) string { return strconv.FormatUint(n, 10) }
