// SPDX-License-Identifier: Apache-2.0

package ingress

import (
	"fmt"
	"slices"
	"time"

	meshconfig "istio.io/api/mesh/v1alpha1"
	networking "istio.io/api/networking/v1alpha3"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/istio"
)

// ingress is an Ingress and its result.
type ingress struct {
	key Key
	// object is shared and read-only. It is nil after the Ingress was deleted.
	object *networkingv1.Ingress
	// hosts contains the routes of each of its hosts, in order, or is nil if it is not ours.
	hosts map[string][]route
}

// classAnnotation is older than IngressClasses and takes precedence over them.
const classAnnotation = "kubernetes.io/ingress.class"

// everyHost is the host of rules without a host.
const everyHost = "*"

// backendsOf yields the backends that an Ingress references.
func backendsOf(o *networkingv1.Ingress) func(func(*networkingv1.IngressBackend) bool) {
	return func(yield func(*networkingv1.IngressBackend) bool) {
		if o.Spec.DefaultBackend != nil && !yield(o.Spec.DefaultBackend) {
			return
		}
		for r := range o.Spec.Rules {
			http := o.Spec.Rules[r].HTTP
			for p := range pathsOf(http) {
				if !yield(&http.Paths[p].Backend) {
					return
				}
			}
		}
	}
}

func pathsOf(http *networkingv1.HTTPIngressRuleValue) []networkingv1.HTTPIngressPath {
	if http == nil {
		return nil
	}
	return http.Paths
}

// isOurs reports whether an Ingress is ours. An Ingress whose IngressClass does not exist is not.
func (c *Converter) isOurs(o *networkingv1.Ingress) (ours bool, found []Problem) {
	if c.mesh.Mode == meshconfig.MeshConfig_OFF {
		return false, nil
	}
	if name, annotated := o.Annotations[classAnnotation]; annotated {
		return name != "" && name == c.mesh.Class, nil
	}
	name := o.Spec.IngressClassName
	if name == nil {
		return c.mesh.Mode == meshconfig.MeshConfig_DEFAULT, nil
	}
	class := c.classes[*name]
	if class == nil {
		return false, []Problem{{"spec.ingressClassName", fmt.Sprintf("there is no IngressClass %q", *name)}}
	}
	return class.ours, nil
}

// convert recomputes the Gateway and the routes of an Ingress, and marks its hosts.
func (c *Converter) convert(key Key) {
	i := c.ingresses[key]
	var ours bool
	var problems []Problem
	if i.object == nil {
		delete(c.ingresses, key)
	} else {
		ours, problems = c.isOurs(i.object)
	}
	var gateway *configstore.Config
	var hosts map[string][]route
	if ours {
		found := findings{schemas: c.schemas}
		gateway = c.gateway(i, &found)
		hosts = c.routes(i, &found)
		problems = found.problems
	}
	for host := range i.hosts {
		c.hosts.remove(host, key)
		c.dirtyHosts[host] = true
	}
	i.hosts = hosts
	for host := range i.hosts {
		c.hosts.add(host, key)
		c.dirtyHosts[host] = true
	}
	c.publish(istio.Gateway, c.gatewayKey(key), gateway)
	c.claim(key, ours)
	c.report(key, problems)
}

// claim records whether an Ingress is ours.
func (c *Converter) claim(key Key, ours bool) {
	if _, were := c.published.ours.Get(key); were == ours {
		return
	}
	c.touched, c.statuses[key] = true, true
	if ours {
		c.published.ours = c.published.ours.Set(key, struct{}{})
	} else {
		c.published.ours = c.published.ours.Delete(key)
	}
}

// report replaces the problems of an Ingress.
func (c *Converter) report(key Key, problems []Problem) {
	old, _ := c.published.problems.Get(key)
	if slices.Equal(old, problems) {
		return
	}
	c.touched = true
	if len(problems) > 0 {
		c.published.problems = c.published.problems.Set(key, problems)
	} else {
		c.published.problems = c.published.problems.Delete(key)
	}
}

// gateway returns the Gateway of an Ingress.
func (c *Converter) gateway(i *ingress, found *findings) *configstore.Config {
	spec := &networking.Gateway{Selector: map[string]string{gatewayLabel: c.mesh.gatewayPods()}}
	config := c.config(istio.Gateway, c.gatewayKey(i.key), 0)
	// add adds a server with its valid hosts.
	add := func(field string, s *networking.Server) {
		hosts := s.Hosts
		s.Hosts = nil
		for n, host := range hosts {
			one := &networking.Server{Port: s.Port, Hosts: []string{host}, Tls: s.Tls}
			if len(validation.IsDNS1123Label(host)) == 0 {
				one.Hosts[0] += ".local" // Gateways of users cannot have short names, unlike Ingresses.
			}
			if found.valid(fmt.Sprintf("%s.hosts[%d]", field, n), istio.Gateway, &networking.Gateway{Selector: spec.Selector, Servers: []*networking.Server{one}}) {
				s.Hosts = append(s.Hosts, host)
			}
		}
		if len(s.Hosts) > 0 {
			spec.Servers = append(spec.Servers, s)
		}
	}
	for n, tls := range i.object.Spec.TLS {
		field := fmt.Sprintf("spec.tls[%d]", n)
		if tls.SecretName == "" {
			found.add(field+".secretName", "is required: there is no server for these hosts")
			continue
		}
		hosts := tls.Hosts
		if len(hosts) == 0 {
			hosts = []string{everyHost}
		}
		add(field, &networking.Server{
			Port: &networking.Port{
				Number: 443, Protocol: "HTTPS", Name: fmt.Sprintf("https-443-ingress-%s-%s-%d", i.key.Name, i.key.Namespace, n),
			},
			Hosts: hosts,
			Tls:   &networking.ServerTLSSettings{Mode: networking.ServerTLSSettings_SIMPLE, CredentialName: tls.SecretName},
		})
	}
	add("", &networking.Server{
		Port:  &networking.Port{Number: 80, Protocol: "HTTP", Name: fmt.Sprintf("http-80-ingress-%s-%s", i.key.Name, i.key.Namespace)},
		Hosts: []string{everyHost},
	})
	config.Spec = spec
	return config
}

// config returns a config without a spec. Of several configs of a kind the one with the lowest rank
// comes first.
func (c *Converter) config(kind configstore.GroupVersionKind, key Key, rank int64) *configstore.Config {
	return &configstore.Config{Meta: configstore.Meta{
		GroupVersionKind: kind, Name: key.Name, Namespace: key.Namespace, Domain: c.opts.Domain,
		CreationTimestamp: time.Unix(rank, 0).UTC(),
	}}
}
