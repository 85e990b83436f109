// SPDX-License-Identifier: Apache-2.0

package kubetest

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"
)

// callPatience is how long one call may take, on a busy machine.
const callPatience = 30 * time.Second

// Config says how a client reaches a server: as Host, a URL, with the Token of an
// administrator, who acts as User with Groups if User is not empty. The
// certificate of the server is of its own making, for a client to accept without
// a look. The core has no Kubernetes in its dependencies, so that tests make a
// configuration for client-go of it themselves:
//
//	func restConfig(c kubetest.Config) *rest.Config {
//		return &rest.Config{
//			Host: c.Host, BearerToken: c.Token, TLSClientConfig: rest.TLSClientConfig{Insecure: true},
//			Impersonate: rest.ImpersonationConfig{UserName: c.User, Groups: c.Groups},
//			QPS: -1,
//		}
//	}
type Config struct {
	Host   string
	Token  string
	User   string
	Groups []string
}

// Call sends one request on a connection of its own, with a body in YAML or JSON
// unless it is nil, and returns the status code and the body of the answer. The
// path may have a query.
func (c Config) Call(ctx context.Context, method, path string, body []byte) (status int, answer []byte, err error) {
	ctx, cancel := context.WithTimeout(ctx, callPatience)
	defer cancel()
	response, err := c.Send(ctx, method, path, body)
	if err != nil {
		return 0, nil, err
	}
	defer response.Body.Close()
	answer, err = io.ReadAll(response.Body)
	return response.StatusCode, answer, err
}

// Send is Call for streamed responses, such as those of watches: the caller reads the body and
// closes it. Only ctx limits the time.
func (c Config) Send(ctx context.Context, method, path string, body []byte) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, method, c.Host+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Accept", "application/json")
	request.Header.Set("Authorization", "Bearer "+c.Token)
	if body != nil {
		request.Header.Set("Content-Type", "application/yaml") // JSON is YAML
	}
	if c.User != "" {
		request.Header.Set("Impersonate-User", c.User)
		request.Header["Impersonate-Group"] = c.Groups
	}
	client := &http.Client{Transport: &http.Transport{
		DisableKeepAlives: true,
		TLSClientConfig:   &tls.Config{InsecureSkipVerify: true}, //nolint:gosec // A certificate that it has just made.
	}}
	return client.Do(request)
}

// object is what all objects and errors of the API have of interest here.
type object struct {
	Metadata struct{ Name string }
	Message  string // of an error
	Details  struct{ Name string }
}

// create creates an object, and returns its name. That it is there already is no
// error.
func (c Config) create(ctx context.Context, collection string, manifest []byte) (name string, err error) {
	status, answer, err := c.Call(ctx, http.MethodPost, collection, manifest)
	if err != nil {
		return "", err
	}
	var o object
	if err := json.Unmarshal(answer, &o); err != nil {
		return "", fmt.Errorf("status %d: %w", status, err)
	}
	switch status {
	case http.StatusCreated:
		return o.Metadata.Name, nil
	case http.StatusConflict:
		return o.Details.Name, nil
	}
	return "", fmt.Errorf("status %d: %s", status, o.Message)
}

// pathOf returns the path of an object in a collection.
func pathOf(collection, name string) string { return collection + "/" + url.PathEscape(name) }
