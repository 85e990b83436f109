// SPDX-License-Identifier: Apache-2.0

package istio

import "strings"

// prefixTree holds strings with values and finds the shortest of them that another
// string begins with, in time linear in that string's length, however many there
// are. The zero value is empty.
type prefixTree[V any] struct{ root *prefixNode[V] }

// prefixNode is a string, split where others part from it.
type prefixNode[V any] struct {
	text     string // behind that of the parent
	children map[byte]*prefixNode[V]
	value    V
	held     bool // the tree holds the string that ends here
}

// add adds a string, or replaces its value.
func (t *prefixTree[V]) add(s string, value V) {
	if t.root == nil {
		t.root = &prefixNode[V]{}
	}
	n := t.root
	for s != "" {
		next := n.children[s[0]]
		if next == nil {
			next = n.attach(&prefixNode[V]{text: s})
		} else if shared := sharedPrefix(next.text, s); shared < len(next.text) {
			middle := n.attach(&prefixNode[V]{text: next.text[:shared]})
			next.text = next.text[shared:]
			middle.attach(next)
			next = middle
		}
		n, s = next, s[len(next.text):]
	}
	n.value, n.held = value, true
}

// attach makes a node a child, in the place of one with the same first byte.
func (n *prefixNode[V]) attach(child *prefixNode[V]) *prefixNode[V] {
	if n.children == nil {
		n.children = map[byte]*prefixNode[V]{}
	}
	n.children[child.text[0]] = child
	return child
}

// shortest returns the length of the shortest string in the tree that s begins
// with, or is, and its value.
func (t *prefixTree[V]) shortest(s string) (end int, value V, ok bool) {
	for n := t.root; n != nil; n = n.children[s[end]] {
		if !strings.HasPrefix(s[end:], n.text) {
			break
		}
		end += len(n.text)
		if n.held {
			return end, n.value, true
		}
		if end == len(s) {
			break
		}
	}
	return 0, value, false
}

// sharedPrefix returns how many bytes two strings begin with alike.
func sharedPrefix(a, b string) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}
