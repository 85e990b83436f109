// SPDX-License-Identifier: Apache-2.0

package rbac

import (
	"fmt"
	"strconv"
	"strings"
)

// policyName returns the name of what a rule becomes; it is in Envoy's logs.
func policyName(p Policy, rule int) string {
	return fmt.Sprintf("ns[%s]-policy[%s]-rule[%d]", p.Namespace, p.Name, rule)
}

// ParsePolicyName returns which rule of which policy has become what has a name, of those that Translator makes. It is not ok
// for others. A policy without rules, and one that is Closed, has become a rule with the index 0.
func ParsePolicyName(name string) (namespace, policy string, rule int, ok bool) {
	at := strings.LastIndex(name, "ns[") // before it is what Custom adds for the provider
	if at < 0 {
		return "", "", 0, false
	}
	namespace, rest, _ := strings.Cut(strings.TrimSuffix(name[at+len("ns["):], refusedSuffix), "]-policy[")
	policy, index, ok := strings.Cut(rest, "]-rule[")
	rule, err := strconv.Atoi(strings.TrimSuffix(index, "]"))
	return namespace, policy, rule, ok && err == nil
}

// IsDryRun reports whether shadow rules are those of policies that are tried only, by the prefix of what counts their decisions.
func IsDryRun(prefix string) bool { return prefix == dryRunAllow || prefix == dryRunDeny }

// AskedProvider returns the provider that decides about a call, by the policy that the filter in shadow mode has
// found (NoteShadow).
func AskedProvider(policy string) string {
	name, _, _ := strings.Cut(strings.TrimPrefix(policy, providerPrefix), "-ns[")
	return name
}

// NoteShadow has filters of providers know which policy of shadow rules a call matches; "": none, and they know what they knew.
func (c *Call) NoteShadow(filter, prefix, policy string) {
	if policy != "" {
		c.Note(filter, prefix+matchedKey, policy)
	}
}

// Shadow returns the policy that NoteShadow has noted last for the filters of providers; "": none.
func (c *Call) Shadow(filter string) string {
	policy, _ := c.Metadata[filter][matchedPrefix+matchedKey].(string)
	return policy
}
