// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"fmt"

	"go.yaml.in/yaml/v3"
)

// maxDepth is the deepest nesting that is read.
const maxDepth = 200

// extent is the size of a tree with all aliases expanded: the number of its nodes plus the bytes of
// its scalars, and the number of levels below its root.
type extent struct{ size, depth int }

// surveyor measures a tree before it is decoded, in time proportional to its
// text, so that the decoder may follow every alias without counting.
type surveyor struct {
	// budget bounds the size of all that aliases stand for.
	budget int
	// anchored are the extents of the nodes that aliases may refer to; a node
	// whose depth is open is being measured.
	anchored map[*yaml.Node]extent
	// problem is the first problem of the tree. It ends the measuring.
	problem *Problem
}

const open = -1

// survey returns why a tree must not be decoded, or nil. Lines count from the
// beginning of the text. What its aliases stand for is taken from the budget.
func survey(root *yaml.Node, budget *int) *Problem {
	s := surveyor{budget: *budget, anchored: map[*yaml.Node]extent{}}
	s.measure(root, 0)
	if s.problem == nil {
		*budget = s.budget
	}
	return s.problem
}

// measure returns the extent of a node that is level levels below the root.
func (s *surveyor) measure(n *yaml.Node, level int) extent {
	if n.Kind == yaml.AliasNode {
		return s.alias(n, level)
	}
	if n.Anchor != "" {
		s.anchored[n] = extent{depth: open}
	}
	e := extent{size: 1 + len(n.Value)}
	if len(n.Content) > 0 && level >= maxDepth {
		s.fail(n, "is nested more than %d levels deep", maxDepth)
	}
	for _, child := range n.Content {
		if s.problem != nil {
			return e
		}
		c := s.measure(child, level+1)
		e.size, e.depth = e.size+c.size, max(e.depth, c.depth+1)
	}
	if n.Anchor != "" {
		s.anchored[n] = e
	}
	return e
}

func (s *surveyor) alias(n *yaml.Node, level int) extent {
	// An anchor stands above its aliases, so it has been measured, unless it is
	// around the alias.
	e := s.anchored[n.Alias]
	switch s.budget -= e.size; {
	case e.depth == open:
		s.fail(n, "is an alias that contains itself: *%s", shorten(n.Value))
	case level+e.depth > maxDepth:
		s.fail(n, "is nested more than %d levels deep", maxDepth)
	case s.budget < 0:
		s.fail(n, "expands to too much through its aliases")
	}
	return e
}

func (s *surveyor) fail(n *yaml.Node, format string, args ...any) {
	if s.problem == nil {
		s.problem = &Problem{Line: n.Line, Column: n.Column, Message: fmt.Sprintf(format, args...)}
	}
}
