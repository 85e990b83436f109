// SPDX-License-Identifier: Apache-2.0

package rbac

import (
	"fmt"
	"strconv"
	"strings"
)

// policyName returns the name of a rule's Envoy policy, which appears in Envoy's logs.
func policyName(p Policy, rule int) string {
	return fmt.Sprintf("ns[%s]-policy[%s]-rule[%d]", p.Namespace, p.Name, rule)
}

// ParsePolicyName returns the policy and the rule of an Envoy policy, by a name of a Translator. ok
// is false for other names. A policy without rules, or with Closed, has one Envoy policy with the
// index 0.
func ParsePolicyName(name string) (namespace, policy string, rule int, ok bool) {
	at := strings.LastIndex(name, "ns[") // Custom prepends the prefix of the provider
	if at < 0 {
		return "", "", 0, false
	}
	namespace, rest, _ := strings.Cut(strings.TrimSuffix(name[at+len("ns["):], refusedSuffix), "]-policy[")
	policy, index, ok := strings.Cut(rest, "]-rule[")
	rule, err := strconv.Atoi(strings.TrimSuffix(index, "]"))
	return namespace, policy, rule, ok && err == nil
}

// IsDryRun reports whether shadow rules belong to dry-run policies, by the prefix of their
// statistics.
func IsDryRun(prefix string) bool { return prefix == dryRunAllow || prefix == dryRunDeny }

// AskedProvider returns the provider that decides about a call, by the name of the policy that the
// filter in shadow mode has matched (MatchedKey).
func AskedProvider(policy string) string {
	name, _, _ := strings.Cut(strings.TrimPrefix(policy, providerPrefix), "-ns[")
	return name
}

// MatchedKey returns the key of the metadata in which a filter in shadow mode records the policy that
// matches, by the prefix of its statistics.
func MatchedKey(prefix string) string { return prefix + matchedKey }

// ProviderKey returns the MatchedKey of the policies that ask providers.
func ProviderKey() string { return MatchedKey(matchedPrefix) }
